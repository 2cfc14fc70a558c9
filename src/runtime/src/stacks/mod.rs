//! Where a call comes from: the stack of the calling thread at each hooked call that a finding can
//! be about.
//!
//! A stack gets a key, a hash of its frames. What a key stands for is told once ([`describe`]); a
//! stack seen before costs a look at the words that told the frames before ([`memo`]), or a walk, and
//! a look-up. Nothing is allocated then, and no lock is held but the loader's, for a moment, before
//! the walk.
//!
//! Invariants: the stack is read within its bounds only; whatever goes wrong, the call has no
//! stack and everything else goes on.

mod describe;
mod machine;
mod memo;
mod memory;
mod native;
mod objects;
pub(crate) mod python;
mod rules;
mod sections;
mod state;

use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use streamsan_wire::{Api, HostCall, PythonRefusal, StackMode};

use crate::attach::Attachment;
use crate::thread::Thread;
use python::PythonFrame;
use python::merge::NativeFrame;

pub(crate) use machine::Registers;
pub(crate) use native::Bounds;
pub(crate) use state::Place;

/// Native frames of a stack at most.
const MOST_NATIVE: usize = 64;
/// Python frames of a stack at most.
const MOST_PYTHON: usize = 64;

/// Something in here went wrong: no more stacks in this process.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// The key of the calling thread's stack for the call that is about to be recorded, 0 for none.
/// Tells the collector what the key stands for where it does not know yet.
#[inline]
pub(crate) fn of_call(thread: &Thread, attachment: &Attachment, api: Api) -> u64 {
    let mode = attachment.control.stacks();
    // The driver's own calls come from where the program called it.
    if mode.is_off() || thread.depth.get() > 0 || !api.is_worth_a_stack() {
        return 0;
    }
    of_thread(thread, attachment, mode, memo::HookSite::of(api))
}

/// The same for what a host thread says of itself.
pub(crate) fn of_host_call(thread: &Thread, attachment: &Attachment, call: HostCall) -> u64 {
    let mode = attachment.control.stacks();
    if mode.is_off() || !call.is_worth_a_stack() {
        return 0;
    }
    of_thread(thread, attachment, mode, memo::HookSite::of_host(call))
}

/// The same for a thread that a signal has interrupted, in its handler.
pub(crate) fn of_interrupted(thread: &Thread, attachment: &Attachment, at: Registers) -> u64 {
    let mode = attachment.control.stacks();
    if mode.is_off() {
        return 0;
    }
    thread.stack_bounds.be_quiet(true);
    let key = of_place(thread, attachment, mode, Start::Interrupted(at));
    thread.stack_bounds.be_quiet(false);
    key
}

/// Where a stack begins.
#[derive(Clone, Copy)]
enum Start {
    /// At the hook of this call.
    Hook(memo::HookSite),
    /// Where a signal has interrupted the thread.
    Interrupted(Registers),
}

#[inline(never)]
fn of_thread(
    thread: &Thread,
    attachment: &Attachment,
    mode: StackMode,
    site: memo::HookSite,
) -> u64 {
    of_place(thread, attachment, mode, Start::Hook(site))
}

#[inline]
fn of_place(thread: &Thread, attachment: &Attachment, mode: StackMode, from: Start) -> u64 {
    if BROKEN.load(Ordering::Relaxed) {
        return 0;
    }
    let key = catch_unwind(AssertUnwindSafe(|| capture(thread, attachment, mode, from)));
    key.unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        None
    })
    .unwrap_or(0)
}

fn capture(thread: &Thread, attachment: &Attachment, mode: StackMode, from: Start) -> Option<u64> {
    let place = thread.stack_place(attachment)?;
    // SAFETY: the ring is this thread's; the reference ends with this call, and `busy` keeps calls
    // of our own code and of signal handlers from coming here meanwhile.
    let state = unsafe { place.state(attachment.number) }?;
    let bounds = &thread.stack_bounds;
    state.refresh(bounds)?;
    // This function runs until the stack is told, so what lies above here stays.
    let here = machine::here();
    let found = match (mode.native, from) {
        (false, _) => state.no_native(),
        (true, Start::Hook(site)) => match state.remembered(bounds, here, site) {
            Some(found) => found,
            None => state.walked(bounds, here, site)?,
        },
        (true, Start::Interrupted(at)) => state.walked_interrupted(bounds, at)?,
    };
    let python = match mode.python {
        true => python::walk(&mut state.python),
        false => python::PythonWalk { count: 0, cut: false },
    };
    if python.count == 0
        && let Some(refusal) = python::refusal()
    {
        let word = PythonRefusal::to_word(Some(refusal));
        attachment.process.python.store(word, Ordering::Relaxed);
    }
    if found.walk.count == 0 && python.count == 0 {
        return None;
    }
    let key = key(found.hash, python.cut, &state.python[..python.count]);
    if !state.is_told(key) {
        if found.remembered {
            state.walk_again(bounds, here)?;
        }
        let cut = found.walk.cut || python.cut;
        let found = describe::StackLengths { native: found.walk.count, python: python.count, cut };
        describe::tell(thread, attachment, state, key, found)?;
        state.note_told(key);
    }
    Some(key)
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    /// Odd, with as many ones as zeroes (the digits of the golden ratio).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word) * u128::from(FACTOR);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(FACTOR)
}

/// Mixes the native frames, and how often objects were removed: afterwards an address may mean
/// something else.
#[inline]
fn native_hash(removed: u64, cut: bool, frames: &[NativeFrame]) -> u64 {
    let hash = mix(mix(0, removed), u64::from(cut) | (frames.len() as u64) << 1);
    frames.iter().fold(hash, |hash, frame| mix(hash, frame.address as u64))
}

/// Mixes the Python frames with the native ones. Never 0.
#[inline]
fn key(native: u64, cut: bool, python: &[PythonFrame]) -> u64 {
    let mut hash = native;
    if cut || !python.is_empty() {
        hash = mix(hash, u64::from(cut) | (python.len() as u64) << 1);
    }
    for frame in python {
        hash = frame.key().into_iter().fold(hash, mix);
    }
    hash.max(1)
}

/// Whether a caller of the call at hand lies in a file whose path is accepted. Whatever stacks the run
/// records; where the stack cannot be walked, none does.
pub(crate) fn is_below(
    thread: &Thread,
    attachment: &Attachment,
    accept: impl Fn(&[u8]) -> bool,
) -> bool {
    if BROKEN.load(Ordering::Relaxed) {
        return false;
    }
    let walk = catch_unwind(AssertUnwindSafe(|| {
        let place = thread.stack_place(attachment)?;
        // SAFETY: as in `capture`.
        let state = unsafe { place.state(attachment.number) }?;
        state.refresh(&thread.stack_bounds)?;
        let (snapshot, rules) = state.unwinding.as_mut()?;
        let (bounds, copies) = (&thread.stack_bounds, &mut state.copies);
        let here = machine::here();
        let walk = native::walk(snapshot, rules, bounds, here, copies, &mut state.native);
        let callers = &state.native[..walk.count];
        let mut objects = callers.iter().filter_map(|frame| snapshot.find(frame.address - 1));
        Some(objects.any(|object| accept(object.path())))
    }));
    walk.unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        None
    })
    .unwrap_or(false)
}

/// The calling process is a forked child.
pub(crate) fn restart() {
    objects::restart();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(addresses: &[usize]) -> Vec<NativeFrame> {
        addresses.iter().map(|&address| NativeFrame { address, stack: 0 }).collect()
    }

    #[test]
    fn keys_tell_stacks_apart() {
        let python = [PythonFrame { code: 8, ..PythonFrame::default() }];
        let key = |removed, cut, python_cut, native: &[NativeFrame], python: &[PythonFrame]| {
            key(native_hash(removed, cut, native), python_cut, python)
        };
        let a = frames(&[0x1000, 0x2000]);
        let keys = [
            key(0, false, false, &a, &[]),
            key(1, false, false, &a, &[]),
            key(0, true, false, &a, &[]),
            key(0, false, true, &a, &[]),
            key(0, false, false, &frames(&[0x2000, 0x1000]), &[]),
            key(0, false, false, &frames(&[0x1000]), &[]),
            key(0, false, false, &frames(&[]), &python),
            key(0, false, false, &a, &python),
            key(0, false, true, &a, &python),
        ];
        let distinct: std::collections::BTreeSet<u64> = keys.into_iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(key(0, false, false, &a, &[]), keys[0]);
    }
}
