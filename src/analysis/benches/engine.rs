//! Operations a second that the engine analyses, by the shape of the program.
//!
//! An operation is a call: a launch, a record, a wait, a synchronisation. Programs are built
//! before the clock starts, hold no race (but for one), and are analysed from beginning to end.
//! `cargo bench -p streamsan-analysis` runs all of them, `-- arena` one.
#![forbid(unsafe_code)]

#[expect(dead_code, unused_imports, reason = "the other bench uses the other shapes")]
mod shapes;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use shapes::{End, Program};
use std::cell::Cell;
use streamsan_analysis::{Engine, Options, Sink};
use streamsan_model::{Edge, Finding, Lint};

const STREAMS: [u32; 3] = [64, 1_000, 10_000];
/// Operations of a program, about: long enough for the cost of the first touch of a stream or
/// buffer not to show.
const OPERATIONS: u32 = 400_000;

fn main() {
    divan::main();
}

/// Looks at the results as a report would, and keeps none.
#[derive(Default)]
struct Count {
    edges: u64,
    findings: u64,
}

impl Sink for Count {
    fn edge(&mut self, edge: &Edge) {
        black_box(edge);
        self.edges += 1;
    }

    fn finding(&mut self, finding: Finding) {
        black_box(finding);
        self.findings += 1;
    }

    fn lint(&mut self, lint: Lint) {
        black_box(lint);
    }
}

fn measure(bencher: Bencher<'_, '_>, program: &Program) {
    measure_findings(bencher, program, |findings| {
        assert_eq!(findings, 0, "the shape is free of races");
    });
}

/// Gives the number of findings to `look`.
fn measure_findings(bencher: Bencher<'_, '_>, program: &Program, look: impl Fn(u64)) {
    let operations = ItemsCount::new(program.operations());
    bencher.counter(operations).bench_local(|| {
        let mut engine = Engine::new(Options::default());
        let mut count = Count::default();
        for item in program.items() {
            engine.feed(item, &mut count);
        }
        engine.finish(&mut count);
        look(count.findings);
        // Returned, so that taking it down is not measured.
        engine
    });
}

/// One stream forks to all others and joins them, over and over.
#[divan::bench(args = STREAMS, sample_count = 3, sample_size = 1)]
fn fork_join(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::fork_join(streams, OPERATIONS, false));
}

/// The same with a context synchronisation after every round.
#[divan::bench(args = STREAMS, sample_count = 3, sample_size = 1)]
fn fork_join_synchronised(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::fork_join(streams, OPERATIONS, true));
}

/// Every stream exchanges borders with its two neighbours.
#[divan::bench(args = STREAMS, sample_count = 3, sample_size = 1)]
fn halo_ring(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::halo_ring(streams, OPERATIONS));
}

/// Streams wait for random others.
#[divan::bench(args = STREAMS, sample_count = 3, sample_size = 1)]
fn random_waits(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::random_waits(streams, OPERATIONS));
}

/// Random pieces of one large allocation.
#[divan::bench(args = [4, 16], sample_count = 3, sample_size = 1)]
fn arena(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::arena(streams, OPERATIONS));
}

/// Tensors of a framework in its pool.
#[divan::bench(args = [1, 4], sample_count = 3, sample_size = 1)]
fn pool(bencher: Bencher<'_, '_>, streams: u32) {
    measure(bencher, &shapes::pool(streams, OPERATIONS / 10));
}

/// Copies from ordinary host memory to so many buffers before each synchronisation.
#[divan::bench(args = [1, 100, 5_000], sample_count = 3, sample_size = 1)]
fn copies(bencher: Bencher<'_, '_>, buffers: u32) {
    measure_decided(bencher, &shapes::copies(buffers, OPERATIONS / 10));
}

/// The same in so many streams side by side.
#[divan::bench(args = [(2, 1_000), (8, 1_000)], sample_count = 3, sample_size = 1)]
fn racy_copies(bencher: Bencher<'_, '_>, (streams, buffers): (u32, u32)) {
    let program = shapes::racy_copies(streams, buffers, OPERATIONS / 10);
    let found = Cell::new(0);
    measure_findings(bencher, &program, |findings| found.set(findings));
    eprintln!("{} findings", found.get());
}

/// A given number of streams, each with a given number of copies, are created, synchronised and
/// destroyed.
#[divan::bench(
    args = [(1_000, 1), (10_000, 1), (100_000, 1), (1_000, 100)],
    sample_count = 3,
    sample_size = 1
)]
fn short_lived(bencher: Bencher<'_, '_>, (streams, copies): (u32, u32)) {
    measure_decided(bencher, &shapes::short_lived(streams, copies, End::Synchronised));
}

/// A given number of streams read one buffer and are destroyed without a wait for them.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 3, sample_size = 1)]
fn left_behind(bencher: Bencher<'_, '_>, streams: u32) {
    measure_decided(bencher, &shapes::short_lived(streams, 1, End::Left));
}

/// Says what was too much to keep, which leaves the verdict open.
fn measure_decided(bencher: Bencher<'_, '_>, program: &Program) {
    let mut engine = Engine::new(Options::default());
    let mut count = Count::default();
    program.items().iter().for_each(|item| engine.feed(item, &mut count));
    let statistics = engine.statistics();
    eprintln!(
        "{} of {} accesses dropped, {} chains",
        statistics.antichain_overflows, statistics.accesses, statistics.chains
    );
    measure(bencher, program);
}

/// Streams in one pool, which wait for each other after every so many launches only.
#[divan::bench(args = [(2, 10), (2, 100), (2, 1_000), (8, 200)], sample_count = 3, sample_size = 1)]
fn racy_pool(bencher: Bencher<'_, '_>, (streams, launches): (u32, u32)) {
    let program = shapes::racy_pool(streams, launches, OPERATIONS / 100);
    let findings = Cell::new(None);
    measure_findings(bencher, &program, |found| {
        assert!(found > 0 && findings.replace(Some(found)).is_none_or(|before| before == found));
    });
    if let Some(findings) = findings.get() {
        eprintln!("{findings} findings");
    }
}
