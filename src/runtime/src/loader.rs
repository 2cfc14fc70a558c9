//! `dlsym` and `dlvsym` of the program: look-ups of driver functions get ours.
//!
//! The loader answers RTLD_NEXT and RTLD_DEFAULT by its caller's address, so everything that is
//! not ours is jumped to with the program's return address in place. Only names `cu[A-Z]*`, `nccl*` and
//! `ibv_*` are looked at, and only results inside `libcuda.so.1`, libcufile, libnccl and, with fences,
//! libibverbs are replaced: `cudnn*` and the driver's own look-ups pass.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use streamsan_wire::{EntryPoint, PathBuffer, find_entry};

use crate::elf::LoadedObject;
use crate::{attach, host, resolve, thread, unknown};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::lookup;
#[cfg(target_arch = "x86_64")]
use x86_64::lookup;

/// The C library's functions, null until looked up. Read by the assembly of [`lookup`].
static REAL_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static REAL_DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

lookup!(dlsym, REAL_DLSYM, driver_dlsym);
lookup!(dlvsym, REAL_DLVSYM, driver_dlvsym);

/// Finds the C library's `dlsym` and `dlvsym` (in libdl before glibc 2.34) without any of them.
extern "C" fn find_loader() {
    for (name, real) in [(c"dlsym", &REAL_DLSYM), (c"dlvsym", &REAL_DLVSYM)] {
        let mut found = None;
        LoadedObject::find_while_starting(|object| {
            let system = object.soname().is_some_and(|soname| {
                let soname = soname.to_bytes();
                soname.starts_with(b"libc.so") || soname.starts_with(b"libdl.so")
            });
            if system {
                found = found.or_else(|| object.function(name));
            }
            found.is_some()
        });
        let address = found.unwrap_or(no_loader as *const () as usize);
        real.store(address as *mut c_void, Ordering::Release);
    }
}

/// Stands for a look-up that no loaded library has.
extern "C" fn no_loader() -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn driver_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    // SAFETY: the C library's function, found before the jump here; the program's arguments.
    unsafe {
        let real: Dlsym = core::mem::transmute(REAL_DLSYM.load(Ordering::Acquire));
        replace(name, real(handle, name))
    }
}

unsafe extern "C" fn driver_dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    // SAFETY: the C library's function, found before the jump here; the program's arguments.
    unsafe {
        let real: Dlvsym = core::mem::transmute(REAL_DLVSYM.load(Ordering::Acquire));
        replace(name, real(handle, name, version))
    }
}

/// The function that the program gets instead of `found`.
///
/// # Safety
/// `name` is a NUL-terminated string.
unsafe fn replace(name: *const c_char, found: *mut c_void) -> *mut c_void {
    if found.is_null() || attach::attachment().is_none() {
        return found;
    }
    let errno = thread::errno();
    let address = found as usize;
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let replaced = if resolve::is_driver(address) {
        match name.to_str().ok().and_then(find_entry) {
            Some(entry) => resolve::substitute(entry, address)
                .unwrap_or_else(|| of_second_driver(entry, address)),
            None => unknown::thunk_for(name.to_bytes(), address),
        }
    } else {
        let library = host::substitute_cufile(name, address);
        let library = library.or_else(|| host::substitute_nccl(name, address));
        library.or_else(|| host::substitute_verbs(name, address)).unwrap_or(address)
    };
    thread::set_errno(errno);
    replaced as *mut c_void
}

/// The address that a program gets that looked `entry` up in a second copy of the driver, whose
/// calls the hooks would give to the first: counted under a name that no table knows, so that the
/// run is not called clean.
fn of_second_driver(entry: EntryPoint, address: usize) -> usize {
    match PathBuffer::format(format_args!("{} (second driver)", entry.name())) {
        Some(name) => unknown::thunk_for(name.as_str().as_bytes(), address),
        None => address,
    }
}
