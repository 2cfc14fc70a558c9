//! The real driver: where it is loaded and where its entry points lie.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use streamsan_wire::{Counted, ENTRY_POINTS, EntryPoint, PathBuffer, UNKNOWN_SLOTS, entry_points};

use crate::elf::LoadedObject;
use crate::{hooks, thunks};

/// CUDA_ERROR_NOT_FOUND: what a driver call answers whose symbol the driver lacks.
pub(crate) const NOT_FOUND: i32 = 500;

const DRIVER: &CStr = c"libcuda.so.1";

/// Addresses of the driver's own functions by entry point, unknown ones at the end; 0 until
/// looked up. Read by the thunks' assembly.
pub(crate) static REAL: [AtomicUsize; ENTRY_POINTS + UNKNOWN_SLOTS] =
    [const { AtomicUsize::new(0) }; ENTRY_POINTS + UNKNOWN_SLOTS];

/// The driver once it is found; it stays loaded from then on.
static DRIVER_OBJECT: DriverObject =
    DriverObject { state: AtomicU8::new(UNKNOWN), object: UnsafeCell::new(None) };

const UNKNOWN: u8 = 0;
const WRITING: u8 = 1;
const KNOWN: u8 = 2;

struct DriverObject {
    state: AtomicU8,
    object: UnsafeCell<Option<LoadedObject>>,
}

// SAFETY: `object` is written once, by whoever moves `state` to WRITING, and read after KNOWN.
unsafe impl Sync for DriverObject {}

/// Number of a counted entry point among all.
pub(crate) const fn counted_index(counted: Counted) -> usize {
    streamsan_wire::Api::COUNT + counted as usize
}

/// Address of the driver's own function, `None` if it has none or is not loaded.
#[inline]
pub(crate) fn real(entry: EntryPoint) -> Option<usize> {
    match REAL[entry.index()].load(Ordering::Relaxed) {
        0 => look_up(entry),
        address => Some(address),
    }
}

#[cold]
fn look_up(entry: EntryPoint) -> Option<usize> {
    let name = PathBuffer::format(format_args!("{}", entry.name()))?;
    let address = driver()?.function(name.as_c_str())?;
    REAL[entry.index()].store(address, Ordering::Relaxed);
    Some(address)
}

/// Like [`real`] for an entry point that is only counted.
pub(crate) fn real_counted(counted: Counted) -> Option<usize> {
    real(EntryPoint::from_index(counted_index(counted))?)
}

/// The driver's own function of a name, be it an entry point that is known or not.
pub(crate) fn function(name: &CStr) -> Option<usize> {
    driver()?.function(name)
}

/// Like [`real`], answering [`NOT_FOUND`] where there is none.
pub(crate) fn real_or_absent(entry: EntryPoint) -> usize {
    real(entry).unwrap_or(absent as *const () as usize)
}

/// Stands for a function that the driver lacks; takes any arguments.
pub(crate) extern "C" fn absent() -> i32 {
    NOT_FOUND
}

/// Whether the address belongs to the driver (and which, if it is not found yet).
pub(crate) fn is_driver(address: usize) -> bool {
    if known().is_some_and(|driver| driver.contains(address)) {
        return true;
    }
    let Some(object) = LoadedObject::containing(address) else { return false };
    let driver = object.soname() == Some(DRIVER);
    if driver {
        adopt(object);
    }
    driver
}

/// Whether the address belongs to the driver that was found. May be called by a signal handler.
pub(crate) fn is_known_driver(address: usize) -> bool {
    known().is_some_and(|driver| driver.contains(address))
}

fn known() -> Option<&'static LoadedObject> {
    if DRIVER_OBJECT.state.load(Ordering::Acquire) != KNOWN {
        return None;
    }
    // SAFETY: KNOWN is stored after the only write.
    unsafe { (*DRIVER_OBJECT.object.get()).as_ref() }
}

fn driver() -> Option<LoadedObject> {
    if let Some(object) = known() {
        return Some(*object);
    }
    let object = LoadedObject::find(|object| object.soname() == Some(DRIVER))?;
    adopt(object);
    Some(object)
}

/// Remembers the first driver seen and keeps it loaded: its addresses must stay true.
fn adopt(object: LoadedObject) {
    let state = &DRIVER_OBJECT.state;
    if state.compare_exchange(UNKNOWN, WRITING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: NOLOAD loads nothing; it finds the driver by its name and sets NODELETE on it.
    // The state gives this thread the only access to `object` until KNOWN.
    unsafe {
        libc::dlopen(DRIVER.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        *DRIVER_OBJECT.object.get() = Some(object);
    }
    state.store(KNOWN, Ordering::Release);
}

/// The address that a look-up of an entry point by exact name gives the program instead of
/// `address`.
pub(crate) fn substitute(entry: EntryPoint, address: usize) -> Option<usize> {
    let slot = &REAL[entry.index()];
    match slot.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(export(entry)),
        Err(known) if known == address => Some(export(entry)),
        // A second copy of the driver: our hook would call the first.
        Err(_) => None,
    }
}

/// Address of our own function for an entry point.
pub(crate) fn export(entry: EntryPoint) -> usize {
    match entry.api() {
        Some(api) => hooks::address(api),
        None => thunks::address(entry.index() - streamsan_wire::Api::COUNT),
    }
}

/// Whether the address is one of our own functions: a driver may look itself up.
pub(crate) fn is_ours(address: usize) -> bool {
    entry_points().any(|entry| export(entry) == address)
}

/// The entry point whose function lies at `address`; among several names of one function those
/// that begin with `symbol` come first.
pub(crate) fn entry_at(address: usize, symbol: &str) -> Option<EntryPoint> {
    let at_address = |entry: &EntryPoint| real(*entry) == Some(address);
    entry_points()
        .filter(|entry| entry.name().starts_with(symbol))
        .find(at_address)
        .or_else(|| entry_points().find(at_address))
}
