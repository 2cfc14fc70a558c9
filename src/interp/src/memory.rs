//! The memory a kernel sees: the interface to the driver's memory and the address windows of
//! shared, local and parameter memory.
//!
//! A device pointer is a real host address, so generic pointers into global memory are used as
//! they are. The other spaces live in windows of addresses that no process has on x86-64 or on
//! aarch64 (at most 52 bits of them), so that a generic pointer tells its space from its value alone.

use crate::fault::Fault;

/// Generic address of byte 0 of a block's shared memory.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Generic address of byte 0 of a thread's local memory.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Generic address of byte 0 of the kernel's parameter block.
pub(crate) const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// Address of function `n` is this plus `n`: a code address, never data.
pub(crate) const CODE_WINDOW: u64 = 0x0400_0000_0000_0000;
/// Generic address of byte 0 of the workspace of a cooperative grid.
pub(crate) const GRID_WINDOW: u64 = 0x0500_0000_0000_0000;
/// Bytes of every window.
pub(crate) const WINDOW_SIZE: u64 = 1 << 32;

/// Device-visible memory at host addresses. Each method checks that all of
/// `[addr, addr + len)` may be accessed and touches nothing where it may not.
pub trait Memory {
    /// Copies memory into `buf`.
    ///
    /// # Errors
    /// When a byte may not be read.
    fn load(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault>;
    /// Copies `data` into memory.
    ///
    /// # Errors
    /// When a byte may not be written.
    fn store(&self, addr: u64, data: &[u8]) -> Result<(), Fault>;
    /// Replaces the little-endian value of `size` bytes (2, 4 or 8; naturally aligned) by
    /// `f(old)` as one indivisible step and returns the old value. `f` may run more than once.
    ///
    /// # Errors
    /// When the value may not be read and written.
    fn atomic(&self, addr: u64, size: u8, f: &mut dyn FnMut(u64) -> u64) -> Result<u64, Fault>;
}
