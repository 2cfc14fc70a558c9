//! Reading and writing committed memory.
//!
//! The program may read and write the same bytes at the same time (pinned memory that it spins
//! on); accesses of up to eight aligned bytes are therefore single atomics, sequentially consistent
//! ones or, of one byte, with acquire and release, and only longer ones are plain copies.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::map::{AddressMap, Origin};
use crate::os;
use streamsan_interp::{Fault, Memory};

/// Memory that is mapped twice: where the program knows it, its bytes, and how far away the devices
/// touch it.
static TWIN: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// There is a window that is mapped twice.
pub(super) fn set_twin(base: u64, bytes: u64, twin: u64) {
    TWIN[0].store(base, Ordering::Relaxed);
    TWIN[2].store(twin.wrapping_sub(base), Ordering::Relaxed);
    TWIN[1].store(bytes, Ordering::Release);
}

/// Where the devices touch the byte that the program knows by this address.
#[inline]
fn twin(address: u64) -> u64 {
    let bytes = TWIN[1].load(Ordering::Acquire);
    if address.wrapping_sub(TWIN[0].load(Ordering::Relaxed)) < bytes {
        address.wrapping_add(TWIN[2].load(Ordering::Relaxed))
    } else {
        address
    }
}

/// Copies memory at `address` into `into`. The range was found in the map.
pub(crate) fn load_bytes(address: u64, into: &mut [u8]) {
    let address = twin(address);
    // SAFETY: the caller checked the range against the map, whose regions are committed memory
    // that is never unmapped (or memory that the program registered and vouches for); alignment
    // is checked for the atomic forms.
    unsafe {
        match into.len() {
            1 => into[0] = (*(address as *const AtomicU8)).load(Ordering::Acquire),
            2 if address.is_multiple_of(2) => {
                let value = (*(address as *const AtomicU16)).load(Ordering::SeqCst);
                into.copy_from_slice(&value.to_le_bytes());
            }
            4 if address.is_multiple_of(4) => {
                let value = (*(address as *const AtomicU32)).load(Ordering::SeqCst);
                into.copy_from_slice(&value.to_le_bytes());
            }
            8 if address.is_multiple_of(8) => {
                let value = (*(address as *const AtomicU64)).load(Ordering::SeqCst);
                into.copy_from_slice(&value.to_le_bytes());
            }
            length => {
                std::ptr::copy(address as *const u8, into.as_mut_ptr(), length);
            }
        }
    }
}

/// Copies `from` to memory at `address`. The range was found in the map.
pub(crate) fn store_bytes(address: u64, from: &[u8]) {
    let address = twin(address);
    // SAFETY: as in `load_bytes`; regions are writable.
    unsafe {
        match *from {
            [a] => (*(address as *const AtomicU8)).store(a, Ordering::Release),
            [a, b] if address.is_multiple_of(2) => {
                let value = u16::from_le_bytes([a, b]);
                (*(address as *const AtomicU16)).store(value, Ordering::SeqCst);
            }
            [a, b, c, d] if address.is_multiple_of(4) => {
                let value = u32::from_le_bytes([a, b, c, d]);
                (*(address as *const AtomicU32)).store(value, Ordering::SeqCst);
            }
            [a, b, c, d, e, f, g, h] if address.is_multiple_of(8) => {
                let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                (*(address as *const AtomicU64)).store(value, Ordering::SeqCst);
            }
            _ => std::ptr::copy(from.as_ptr(), address as *mut u8, from.len()),
        }
    }
}

/// Memory as the kernels of one context see it.
#[derive(Debug)]
pub(crate) struct DeviceView {
    map: Arc<AddressMap>,
    device: u32,
    peers: u32,
    /// Bounds of the regions found last, most recent first, and whether they are memory of the
    /// program.
    recent: [Cell<(u64, u64, bool)>; 4],
}

impl DeviceView {
    pub(crate) fn new(map: Arc<AddressMap>, device: u32, peers: u32) -> Self {
        DeviceView { map, device, peers, recent: [const { Cell::new((1, 0, false)) }; 4] }
    }

    /// Answers whether the bytes are the program's own, which has registered them.
    fn check(&self, address: u64, length: u64) -> Result<bool, Fault> {
        let fault = Fault { address };
        let end = address.checked_add(length).ok_or(fault)?;
        for (position, slot) in self.recent.iter().enumerate() {
            let bounds = slot.get();
            if bounds.0 <= address && end <= bounds.1 {
                if position > 0 {
                    self.recent[position - 1].swap(slot);
                }
                return Ok(bounds.2);
            }
        }
        let region = self.map.reachable(address, length, self.device, self.peers).ok_or(fault)?;
        let registered = region.origin == Origin::Registered;
        self.recent[3].set((region.start, region.end(), registered));
        Ok(registered)
    }
}

impl Memory for DeviceView {
    fn load(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        if !self.check(addr, buf.len() as u64)? {
            load_bytes(addr, buf);
            return Ok(());
        }
        os::read_registered(addr, buf).then_some(()).ok_or(Fault { address: addr })
    }

    fn store(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if !self.check(addr, data.len() as u64)? {
            store_bytes(addr, data);
            return Ok(());
        }
        os::write_registered(addr, data).then_some(()).ok_or(Fault { address: addr })
    }

    fn atomic(&self, addr: u64, size: u8, f: &mut dyn FnMut(u64) -> u64) -> Result<u64, Fault> {
        self.check(addr, u64::from(size))?;
        if !addr.is_multiple_of(u64::from(size.max(1))) {
            return Err(Fault { address: addr });
        }
        let order = Ordering::SeqCst;
        let addr = twin(addr);
        // SAFETY: the range is in the map, so mapped for as long as the process lives, and the
        // address is a multiple of the size.
        let old = unsafe {
            match size {
                1 => (*(addr as *const AtomicU8))
                    .fetch_update(order, order, |old| Some(f(u64::from(old)) as u8))
                    .map(u64::from)
                    .unwrap_or_default(),
                2 => (*(addr as *const AtomicU16))
                    .fetch_update(order, order, |old| Some(f(u64::from(old)) as u16))
                    .map(u64::from)
                    .unwrap_or_default(),
                4 => (*(addr as *const AtomicU32))
                    .fetch_update(order, order, |old| Some(f(u64::from(old)) as u32))
                    .map(u64::from)
                    .unwrap_or_default(),
                8 => (*(addr as *const AtomicU64))
                    .fetch_update(order, order, |old| Some(f(old)))
                    .unwrap_or_default(),
                _ => return Err(Fault { address: addr }),
            }
        };
        Ok(old)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, Region, Window};
    use super::*;

    fn view(length: u64) -> (DeviceView, u64) {
        let mut window = Window::reserve().unwrap();
        let start = window.take(length).unwrap();
        let mut map = AddressMap::default();
        map.insert(Region {
            start,
            length,
            origin: Origin::Device,
            device: 0,
            context: 0,
            id: 0,
            flags: 0,
            freed: false,
            sync_memops: false,
        });
        (DeviceView::new(Arc::new(map), 0, 0), start)
    }

    #[test]
    fn every_width_reads_back_and_the_first_byte_past_the_end_faults() {
        let (view, start) = view(64);
        for width in [1usize, 2, 3, 4, 8, 16] {
            let data: Vec<u8> = (0..width as u8).map(|byte| byte + 1).collect();
            view.store(start + 16, &data).unwrap();
            let mut back = vec![0; width];
            view.load(start + 16, &mut back).unwrap();
            assert_eq!(back, data);
            let last = start + 64 - width as u64;
            assert!(view.load(last, &mut back).is_ok());
            assert!(view.load(last + 1, &mut back).is_err());
        }
        assert!(view.load(u64::MAX, &mut [0; 4]).is_err());
        assert!(view.atomic(start + 64, 4, &mut |old| old).is_err());
    }

    #[test]
    fn atomics_return_the_old_value_and_keep_to_their_width() {
        let (view, start) = view(16);
        view.store(start, &[0xff; 16]).unwrap();
        for (offset, size) in [(0, 2u8), (4, 4), (8, 8)] {
            let old = view.atomic(start + offset, size, &mut |old| old.wrapping_add(1)).unwrap();
            assert_eq!(old, u64::MAX >> (64 - 8 * u32::from(size)));
            let mut after = vec![1; usize::from(size)];
            view.load(start + offset, &mut after).unwrap();
            assert!(after.iter().all(|byte| *byte == 0));
        }
        let mut untouched = [0; 2];
        view.load(start + 2, &mut untouched).unwrap();
        assert_eq!(untouched, [0xff; 2]);
    }
}
