//! The cost of a call's stack to the program: the same hooked call from the same depth, with stacks
//! and without, from a place seen before and from new ones.
//!
//! Each measurement is a process of its own under the runtime, whose records are read while it
//! runs. Processes with and without stacks take turns, and medians of their medians are compared.

use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use streamsan_testing::fake_driver;
use streamsan_wire::{RUN_DIR_VARIABLE, RingOptions, RunDirectory, StackMode};

const CHILD: &str = "STREAMSAN_BENCH_CHILD";
const ROUNDS: usize = 7;
/// Calls in a sample: their records fit a ring.
const SAMPLE: u32 = 500;
const SAMPLES: usize = 200;
/// Frames of the program's own around the call.
const DEPTHS: [u32; 4] = [1, 10, 30, 60];

type Copy = unsafe extern "C" fn(u64, *const c_void, u64, u64) -> i32;

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return measure();
    }
    let drivers = tempfile::tempdir().expect("a directory for the driver");
    fake_driver::build(drivers.path());
    let native = StackMode { native: true, python: false };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(run(drivers.path(), StackMode::OFF));
        with.push(run(drivers.path(), native));
    }
    println!(
        "{:>24} {:>12} {:>12} {:>12} {:>8}",
        "", "off, ns", "native, ns", "added, ns", "ratio"
    );
    let mut names = DEPTHS.map(|depth| format!("{depth} frames, seen before")).to_vec();
    names.push("30 frames, new".to_owned());
    names.push("30 of 1,024 places".to_owned());
    for (row, name) in names.iter().enumerate() {
        let of = |runs: &[Vec<f64>]| median(runs.iter().map(|run| run[row]).collect());
        let (off, on) = (of(&without), of(&with));
        println!("{name:>24} {off:>12.1} {on:>12.1} {:>12.1} {:>8.2}", on - off, on / off);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs one process; answers its measurements, in ns a call.
fn run(drivers: &Path, stacks: StackMode) -> Vec<f64> {
    let options = RingOptions { ring_bytes: 1 << 20, stacks, ..RingOptions::default() };
    let mut directory = RunDirectory::create(options).expect("a run directory");
    let bench = std::env::current_exe().expect("own path");
    let child = Command::new(&bench)
        .env("LD_PRELOAD", bench.with_file_name("libstreamsan_runtime.so"))
        .env("LD_LIBRARY_PATH", drivers)
        .env(RUN_DIR_VARIABLE, directory.path())
        .env(CHILD, "")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the bench starts");
    let child = std::thread::spawn(move || child.wait_with_output().expect("a child"));
    while !child.is_finished() {
        directory.drain(usize::MAX, &mut |_| {}).expect("readable rings");
        directory.release();
        std::thread::sleep(Duration::from_micros(200));
    }
    let dropped: u64 = directory.processes().iter().map(|process| process.dropped).sum();
    assert_eq!(dropped, 0, "nothing may be dropped");
    let output = child.join().expect("the child's output");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn measure() {
    // SAFETY: NUL-terminated names of the tests' driver, whose function has this signature.
    let copy: Copy = unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!driver.is_null(), "the tests' driver is found");
        let name: &CStr = c"cuMemcpyHtoDAsync_v2";
        std::mem::transmute(libc::dlsym(driver, name.as_ptr()))
    };
    for depth in DEPTHS {
        println!("{}", within(depth, 0, &mut || sampled(copy)));
    }
    // Each call from a place of its own: which function of each level calls the next.
    let mut path = 0;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES / 4 {
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        for _ in 0..100 {
            path += 1;
            // SAFETY: the tests' driver reads nothing through the pointers.
            within(30, path, &mut || f64::from(unsafe { copy(1, std::ptr::null(), 4, 7) }));
        }
        samples.push(start.elapsed().as_nanos() as f64 / 100.0);
    }
    println!("{}", median(samples));
    // As in a large program: many places, each of them seen before.
    let mut random = 1u64;
    let mut paths = [[0u16; 30]; 250];
    for place in paths.iter_mut().flatten() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        *place = (random % 1024) as u16;
    }
    let round = || {
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        for path in &paths {
            // SAFETY: the tests' driver reads nothing through the pointers.
            along(path, &mut || f64::from(unsafe { copy(1, std::ptr::null(), 4, 7) }));
        }
        start.elapsed().as_nanos() as f64 / paths.len() as f64
    };
    println!("{}", median((0..SAMPLES).map(|_| round()).collect()));
}

/// Runs `inner` below a frame of each of these places.
fn along(path: &[u16], inner: &mut dyn FnMut() -> f64) -> f64 {
    match path {
        [] => inner(),
        [first, rest @ ..] => PLACES[usize::from(*first)](rest, inner),
    }
}

type Place = fn(&[u16], &mut dyn FnMut() -> f64) -> f64;

#[inline(never)]
fn place<const ROW: usize, const COLUMN: usize>(
    rest: &[u16],
    inner: &mut dyn FnMut() -> f64,
) -> f64 {
    black_box(along(rest, inner)) + black_box((32 * ROW + COLUMN) as f64)
}

static PLACES: [Place; 1024] = {
    macro_rules! row {
        ($row:literal: $($column:literal)*) => { [$(place::<$row, $column> as Place),*] };
    }
    macro_rules! rows {
        ($($row:literal)*) => {
            [$(row!($row: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
                16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)),*]
        };
    }
    let rows: [[Place; 32]; 32] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
        16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    let mut all = [place::<0, 0> as Place; 1024];
    let mut at = 0;
    while at < 1024 {
        all[at] = rows[at / 32][at % 32];
        at += 1;
    }
    all
};

/// The median of samples of the call, in ns.
fn sampled(copy: Copy) -> f64 {
    let sample = || {
        // Lets the collector empty the ring.
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        for _ in 0..SAMPLE {
            // SAFETY: the tests' driver reads nothing through the pointers.
            unsafe { copy(0x1000, std::ptr::null(), 4096, 0x77) };
        }
        start.elapsed().as_nanos() as f64 / f64::from(SAMPLE)
    };
    median((0..SAMPLES).map(|_| sample()).collect())
}

/// Runs `inner` below so many frames; the bits of `path` say which of two functions each is.
fn within(depth: u32, path: u64, inner: &mut dyn FnMut() -> f64) -> f64 {
    match (depth, path & 1) {
        (0, _) => inner(),
        (_, 0) => even(depth, path, inner),
        _ => odd(depth, path, inner),
    }
}

#[inline(never)]
fn even(depth: u32, path: u64, inner: &mut dyn FnMut() -> f64) -> f64 {
    black_box(within(depth - 1, path >> 1, inner))
}

#[inline(never)]
fn odd(depth: u32, path: u64, inner: &mut dyn FnMut() -> f64) -> f64 {
    black_box(within(depth - 1, path >> 1, inner)) + black_box(0.0)
}
