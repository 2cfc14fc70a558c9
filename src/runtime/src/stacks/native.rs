//! The native frames of the calling thread, by unwind information, without frame pointers.
//!
//! Rules are kept by return address, so that a place seen before costs a few reads of the stack.
//! Nothing is read but the thread's stack: between the stack pointer and the stack's end, which the
//! thread is asked for once. Where the stack pointer lies elsewhere (a coroutine, an alternative
//! stack) the kernel copies what is wanted, page by page, and refuses what is not there.
//!
//! Code without unwind information is stepped over by its frame pointer. What that leads to is only
//! believed where it comes to known code again; see [`super::describe`].

use core::cell::Cell;

use framehop::FrameAddress;

use super::machine::{self, Registers};
use super::objects::Snapshot;
use super::python::merge::NativeFrame;
use super::rules::Rules;
use crate::images::memory::read_if_there;
use crate::system_call;

/// Frames of the runtime itself that may lie before the program's.
pub(super) const OWN_FRAMES: usize = 24;

/// Bytes that are copied at once: no more than the smallest page has.
const PAGE: usize = 4096;

/// Bytes of stack that making an unwinder may take: about 16 KiB, and several times that where the
/// compiler does not optimise.
const ROOM: usize = if cfg!(debug_assertions) { 48 * PAGE } else { 8 * PAGE };
const PAGES: usize = 4;

/// Pages of a stack that is not the thread's own, as the kernel has copied them.
pub(super) struct Copies {
    /// Address of each page, 0 for none.
    address: [usize; PAGES],
    bytes: [[u64; PAGE / 8]; PAGES],
}

impl Copies {
    fn read(&mut self, address: usize) -> Result<u64, ()> {
        let page = address & !(PAGE - 1);
        let slot = (page / PAGE) % PAGES;
        if self.address[slot] != page {
            self.address[slot] = 0;
            // SAFETY: words that may hold anything.
            let bytes = unsafe { self.bytes[slot].align_to_mut::<u8>().1 };
            read_if_there(page as u64, bytes).map_err(|_| ())?;
            self.address[slot] = page;
        }
        Ok(self.bytes[slot][(address & (PAGE - 1)) / 8])
    }
}

/// Copies from the process itself, by the kernel. The system call itself: the C library's function
/// may not be its own.
///
/// # Safety
/// As `process_vm_readv`, with one local buffer.
unsafe fn copied(local: *const libc::iovec, remote: *const libc::iovec, count: usize) -> i64 {
    // SAFETY: promised by the caller.
    unsafe {
        let list = [libc::getpid() as u64, local as u64, 1, remote as u64, count as u64, 0];
        system_call::raw(libc::SYS_process_vm_readv, list)
    }
}

/// One past the end of a thread's stack, and its begin; the same twice where it is not known.
pub(crate) struct Bounds {
    known: Cell<bool>,
    /// Objects that are not known are not asked for.
    quiet: Cell<bool>,
    low: Cell<usize>,
    high: Cell<usize>,
}

impl Bounds {
    pub(crate) const fn unknown() -> Self {
        Self {
            known: Cell::new(false),
            quiet: Cell::new(false),
            low: Cell::new(0),
            high: Cell::new(0),
        }
    }

    /// The stack of the calling thread, whose bounds these are.
    #[inline]
    pub(super) fn get(&self) -> (usize, usize) {
        if !self.known.get() && !self.quiet.get() {
            self.ask();
        }
        (self.low.get(), self.high.get())
    }

    /// Asks nothing until further notice: the C library would allocate for the answer.
    pub(super) fn be_quiet(&self, quiet: bool) {
        self.quiet.set(quiet);
    }

    /// Whether there is as much room on the stack as making an unwinder takes.
    #[cold]
    pub(super) fn have_room(&self) -> bool {
        let mark = 0u8;
        let here = &raw const mark as usize;
        let (low, high) = self.get();
        if (low..high).contains(&here) {
            return here - low >= ROOM;
        }
        // Stacks of coroutines mostly have a page below them that nobody may touch.
        let page = here & !(PAGE - 1);
        let pages = core::array::from_fn::<_, { ROOM / PAGE }, _>(|index| libc::iovec {
            iov_base: (page - (index + 1) * PAGE) as *mut _,
            iov_len: 1,
        });
        let mut bytes = [0u8; ROOM / PAGE];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: writes our buffer only; the kernel checks what it reads from.
        let read = unsafe { copied(&local, pages.as_ptr(), pages.len()) };
        read == bytes.len() as i64
    }

    #[cold]
    fn ask(&self) {
        self.known.set(true);
        // SAFETY: asks for the attributes of the calling thread, and frees what was allocated.
        unsafe {
            let mut attributes = core::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
                return;
            }
            let (mut start, mut size) = (core::ptr::null_mut(), 0);
            if libc::pthread_attr_getstack(&attributes, &mut start, &mut size) == 0 {
                self.low.set(start as usize);
                self.high.set(start as usize + size);
            }
            libc::pthread_attr_destroy(&mut attributes);
        }
    }
}

/// One step of a walk: the registers before it, and what the unwinder made of them.
pub(super) struct UnwindStep<'a> {
    pub(super) at: FrameAddress,
    pub(super) before: Registers,
    pub(super) next: &'a Result<Option<u64>, framehop::Error>,
    pub(super) after: Registers,
}

/// The result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NativeWalk {
    /// Frames written, innermost first; none of them is the runtime's own.
    pub(super) count: usize,
    /// Whether there are more, or may be.
    pub(super) cut: bool,
}

/// Walks the stack from a function that is still running.
#[inline]
pub(super) fn walk(
    snapshot: &Snapshot,
    rules: &mut Rules,
    bounds: &Bounds,
    here: Registers,
    copies: &mut Copies,
    frames: &mut [NativeFrame],
) -> NativeWalk {
    let (low, high) = bounds.get();
    let start = here.sp as usize;
    if (low..high).contains(&start) {
        let read = |address| read_own(start, high, address);
        walk_from(snapshot, rules, bounds, here, frames, read, |_| {})
    } else {
        copies.address = [0; PAGES];
        let read = |address| {
            let address = address as usize;
            if address < start || !address.is_multiple_of(8) {
                return Err(());
            }
            copies.read(address)
        };
        walk_from(snapshot, rules, bounds, here, frames, read, |_| {})
    }
}

/// A word of the calling thread's stack, which ends at `high`, at or above its stack pointer.
#[inline]
pub(super) fn read_own(start: usize, high: usize, address: u64) -> Result<u64, ()> {
    let address = address as usize;
    if !(start..high - 7).contains(&address) || !address.is_multiple_of(8) {
        return Err(());
    }
    // SAFETY: on the calling thread's stack, above its stack pointer.
    Ok(unsafe { (address as *const u64).read() })
}

/// Walks the stack of the calling thread from where a signal has interrupted it: that instruction is
/// the first frame. Nothing is asked that the C library would allocate for; where the stack's bounds
/// are not known yet, the kernel copies what is wanted.
#[cold]
pub(super) fn walk_interrupted(
    snapshot: &Snapshot,
    rules: &mut Rules,
    bounds: &Bounds,
    at: Registers,
    copies: &mut Copies,
    frames: &mut [NativeFrame],
) -> NativeWalk {
    let Some((first, rest)) = frames.split_first_mut() else {
        return NativeWalk { count: 0, cut: true };
    };
    // Frames are return addresses, of which the instruction before is meant.
    *first = NativeFrame { address: at.ip as usize + 1, stack: at.sp as usize };
    let start = at.sp as usize;
    let (low, high) = bounds.get();
    let walk = if (low..high).contains(&start) {
        let read = |address| read_own(start, high, address);
        walk_from(snapshot, rules, bounds, at, rest, read, |_| {})
    } else {
        copies.address = [0; PAGES];
        let read = |address| {
            let address = address as usize;
            if address < start || !address.is_multiple_of(8) {
                return Err(());
            }
            copies.read(address)
        };
        walk_from(snapshot, rules, bounds, at, rest, read, |_| {})
    };
    NativeWalk { count: walk.count + 1, cut: walk.cut }
}

/// Walks; `watch` sees every step.
#[inline]
pub(super) fn walk_from(
    snapshot: &Snapshot,
    rules: &mut Rules,
    bounds: &Bounds,
    start: Registers,
    frames: &mut [NativeFrame],
    mut read: impl FnMut(u64) -> Result<u64, ()>,
    mut watch: impl FnMut(UnwindStep<'_>),
) -> NativeWalk {
    let mut registers = start.unwinding();
    let mut at = FrameAddress::from_instruction_pointer(start.ip);
    let mut own = OWN_FRAMES;
    let mut count = 0;
    let cut = loop {
        let before = Registers::of(&registers);
        let cache = rules.of(at, || bounds.have_room());
        let next = machine::step(snapshot, at, &mut registers, cache, &mut read);
        watch(UnwindStep { at, before, next: &next, after: Registers::of(&registers) });
        let address = match next {
            Ok(Some(address)) => address,
            Ok(None) => break false,
            Err(_) => break true,
        };
        // A frame lies above the one that it called.
        let leaves = machine::LEAF_STAYS && !at.is_return_address();
        if registers.sp() < before.sp || (registers.sp() == before.sp && !leaves) {
            break true;
        }
        let Some(place) = machine::followed(snapshot, at, address) else { break false };
        at = place;
        // Of an instruction that was interrupted: as if it were called from, see above.
        let address = at.address_for_lookup() as usize + 1;
        if own > 0 {
            if snapshot.is_own(address) {
                own -= 1;
                continue;
            }
            own = 0;
        }
        let Some(frame) = frames.get_mut(count) else { break true };
        *frame = NativeFrame { address, stack: registers.sp() as usize };
        count += 1;
    };
    NativeWalk { count, cut }
}
