//! What a launch of a graph costs the engine, as a multiple of a plain kernel launch.
//!
//! Two programs are analysed that differ in one thing: where one launches a kernel, the other
//! launches a graph of 1,000 nodes. Programs are built before the clock starts and hold no race.
//! The figure is the best of several runs; `cargo bench -p streamsan-analysis --bench graphs`.
#![forbid(unsafe_code)]

#[expect(dead_code, unused_imports, reason = "the other bench uses the other shapes")]
mod shapes;

use shapes::{Around, Program, graph_launches};
use std::time::{Duration, Instant};
use streamsan_analysis::{Engine, Options, Sink};
use streamsan_model::{Edge, Finding, Lint};

const LAUNCHES: u32 = 10_000;
const NODES: u32 = 1_000;
const RUNS: usize = 7;

/// Keeps nothing.
#[derive(Default)]
struct Count {
    findings: u64,
}

impl Sink for Count {
    fn edge(&mut self, edge: &Edge) {
        std::hint::black_box(edge);
    }

    fn finding(&mut self, finding: Finding) {
        std::hint::black_box(finding);
        self.findings += 1;
    }

    fn lint(&mut self, lint: Lint) {
        std::hint::black_box(lint);
    }
}

/// The time of the best run.
fn time(program: &Program) -> Duration {
    let run = || {
        let begin = Instant::now();
        let mut engine = Engine::new(Options::default());
        let mut count = Count::default();
        for item in program.items() {
            engine.feed(item, &mut count);
        }
        engine.finish(&mut count);
        let time = begin.elapsed();
        assert_eq!(count.findings, 0, "the shapes are free of races");
        time
    };
    (0..RUNS).map(|_| run()).min().unwrap_or_default()
}

fn main() {
    println!("{LAUNCHES} launches of a graph of {NODES} nodes against {LAUNCHES} kernel launches");
    println!("{:42} {:>9} {:>12} {:>12} {:>6}", "", "buffers", "graph", "kernel", "ratio");
    for (name, around) in [
        ("launches only", Around::Nothing),
        ("copy in, launch, copy out", Around::Copies),
        ("and a synchronization after each", Around::CopiesAndSynchronization),
        ("two streams in turn", Around::TwoStreams),
    ] {
        for buffers in [100, 1_000] {
            let graph = time(&graph_launches(LAUNCHES, Some(NODES), buffers, around));
            let kernel = time(&graph_launches(LAUNCHES, None, buffers, around));
            let each = |time: Duration| format!("{:.0} ns", time.as_nanos() as f64 / 1e4);
            let ratio = graph.as_secs_f64() / kernel.as_secs_f64();
            println!(
                "{name:42} {buffers:>9} {:>12} {:>12} {ratio:>6.2}",
                each(graph),
                each(kernel)
            );
        }
    }
}
