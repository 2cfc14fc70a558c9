//! Entry points of a newer driver: counted under the name by which they were looked up.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use streamsan_wire::{ENTRY_POINTS, ProcessFile, UNKNOWN_NAME_BYTES, UNKNOWN_SLOTS, UnknownEntry};

use crate::attach;
use crate::resolve::REAL;
use crate::thunks;

struct Names(UnsafeCell<[UnknownEntry; UNKNOWN_SLOTS]>);

// SAFETY: written only under `BUSY`, and a slot only before `USED` counts it.
unsafe impl Sync for Names {}

static NAMES: Names = Names(UnsafeCell::new([[0; UNKNOWN_NAME_BYTES]; UNKNOWN_SLOTS]));
static USED: AtomicU32 = AtomicU32::new(0);
static BUSY: AtomicBool = AtomicBool::new(false);

/// The address that a program gets that looked up the unknown entry point `name` at `address`: a
/// thunk that counts it, or the address itself where no slot is left.
pub(crate) fn thunk_for(name: &[u8], address: usize) -> usize {
    let Some(attachment) = attach::attachment() else { return address };
    if let Some(slot) = known_slot(address) {
        return thunks::unknown_address(slot);
    }
    if BUSY.swap(true, Ordering::Acquire) {
        // Another thread is at it, or was when this process was forked: not worth a wait.
        attachment.process.unknown_overflow.fetch_add(1, Ordering::Relaxed);
        return address;
    }
    let slot = USED.load(Ordering::Relaxed) as usize;
    let taken = slot < UNKNOWN_SLOTS && known_slot(address).is_none();
    if taken {
        let len = name.len().min(UNKNOWN_NAME_BYTES - 1);
        // SAFETY: under `BUSY`, and `USED` does not count the slot yet.
        unsafe { (&mut (*NAMES.0.get()))[slot][..len].copy_from_slice(&name[..len]) };
        REAL[ENTRY_POINTS + slot].store(address, Ordering::Release);
        USED.store(slot as u32 + 1, Ordering::Release);
        copy_names(attachment.process);
    }
    BUSY.store(false, Ordering::Release);
    match known_slot(address) {
        Some(slot) => thunks::unknown_address(slot),
        None => {
            attachment.process.unknown_overflow.fetch_add(1, Ordering::Relaxed);
            address
        }
    }
}

/// Makes the names known to the collector.
pub(crate) fn copy_names(process: &ProcessFile) {
    let used = USED.load(Ordering::Acquire) as usize;
    let first = process.unknown_used.load(Ordering::Relaxed) as usize;
    for slot in first..used {
        // SAFETY: `USED` counts the slot, so its name stays; the collector reads the copy only
        // after `unknown_used` counts it, and only one thread at a time copies.
        unsafe {
            let from = (&raw const (*NAMES.0.get())[slot]).cast::<u8>();
            let to = (&raw const process.unknown[slot]).cast_mut().cast::<u8>();
            core::ptr::copy_nonoverlapping(from, to, UNKNOWN_NAME_BYTES);
        }
    }
    process.unknown_used.store(used as u32, Ordering::Release);
}

fn known_slot(address: usize) -> Option<usize> {
    let used = USED.load(Ordering::Acquire) as usize;
    (0..used).find(|slot| REAL[ENTRY_POINTS + slot].load(Ordering::Relaxed) == address)
}
