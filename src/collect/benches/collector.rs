//! The collector's work for a record behind the rings, and the resolver's cost of a launch.
//!
//! `cargo bench -p streamsan-collect` runs everything, `-- launch` the resolver's share of a launch.
#![forbid(unsafe_code)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use streamsan_collect::measure::{KnownBy, Launches, Pipeline};
use streamsan_store::Meta;

/// Rounds of the program that is recorded.
const ROUNDS: u64 = 20_000;
/// Launches that are resolved at a time: the clock is read once for all of them.
const LAUNCHES: u64 = 10_000;
/// Accesses of the kernel: one buffer is read, the other one is written.
const ACCESSES: usize = 2;

fn main() {
    divan::main();
}

fn meta() -> Meta {
    Meta {
        tool_version: String::new(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: Vec::new(),
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    }
}

/// Records a second through merge, resolver, engine and store, until the trace is closed.
#[divan::bench(sample_count = 10)]
fn records(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(ROUNDS * Pipeline::RECORDS))
        .with_inputs(|| tempfile::tempdir().expect("a directory"))
        .bench_local_values(|directory| {
            let trace = directory.path().join("trace.db");
            let mut pipeline = Pipeline::new(&trace, &meta()).expect("the trace is made");
            (0..ROUNDS).for_each(|_| pipeline.round());
            let mut recording = pipeline.finish();
            assert_eq!(recording.findings.iter_mut().count(), 0, "the program is free of races");
            assert!(recording.reasons.is_empty(), "{:?}", recording.reasons);
            directory
        });
}

fn launches(bencher: Bencher<'_, '_>, known_by: KnownBy, arguments: impl Fn(u64) -> (u64, u64)) {
    let mut launches = Launches::new(known_by);
    let mut n = 0;
    bencher.counter(ItemsCount::new(LAUNCHES)).bench_local(|| {
        for _ in 0..LAUNCHES {
            let (threads, offset) = arguments(n);
            n += 1;
            assert_eq!(black_box(launches.launch(threads, offset)), ACCESSES);
        }
    });
}

/// A launch that is known by its words.
#[divan::bench]
fn launch_by_words(bencher: Bencher<'_, '_>) {
    launches(bencher, KnownBy::Words, |_| (32, 0));
}

/// A launch that is known by its code, with the same arguments each time.
#[divan::bench]
fn launch_by_code(bencher: Bencher<'_, '_>) {
    launches(bencher, KnownBy::Code, |_| (32, 0));
}

/// The same with 512 different arguments.
#[divan::bench]
fn launch_by_code_of_512(bencher: Bencher<'_, '_>) {
    launches(bencher, KnownBy::Code, |n| (32, 4 * (n % 512)));
}

/// The same with another size of the block each time, about: little is there to be looked up.
#[divan::bench]
fn launch_by_code_always_new(bencher: Bencher<'_, '_>) {
    launches(bencher, KnownBy::Code, |n| (1 + n % (1 << 20), 0));
}
