//! The engine's cost of a graph launch, as a multiple of a plain kernel launch.
//!
//! Two programs are analysed that differ in one thing: where one launches a kernel, the other
//! launches a graph of 1,000 nodes. Programs are built before the clock starts and hold no race.
//! The figures are the best of several runs by turns: `cargo bench -p streamsan-analysis --bench
//! graphs`.
#![forbid(unsafe_code)]

#[expect(dead_code, unused_imports, reason = "the other bench uses the other shapes")]
mod shapes;

use shapes::{Around, Program, graph_launches};
use std::time::{Duration, Instant};
use streamsan_analysis::{Engine, Options, Sink};
use streamsan_model::{Edge, Finding, Lint};

const LAUNCHES: u32 = 10_000;
const NODES: u32 = 1_000;
const RUNS: usize = 15;

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

fn run(program: &Program) -> Duration {
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
}

/// The best runs of both, taken by turns.
fn time(graph: &Program, kernel: &Program) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        best.0 = best.0.min(run(graph));
        best.1 = best.1.min(run(kernel));
    }
    best
}

fn main() {
    println!("{LAUNCHES} launches of a graph of {NODES} nodes against {LAUNCHES} kernel launches");
    println!("{:42} {:>9} {:>12} {:>12} {:>6}", "", "buffers", "graph", "kernel", "ratio");
    for (name, around) in [
        ("launches only", Around::Nothing),
        ("copy in, launch, copy out", Around::Copies),
        ("and a synchronization after each", Around::CopiesAndSynchronization),
        ("two streams in turn", Around::TwoStreams),
        ("ten other kernels after each", Around::OtherKernels),
        ("two graphs in turn that share all buffers", Around::TwoGraphs),
    ] {
        for buffers in [100, 1_000] {
            let program = |nodes| graph_launches(LAUNCHES, nodes, buffers, around);
            let (graph, kernel) = time(&program(Some(NODES)), &program(None));
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
