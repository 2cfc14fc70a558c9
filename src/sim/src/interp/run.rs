//! Running a launch from its first to its last instruction.

use std::ops::ControlFlow;

use super::access::AccessLog;
use super::fault::{FaultKind, LaunchFault};
use super::memory::Memory;
use super::program::{KernelId, Program};

/// One kernel launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: KernelId,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    /// The parameter block; bytes it lacks read as zero.
    pub(crate) params: &'a [u8],
    /// Where the driver put each of [`Program::globals`], in that order.
    pub(crate) global_addresses: &'a [u64],
    /// All blocks make progress together. Otherwise they run one after the other.
    pub(crate) cooperative: bool,
}

/// How long a launch may run.
pub(crate) struct Budget<'a> {
    /// Thread instructions at most, over the whole launch.
    pub(crate) max_instructions: u64,
    /// `poll` is called about every this many thread instructions.
    pub(crate) poll_interval: u64,
    /// Told the instructions so far; `Break` ends the launch with `Timeout`.
    pub(crate) poll: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

/// Whether a launch has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Finished,
    /// The instructions granted are used up; step again.
    Paused,
}

/// A launch under way, which can be left and taken up again between instructions.
#[derive(Debug)]
pub(crate) struct Execution {
    kernel: KernelId,
}

impl Execution {
    /// Prepares a launch; copies everything it needs of `launch`. Fails with `Unsupported` if the
    /// kernel can reach an instruction that the interpreter lacks.
    pub(crate) fn new(_program: &Program, _launch: &Launch<'_>) -> Result<Execution, LaunchFault> {
        Ok(Execution { kernel: _launch.kernel })
    }

    /// Runs about `instructions` more thread instructions of the program given to `new`.
    pub(crate) fn step(
        &mut self,
        _program: &Program,
        _memory: &dyn Memory,
        _log: &mut AccessLog,
        _instructions: u64,
    ) -> Result<Progress, LaunchFault> {
        Ok(Progress::Finished)
    }

    /// The fault of a launch that is given up.
    pub(crate) fn timeout(&self, program: &Program) -> LaunchFault {
        LaunchFault {
            kind: FaultKind::Timeout,
            kernel: program.kernel_info(self.kernel).name.clone(),
            line: 0,
            block: [0; 3],
            thread: [0; 3],
        }
    }
}

/// Runs a launch to its end. What it accessed is in `log` even if it faults half-way.
pub(crate) fn run(
    program: &Program,
    launch: &Launch<'_>,
    memory: &dyn Memory,
    log: &mut AccessLog,
    budget: Budget<'_>,
) -> Result<(), LaunchFault> {
    let mut execution = Execution::new(program, launch)?;
    let mut used = 0u64;
    loop {
        let grant = budget.poll_interval.max(1);
        let progress = execution.step(program, memory, log, grant)?;
        used = used.saturating_add(grant);
        if progress == Progress::Finished {
            return Ok(());
        }
        if used >= budget.max_instructions || (budget.poll)(used).is_break() {
            return Err(execution.timeout(program));
        }
    }
}
