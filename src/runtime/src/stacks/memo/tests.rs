//! Each stack is looked up and walked: what is remembered must be what a walk finds.

use std::collections::BTreeSet;
use std::hint::black_box;

use super::*;
use crate::stacks::machine::here;
use crate::stacks::native::{Copies, walk};
use proptest::prelude::*;

/// A thread's memory for stacks.
struct Stacks {
    memo: Box<Memo>,
    snapshot: Snapshot,
    rules: Rules,
    bounds: Bounds,
    copies: Box<Copies>,
    remembered: u32,
    /// Hashes of all stacks, in their order.
    seen: Vec<u64>,
}

impl Stacks {
    fn new() -> Self {
        // SAFETY: both are valid as zeroes.
        let (memo, copies) =
            unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
        Self {
            memo,
            snapshot: Snapshot::of_test(),
            rules: Rules::new(),
            bounds: Bounds::unknown(),
            copies,
            remembered: 0,
            seen: Vec::new(),
        }
    }

    fn distinct(&self) -> usize {
        self.seen.iter().collect::<BTreeSet<_>>().len()
    }

    /// Looks the caller's stack up and walks it.
    #[inline(never)]
    fn look(&mut self) {
        let here = here();
        let site = HookSite::of(Api::cuMemFree_v2);
        let mut frames = [NativeFrame { address: 0, stack: 0 }; MOST_NATIVE];
        let Self { memo, snapshot, rules, bounds, copies, .. } = self;
        let found = walk(snapshot, rules, bounds, here, copies, &mut frames);
        let hash = native_hash(0, found.cut, &frames[..found.count]);
        self.seen.push(hash);
        match memo.find(bounds.get(), here, site) {
            Some(known) => {
                assert_eq!(known, (found, hash));
                self.remembered += 1;
            }
            None => {
                let mut learner = Learner { snapshot, rules, bounds, frames: &mut frames };
                memo.learn(&mut learner, here, site, (found, hash));
            }
        }
        black_box(here);
    }
}

/// Runs `inner` below frames of which two functions, alike but for their addresses, take turns as
/// the bits of `path` say.
fn within(depth: u32, path: u64, inner: &mut dyn FnMut()) {
    match (depth, path & 1) {
        (0, _) => inner(),
        (_, 0) => even(depth, path, inner),
        _ => odd(depth, path, inner),
    }
}

#[inline(never)]
fn even(depth: u32, path: u64, inner: &mut dyn FnMut()) {
    within(black_box(depth) - 1, path >> 1, inner);
    black_box(0);
}

#[inline(never)]
fn odd(depth: u32, path: u64, inner: &mut dyn FnMut()) {
    within(black_box(depth) - 1, path >> 1, inner);
    black_box(1);
}

#[test]
fn a_stack_is_remembered() {
    let mut stacks = Stacks::new();
    for _ in 0..10 {
        within(30, 0b1011, &mut || stacks.look());
    }
    assert_eq!((stacks.distinct(), stacks.remembered), (1, 9));
}

#[test]
fn stacks_as_deep_with_other_frames_are_told_apart() {
    let mut stacks = Stacks::new();
    for _ in 0..3 {
        for path in 0..32 {
            within(12, path, &mut || stacks.look());
        }
    }
    assert_eq!(stacks.distinct(), 32);
    assert!(stacks.remembered > 0);
}

#[test]
fn more_stacks_than_there_is_room_for() {
    let mut stacks = Stacks::new();
    for path in 0..3_000 {
        within(12, path, &mut || stacks.look());
    }
    assert_eq!(stacks.distinct(), 3_000);
    // One that comes again and again is learned at some time.
    let before = stacks.remembered;
    for _ in 0..100 {
        within(12, 4_001, &mut || stacks.look());
    }
    assert!(stacks.remembered > before);
}

#[test]
fn a_stack_cut_short_is_remembered() {
    let mut stacks = Stacks::new();
    for _ in 0..10 {
        within(100, 5, &mut || stacks.look());
    }
    assert_eq!((stacks.distinct(), stacks.remembered), (1, 9));
}

#[test]
fn a_stack_below_a_signal_frame() {
    use std::cell::RefCell;
    thread_local!(static STACKS: RefCell<Option<Stacks>> = const { RefCell::new(None) });
    extern "C" fn handler(_: libc::c_int) {
        STACKS.with_borrow_mut(|stacks| {
            if let Some(stacks) = stacks {
                stacks.look();
            }
        });
    }
    STACKS.set(Some(Stacks::new()));
    // SAFETY: the handler has this signature, and nothing else in this process uses the signal.
    unsafe { libc::signal(libc::SIGUSR2, handler as *const () as usize) };
    for path in 0..40 {
        // SAFETY: raises a signal that is handled.
        within(8, path % 4, &mut || unsafe {
            libc::raise(libc::SIGUSR2);
        });
    }
    let stacks = STACKS.take().expect("the stacks");
    assert_eq!(stacks.seen.len(), 40);
}

#[test]
fn objects_that_change_make_it_forget() {
    let mut stacks = Stacks::new();
    for round in 0..4 {
        if round == 2 {
            stacks.memo.forget();
        }
        within(5, 0, &mut || stacks.look());
    }
    assert_eq!(stacks.remembered, 2);
}

#[test]
fn another_thread_has_other_bounds() {
    let mut stacks = Stacks::new();
    let mut rounds = || {
        for _ in 0..4 {
            within(5, 0, &mut || stacks.look());
        }
        // The next thread's, in the same memory perhaps.
        stacks.bounds = Bounds::unknown();
    };
    for size in [1 << 20, 2 << 20] {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(size);
            thread.spawn_scoped(scope, &mut rounds).expect("a thread").join().expect("its end");
        });
    }
    assert!(stacks.remembered >= 6, "{}", stacks.remembered);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn what_is_remembered_is_what_a_walk_finds(
        paths in prop::collection::vec((0u32..40, 0u64..8), 1..200),
    ) {
        let mut stacks = Stacks::new();
        for (depth, path) in paths {
            within(depth, path, &mut || stacks.look());
        }
    }
}
