//! What a thread needs to record stacks: in memory of its own that stays with its ring, so that a
//! later thread uses it again.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use std::sync::Arc;

use super::native::{Bounds, Copies};
use super::objects::{self, Snapshot};
use super::python::PythonFrame;
use super::python::merge::NativeFrame;
use super::rules::Rules;
use super::{MOST_NATIVE, MOST_PYTHON, memory};

/// Keys that a thread remembers to have told, a power of two.
const KEYS: usize = 4096;
/// Bytes of a stack's frames in a record.
pub(super) const FRAMES_BYTES: usize = 32 << 10;

/// A thread's place for it; belongs to the thread that took the ring.
pub(crate) struct Place(UnsafeCell<Option<NonNull<State>>>);

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
    pub(super) unsafe fn state(&self, attachment: u64) -> Option<&mut State> {
        // SAFETY: the thread's own cell (caller).
        let place = unsafe { &mut *self.0.get() };
        let state = match *place {
            Some(state) => state,
            None => *place.insert(State::make()?),
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
pub(super) struct State {
    /// Attachment whose collector was told of `keys`.
    attachment: u64,
    keys: [u64; KEYS],
    pub(super) native: [NativeFrame; MOST_NATIVE],
    pub(super) python: [PythonFrame; MOST_PYTHON],
    pub(super) copies: Copies,
    pub(super) frames: [u8; FRAMES_BYTES],
    /// The loaded objects, and unwind rules in them; `None` before the first walk.
    pub(super) unwinding: Option<(Arc<Snapshot>, Rules)>,
}

impl State {
    #[cold]
    fn make() -> Option<NonNull<State>> {
        let state = memory::map(size_of::<State>())?.cast::<State>();
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
        self.unwinding = Some((objects::current()?, Rules::new()));
        Some(())
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
