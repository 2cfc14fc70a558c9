//! The state that a thread needs to record stacks: in memory of its own that stays with its ring,
//! so that a later thread uses it again.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use std::sync::Arc;

use super::machine::Registers;
use super::memo::{HookSite, Learner, Memo};
use super::native::{self, Bounds, Copies, NativeWalk};
use super::objects::{self, Snapshot};
use super::python::PythonFrame;
use super::python::merge::NativeFrame;
use super::rules::Rules;
use super::{MOST_NATIVE, MOST_PYTHON, memory, native_hash};

/// Keys that a thread remembers to have told, a power of two.
const KEYS: usize = 4096;
/// Bytes of a stack's frames in a record.
pub(super) const FRAMES_BYTES: usize = 32 << 10;

/// A thread's place for it; belongs to the thread that took the ring.
pub(crate) struct Place(UnsafeCell<Option<NonNull<StackState>>>);

// SAFETY: only used by the thread that took the ring.
unsafe impl Sync for Place {}

impl Place {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// The state for this attachment; the first time it is made.
    ///
    /// # Safety
    /// The calling thread took the ring that this belongs to, and holds no other reference to the
    /// state.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the place is a cell owned by one thread")]
    pub(super) unsafe fn state(&self, attachment: u64) -> Option<&mut StackState> {
        // SAFETY: the thread's own cell (caller).
        let place = unsafe { &mut *self.0.get() };
        let state = match *place {
            Some(state) => state,
            None => *place.insert(StackState::make()?),
        };
        // SAFETY: made by `make`, never freed, and no other reference to it (caller).
        let state = unsafe { &mut *state.as_ptr() };
        if state.attachment != attachment {
            state.attachment = attachment;
            state.keys = [0; KEYS];
        }
        Some(state)
    }
}

/// All of a thread's memory for stacks.
pub(super) struct StackState {
    /// Attachment whose collector was told of `keys`.
    attachment: u64,
    keys: [u64; KEYS],
    pub(super) native: [NativeFrame; MOST_NATIVE],
    pub(super) python: [PythonFrame; MOST_PYTHON],
    pub(super) copies: Copies,
    pub(super) frames: [u8; FRAMES_BYTES],
    /// Stacks that were walked before.
    memo: Memo,
    /// The loaded objects, and unwind rules in them; `None` before the first walk.
    pub(super) unwinding: Option<(Arc<Snapshot>, Rules)>,
}

/// The native frames of a stack, in [`StackState::native`] unless they are remembered.
pub(super) struct Native {
    pub(super) walk: NativeWalk,
    /// [`native_hash`] of them.
    pub(super) hash: u64,
    /// They are those of a former walk, and are not in the buffer.
    pub(super) remembered: bool,
}

impl StackState {
    #[cold]
    fn make() -> Option<NonNull<StackState>> {
        let state = memory::map(size_of::<StackState>())?.cast::<StackState>();
        // SAFETY: zeroed pages, which all fields but the last are valid as; that is written here.
        unsafe { (&raw mut (*state.as_ptr()).unwinding).write(None) };
        Some(state)
    }

    /// Brings the loaded objects up to date. Allocates where they have changed. `None` where that
    /// cannot be done here.
    #[inline]
    pub(super) fn refresh(&mut self, bounds: &Bounds) -> Option<()> {
        let counts = objects::counts();
        match &self.unwinding {
            Some((snapshot, _)) if snapshot.counts == counts => Some(()),
            _ => self.renew(bounds),
        }
    }

    #[cold]
    fn renew(&mut self, bounds: &Bounds) -> Option<()> {
        if !bounds.have_room() {
            return None;
        }
        // Rules of the old objects go with them.
        self.unwinding = None;
        self.memo.forget();
        self.unwinding = Some((objects::current()?, Rules::new()));
        Some(())
    }

    /// The stack without native frames.
    pub(super) fn no_native(&self) -> Native {
        self.found(NativeWalk { count: 0, cut: false })
    }

    /// The native frames from here, if they are known to be those of a former walk.
    #[inline]
    pub(super) fn remembered(
        &self,
        bounds: &Bounds,
        here: Registers,
        site: HookSite,
    ) -> Option<Native> {
        let (walk, hash) = self.memo.find(bounds.get(), here, site)?;
        Some(Native { walk, hash, remembered: true })
    }

    /// Walks from here, which belongs to a function that is still running, and may remember it.
    pub(super) fn walked(
        &mut self,
        bounds: &Bounds,
        here: Registers,
        site: HookSite,
    ) -> Option<Native> {
        self.walk_again(bounds, here).map(|walk| {
            let found = self.found(walk);
            if let Some((snapshot, rules)) = self.unwinding.as_mut() {
                let mut learner = Learner { snapshot, rules, bounds, frames: &mut self.native };
                self.memo.learn(&mut learner, here, site, (found.walk, found.hash));
            }
            found
        })
    }

    /// Writes the frames from here into the buffer.
    pub(super) fn walk_again(&mut self, bounds: &Bounds, here: Registers) -> Option<NativeWalk> {
        let (snapshot, rules) = self.unwinding.as_mut()?;
        let (copies, frames) = (&mut self.copies, &mut self.native);
        Some(native::walk(snapshot, rules, bounds, here, copies, frames))
    }

    /// Walks from where a signal has interrupted the thread.
    pub(super) fn walked_interrupted(&mut self, bounds: &Bounds, at: Registers) -> Option<Native> {
        let (snapshot, rules) = self.unwinding.as_mut()?;
        let (copies, frames) = (&mut self.copies, &mut self.native);
        let walk = native::walk_interrupted(snapshot, rules, bounds, at, copies, frames);
        Some(self.found(walk))
    }

    fn found(&self, walk: NativeWalk) -> Native {
        let removed = self.unwinding.as_ref().map_or(0, |(snapshot, _)| snapshot.counts.removed);
        let hash = native_hash(removed, walk.cut, &self.native[..walk.count]);
        Native { walk, hash, remembered: false }
    }

    /// Where the key is or would be.
    #[inline]
    fn slots(&self, key: u64) -> [usize; 2] {
        let first = key as usize & (KEYS - 1);
        [first, first ^ 1]
    }

    /// Whether the collector was told what the key stands for.
    #[inline]
    pub(super) fn is_told(&self, key: u64) -> bool {
        self.slots(key).iter().any(|slot| self.keys[*slot] == key)
    }

    pub(super) fn note_told(&mut self, key: u64) {
        let [first, second] = self.slots(key);
        self.keys[second] = self.keys[first];
        self.keys[first] = key;
    }
}
