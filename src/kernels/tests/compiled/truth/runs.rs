//! Random launches of the kernels of a source, and the bytes that they touch.

use std::ops::Range;
use std::time::Duration;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use streamsan_kernels::Directory;
use streamsan_kernels::access::Touch;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::ptx;
use streamsan_kernels::toolkit::Tool;

use super::memory::{Endless, held_pointer, pointer};
use super::sets::merged;
use crate::corpus::{Expected, Source, Values};
use streamsan_interp::{AccessLog, Execution, FaultKind, Launch, Memory as _, Program, Progress};

/// Launches of each kernel.
const LAUNCHES: u32 = 16;
/// Instructions that a launch may take.
const PATIENCE: u64 = 400_000;
/// The number of the first pointer to a module variable.
const VARIABLES: u64 = 100;

/// A kernel with what its launches touched.
#[derive(Debug)]
pub(crate) struct Kernel<'a> {
    pub(crate) rule: &'a Expected,
    /// Where each module variable lies.
    pub(crate) variables: Vec<(String, u64)>,
    pub(crate) runs: Vec<Run>,
}

/// One launch and the bytes that it touched.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) params: Vec<u8>,
    /// Not stopped before its end.
    pub(crate) finished: bool,
    pub(crate) all: Bytes,
    /// The bytes touched by threads that had not waited yet, of a kernel that waits for its
    /// prerequisite grids.
    pub(crate) before_wait: Bytes,
}

/// The touches that are told apart, in the order of [`Bytes`].
pub(crate) const TOUCHES: [Touch; 6] = [
    Touch::Read,
    Touch::Write,
    Touch::Atomic,
    Touch::StrongRead,
    Touch::StrongWrite,
    Touch::StrongAtomic,
];

/// Bytes by what was done to them, as in [`TOUCHES`].
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) [Vec<Range<u64>>; 6]);

impl Bytes {
    pub(crate) fn of(log: &AccessLog) -> Self {
        let AccessLog { weak, strong, .. } = log;
        let sets = [
            &weak.reads,
            &weak.writes,
            &weak.atomics,
            &strong.reads,
            &strong.writes,
            &strong.atomics,
        ];
        Self(sets.map(|set| set.ranges()))
    }

    fn and(self, other: &Self) -> Self {
        let both = |one: Vec<Range<u64>>, other: &[Range<u64>]| merged([&one, other].concat());
        let mut others = other.0.iter();
        Self(self.0.map(|one| both(one, others.next().expect("as many"))))
    }
}

/// A disassembler with enough time.
pub(crate) fn disassembler(tool: Tool) -> Disassembler {
    let folder = Directory::for_this_run(&std::env::temp_dir()).expect("made");
    Disassembler::new(tool, folder, Duration::from_secs(300))
}

/// Runs every kernel that the interpreter can run, and says which those are that it cannot.
pub(crate) fn run<'a>(source: &'a Source, text: &str) -> Result<Vec<Kernel<'a>>, String> {
    let module = ptx::parse(text).map_err(|error| format!("{}: {error}", source.path.display()))?;
    let program = Program::lower(&module).map_err(|error| error.to_string())?;
    let mut kernels = Vec::new();
    for rule in &source.kernels {
        let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let runs: Result<Vec<Run>, String> =
            (0..LAUNCHES).map(|_| launch(&program, rule, &mut random, PATIENCE)).collect();
        match runs {
            Ok(runs) => {
                let names = program.globals().iter().map(|global| global.name.clone());
                let variables = names.zip((VARIABLES..).map(pointer)).collect();
                if runs.iter().all(|run| !run.finished) {
                    return Err(format!("{} never ends", rule.name));
                }
                kernels.push(Kernel { rule, variables, runs });
            }
            Err(why) => println!("{} does not run: {why}", rule.name),
        }
    }
    Ok(kernels)
}

fn small(random: &mut TestRng) -> u32 {
    random.next_u32() % 130
}

/// The parameter block: pointers where the corpus says so, numbers elsewhere.
fn arguments(rule: &Expected, layout: &[(u32, u32)], size: u32, random: &mut TestRng) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    let mut put = |at: u32, value: &[u8]| {
        bytes[at as usize..at as usize + value.len()].copy_from_slice(value);
    };
    for &(offset, size) in layout {
        for at in (0..size).step_by(4) {
            // The upper half of a number.
            let upper = size == 8 && at == 4;
            let value = if upper { 0 } else { small(random) };
            put(offset + at, &value.to_le_bytes()[..(size - at).min(4) as usize]);
        }
    }
    for (param, range, values) in &rule.launch.values {
        for at in range.clone().step_by(4) {
            let value = values.pick(random.next_u32());
            put(layout[*param as usize].0 + at, &value.to_le_bytes());
        }
    }
    for (word, number) in rule.words.iter().zip(0..) {
        put(layout[word.param as usize].0 + word.offset, &pointer(number).to_le_bytes());
    }
    bytes
}

fn dimensions(told: Option<&[Values; 3]>, otherwise: [u32; 3], random: &mut TestRng) -> [u32; 3] {
    match told {
        Some(values) => [0, 1, 2].map(|at| values[at].pick(random.next_u32())),
        None => otherwise.map(|limit| 1 + random.next_u32() % limit),
    }
}

/// One random launch that is stopped after so many instructions.
pub(crate) fn launch(
    program: &Program,
    rule: &Expected,
    random: &mut TestRng,
    patience: u64,
) -> Result<Run, String> {
    let kernel = program.kernel(&rule.name).ok_or("it is not there")?;
    let info = program.kernel_info(kernel);
    let params = arguments(rule, &info.params, info.params_size, random);
    let grid = dimensions(rule.launch.grid.as_ref(), [4, 3, 2], random);
    let block = dimensions(rule.launch.block.as_ref(), [40, 3, 2], random);
    let globals: Vec<u64> = (VARIABLES..).take(program.globals().len()).map(pointer).collect();
    let tables = rule.words.iter().zip(0..).filter(|(word, _)| word.table);
    let tables = tables.map(|(_, number)| number).collect();
    let memory = Endless::new(random.next_u32(), tables, rule.launch.zeroed);
    for (at, &address) in globals.iter().enumerate() {
        memory.store(address, &program.initial_bytes(at, &globals)).expect("memory");
    }
    for (number, held) in rule.held.iter().enumerate() {
        let name = |name: &str| name == held.variable;
        let at = program.globals().iter().position(|global| name(&global.name));
        let address = globals[at.ok_or("no such variable")?] + u64::from(held.offset);
        memory.store(address, &held_pointer(number).to_le_bytes()).expect("memory");
    }
    let launch = Launch {
        kernel,
        grid,
        block,
        dynamic_shared: rule.launch.shared,
        params: &params,
        global_addresses: &globals,
        cooperative: rule.launch.cooperative,
    };
    let mut log = AccessLog::default();
    let mut execution = Execution::new(program, &launch).map_err(|fault| fault.to_string())?;
    let finished = match execution.step(program, &memory, &mut log, patience) {
        Ok(progress) => progress == Progress::Finished,
        Err(fault) if matches!(fault.kind, FaultKind::Trap) => false,
        Err(fault) => return Err(fault.to_string()),
    };
    let before_wait = log.before_wait.as_deref().map(Bytes::of).unwrap_or_default();
    let all = Bytes::of(&log).and(&before_wait);
    Ok(Run { grid, block, params, finished, all, before_wait })
}
