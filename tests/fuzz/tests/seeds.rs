//! Every fuzz target over its seeds and a fixed number of mutations of them, without coverage: what
//! each change must pass. The mutations are the same in every run; `STREAMSAN_FUZZ_RUNS` asks for
//! another number of them.
//!
//! An input that takes too much memory or does not end must not take the machine with it: the
//! allocator counts, and somebody watches the clock. Both write the input down and end the process.

use libtest_mimic::{Arguments, Failed, Trial};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use streamsan_fuzz::mutate::Random;
use streamsan_fuzz::{TARGETS, Target};

/// Bytes that all inputs in hand may take together.
const MOST_MEMORY: usize = 1 << 30;
/// No input takes a hundredth of it, on any machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Mutations of a target that reads files, and of another.
const RUNS: [u64; 2] = [500, 5000];

static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

// SAFETY: the system's allocator does the work; sizes are counted beside it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        if taken.saturating_add(layout.size()) > MOST_MEMORY {
            // Room for the message.
            TAKEN.store(0, Ordering::Relaxed);
            give_up(&format!("{} bytes beside {taken} others were asked for", layout.size()));
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The input in hand of each target, and since when.
static IN_HAND: Mutex<Vec<(&'static str, Vec<u8>, Instant)>> = Mutex::new(Vec::new());

/// Writes the inputs in hand down and ends the process.
fn give_up(why: &str) -> ! {
    eprintln!("{why}; one of these is why:");
    let in_hand = IN_HAND.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, input, _) in in_hand.iter() {
        eprintln!("  {}", keep(name, input).display());
    }
    std::process::abort();
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.input"));
    let _ = fs::write(&path, input);
    path
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let in_hand = IN_HAND.lock().unwrap_or_else(PoisonError::into_inner);
        let late = in_hand.iter().find(|(_, _, since)| since.elapsed() > PATIENCE);
        let late = late.map(|(name, ..)| format!("{name} does not end"));
        drop(in_hand);
        if let Some(why) = late {
            give_up(&why);
        }
    }
}

fn run(target: &Target, input: &[u8]) -> Result<(), Failed> {
    let in_hand = || IN_HAND.lock().unwrap_or_else(PoisonError::into_inner);
    in_hand().push((target.name, input.to_vec(), Instant::now()));
    let outcome = catch_unwind(|| (target.run)(input));
    in_hand().retain(|(name, ..)| *name != target.name);
    outcome.map_err(|_| Failed::from(format!("see {}", keep(target.name, input).display())))
}

fn trial(target: &'static Target) -> Trial {
    Trial::test(target.name, move || {
        let seeds = (target.seeds)();
        seeds.iter().try_for_each(|seed| run(target, seed))?;
        let usual = RUNS[usize::from(target.longest <= 8192 && !target.name.starts_with("trace"))];
        let runs = std::env::var("STREAMSAN_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
        for number in 0..runs.unwrap_or(usual) {
            let mut random = Random(number);
            let mut input = seeds[number as usize % seeds.len()].clone();
            random.mutate(&mut input, &seeds, target.longest);
            run(target, &input)?;
        }
        Ok(())
    })
}

fn main() {
    std::thread::spawn(watch);
    libtest_mimic::run(&Arguments::from_args(), TARGETS.iter().map(trial).collect()).exit();
}
