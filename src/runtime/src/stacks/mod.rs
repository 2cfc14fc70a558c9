//! Where a call comes from: the stack of the calling thread at each hooked call that a finding can
//! be about.
//!
//! A stack gets a key, a hash of its frames. What a key stands for is told once ([`describe`]); a
//! stack seen before costs a walk and a look-up. Nothing is allocated then, and no lock is held
//! but the loader's, for a moment, before the walk.
//!
//! Invariants: the stack is read within its bounds only; whatever goes wrong, the call has no
//! stack and everything else goes on.

mod describe;
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
use native::Walk;
use python::PythonFrame;
use python::merge::NativeFrame;

pub(crate) use native::{Bounds, Registers};
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
    // What the driver calls itself comes from where the program called it.
    if mode.is_off() || thread.depth.get() > 0 || !api.is_worth_a_stack() {
        return 0;
    }
    of_thread(thread, attachment, mode)
}

/// The same for what a host thread says of itself.
pub(crate) fn of_host_call(thread: &Thread, attachment: &Attachment, call: HostCall) -> u64 {
    let mode = attachment.control.stacks();
    if mode.is_off() || !call.is_worth_a_stack() {
        return 0;
    }
    of_thread(thread, attachment, mode)
}

/// The same for a thread that a signal has interrupted, in its handler.
pub(crate) fn of_interrupted(thread: &Thread, attachment: &Attachment, at: Registers) -> u64 {
    let mode = attachment.control.stacks();
    if mode.is_off() {
        return 0;
    }
    thread.stack_bounds.be_quiet(true);
    let key = of_place(thread, attachment, mode, Some(at));
    thread.stack_bounds.be_quiet(false);
    key
}

#[inline(never)]
fn of_thread(thread: &Thread, attachment: &Attachment, mode: StackMode) -> u64 {
    of_place(thread, attachment, mode, None)
}

#[inline]
fn of_place(
    thread: &Thread,
    attachment: &Attachment,
    mode: StackMode,
    at: Option<Registers>,
) -> u64 {
    if BROKEN.load(Ordering::Relaxed) {
        return 0;
    }
    let key = catch_unwind(AssertUnwindSafe(|| capture(thread, attachment, mode, at)));
    key.unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        None
    })
    .unwrap_or(0)
}

fn capture(
    thread: &Thread,
    attachment: &Attachment,
    mode: StackMode,
    at: Option<Registers>,
) -> Option<u64> {
    let place = thread.stack_place(attachment)?;
    // SAFETY: the ring is this thread's; the reference ends with this call, and `busy` keeps calls
    // of our own code and of signal handlers from coming here meanwhile.
    let state = unsafe { place.state(attachment.number) }?;
    state.refresh(&thread.stack_bounds)?;
    let (snapshot, rules) = state.unwinding.as_mut()?;
    let (bounds, copies) = (&thread.stack_bounds, &mut state.copies);
    let walk = match (mode.native, at) {
        (true, None) => native::walk(snapshot, rules, bounds, copies, &mut state.native),
        (true, Some(at)) => {
            native::walk_interrupted(snapshot, rules, bounds, at, copies, &mut state.native)
        }
        (false, _) => Walk { count: 0, cut: false },
    };
    let python = match mode.python {
        true => python::walk(&mut state.python),
        false => python::Walk { count: 0, cut: false },
    };
    if python.count == 0
        && let Some(refusal) = python::refusal()
    {
        let word = PythonRefusal::to_word(Some(refusal));
        attachment.process.python.store(word, Ordering::Relaxed);
    }
    let (native, python_frames) = (&state.native[..walk.count], &state.python[..python.count]);
    if native.is_empty() && python_frames.is_empty() {
        return None;
    }
    let cut = walk.cut || python.cut;
    let key = key(snapshot.counts.removed, cut, native, python_frames);
    if !state.is_told(key) {
        let found = describe::Found { native: walk.count, python: python.count, cut };
        describe::tell(thread, attachment, state, key, found)?;
        state.note_told(key);
    }
    Some(key)
}

/// Mixes the frames, and how often objects were removed: afterwards an address may mean something
/// else. Never 0.
#[inline]
fn key(removed: u64, cut: bool, native: &[NativeFrame], python: &[PythonFrame]) -> u64 {
    /// Odd, with as many ones as zeroes (the digits of the golden ratio).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    fn mix(hash: u64, word: u64) -> u64 {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(FACTOR)
    }
    let mut hash = mix(mix(0, removed), u64::from(cut) | (native.len() as u64) << 1);
    for frame in native {
        hash = mix(hash, frame.address as u64);
    }
    for frame in python {
        hash = frame.key().into_iter().fold(hash, mix);
    }
    hash.max(1)
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
        let a = frames(&[0x1000, 0x2000]);
        let keys = [
            key(0, false, &a, &[]),
            key(1, false, &a, &[]),
            key(0, true, &a, &[]),
            key(0, false, &frames(&[0x2000, 0x1000]), &[]),
            key(0, false, &frames(&[0x1000]), &[]),
            key(0, false, &frames(&[]), &python),
            key(0, false, &a, &python),
        ];
        let distinct: std::collections::BTreeSet<u64> = keys.into_iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(key(0, false, &a, &[]), keys[0]);
    }
}
