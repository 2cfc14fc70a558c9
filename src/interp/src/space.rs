//! One access of one thread: which space, whether it may, and its entry in the log.

use crate::access::AccessLog;
use crate::alu::Fn3;
use crate::code::Place;
use crate::fault::FaultKind;
use crate::memory::{GRID_WINDOW, LOCAL_WINDOW, Memory, PARAM_WINDOW, SHARED_WINDOW};

/// Everything a thread can address, for as long as it runs.
pub(crate) struct Spaces<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) shared: &'a mut [u8],
    pub(crate) params: &'a [u8],
    pub(crate) workspace: &'a mut [u8],
    pub(crate) log: &'a mut AccessLog,
}

/// Base plus offset in a space of 32-bit addresses, where only the sum wraps at 32 bits.
fn window_offset(address: u64) -> u64 {
    let high = address >> 32;
    if high <= 1 || high == 0xffff_ffff { address & 0xffff_ffff } else { address }
}

fn check_alignment(address: u64, size: usize) -> Result<(), FaultKind> {
    if address & (size as u64 - 1) == 0 {
        Ok(())
    } else {
        Err(FaultKind::MisalignedAddress { address, size: size as u32 })
    }
}

fn illegal(address: u64, size: usize) -> FaultKind {
    FaultKind::IllegalAddress { address, size: size as u32 }
}

/// The part of a window's bytes that an access names.
fn range(len: usize, offset: u64, size: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(size)?;
    (end <= len).then_some(start..end)
}

/// Splits a generic address.
fn resolve(address: u64) -> (Place, u64) {
    match address & !0x00ff_ffff_ffff_ffff {
        SHARED_WINDOW => (Place::Shared, address - SHARED_WINDOW),
        LOCAL_WINDOW => (Place::Local, address - LOCAL_WINDOW),
        PARAM_WINDOW => (Place::Param, address - PARAM_WINDOW),
        GRID_WINDOW => (Place::Grid, address - GRID_WINDOW),
        _ => (Place::Global, address),
    }
}

impl Spaces<'_> {
    /// Fills `buf`, whose length is a power of two.
    #[inline]
    pub(crate) fn load(
        &mut self,
        local: &[u8],
        (place, strong): (Place, bool),
        address: u64,
        buf: &mut [u8],
    ) -> Result<(), FaultKind> {
        let size = buf.len();
        check_alignment(address, size)?;
        let (place, at) = match place {
            Place::Generic => resolve(address),
            Place::Global => (place, address),
            _ => (place, window_offset(address)),
        };
        let window = match place {
            Place::Global | Place::Generic => {
                self.memory.load(at, buf).map_err(|fault| illegal(fault.address, size))?;
                self.log.sets(strong).reads.insert(at, size as u64);
                return Ok(());
            }
            Place::Shared => &*self.shared,
            Place::Local => local,
            Place::Param => self.params,
            Place::Grid => &*self.workspace,
        };
        let range = range(window.len(), at, size).ok_or_else(|| illegal(address, size))?;
        buf.copy_from_slice(&window[range]);
        Ok(())
    }

    #[inline]
    pub(crate) fn store(
        &mut self,
        local: &mut [u8],
        (place, strong): (Place, bool),
        address: u64,
        data: &[u8],
    ) -> Result<(), FaultKind> {
        let size = data.len();
        check_alignment(address, size)?;
        let (place, at) = match place {
            Place::Generic => resolve(address),
            Place::Global => (place, address),
            _ => (place, window_offset(address)),
        };
        let window = match place {
            Place::Global | Place::Generic => {
                self.memory.store(at, data).map_err(|fault| illegal(fault.address, size))?;
                self.log.sets(strong).writes.insert(at, size as u64);
                return Ok(());
            }
            Place::Shared => &mut *self.shared,
            Place::Local => local,
            Place::Grid => &mut *self.workspace,
            // Kernel parameters are read-only.
            Place::Param => return Err(illegal(address, size)),
        };
        let range = range(window.len(), at, size).ok_or_else(|| illegal(address, size))?;
        window[range].copy_from_slice(data);
        Ok(())
    }

    /// Replaces the value at `address` by `f(old, b, c)`; returns the old one.
    pub(crate) fn atomic(
        &mut self,
        local: &mut [u8],
        (place, strong): (Place, bool),
        address: u64,
        size: u8,
        f: Fn3,
        (b, c): (u64, u64),
    ) -> Result<u64, FaultKind> {
        let bytes = usize::from(size);
        check_alignment(address, bytes)?;
        let (space, at) = match place {
            Place::Generic => resolve(address),
            Place::Global => (place, address),
            _ => (place, window_offset(address)),
        };
        if space == Place::Global {
            let old = self
                .memory
                .atomic(at, size, &mut |old| f(old, b, c))
                .map_err(|fault| illegal(fault.address, bytes))?;
            self.log.sets(strong).atomics.insert(at, u64::from(size));
            return Ok(old);
        }
        let mut buf = [0u8; 8];
        self.load(local, (place, strong), address, &mut buf[..bytes])?;
        let old = u64::from_le_bytes(buf);
        self.store(local, (place, strong), address, &f(old, b, c).to_le_bytes()[..bytes])?;
        Ok(old)
    }

    /// `cp.async`: `size` bytes to shared memory, of which `valid` come from global memory.
    pub(crate) fn copy_to_shared(
        &mut self,
        local: &mut [u8],
        to: u64,
        from: u64,
        size: u8,
        valid: u8,
    ) -> Result<(), FaultKind> {
        let mut buf = [0u8; 16];
        check_alignment(from, usize::from(size))?;
        if valid > 0 {
            let into = &mut buf[..usize::from(valid)];
            self.memory
                .load(from, into)
                .map_err(|fault| illegal(fault.address, usize::from(valid)))?;
            self.log.weak.reads.insert(from, u64::from(valid));
        }
        self.store(local, (Place::Shared, false), to, &buf[..usize::from(size)])
    }

    /// A NUL-terminated string in any space, for messages; the log does not see it.
    pub(crate) fn text(&self, local: &[u8], address: u64) -> Option<Vec<u8>> {
        const LONGEST: u64 = 4096;
        let (place, at) = resolve(address);
        let mut out = Vec::new();
        for next in at..at.saturating_add(LONGEST) {
            let mut byte = [0u8];
            match place {
                Place::Shared => byte[0] = *self.shared.get(next as usize)?,
                Place::Local => byte[0] = *local.get(next as usize)?,
                Place::Param => byte[0] = *self.params.get(next as usize)?,
                Place::Grid => return None,
                Place::Global | Place::Generic => self.memory.load(next, &mut byte).ok()?,
            }
            if byte[0] == 0 {
                break;
            }
            out.push(byte[0]);
        }
        Some(out)
    }
}
