//! Running a launch from its first to its last instruction.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::access::AccessLog;
use crate::block::{Block, Shared};
use crate::code::Constant;
use crate::fault::{FaultKind, LaunchFault};
use crate::memory::{CODE_WINDOW, GRID_WINDOW, Memory};
use crate::program::{KernelId, Program};
use crate::thread::{NANOSECONDS, Position};

/// Rounds without progress after which a block is taken to wait for one that has not started.
const STALLED: u32 = 16;
/// Blocks of an ordinary launch that may be under way together.
const RESIDENT: usize = 1024;

/// Virtual nanoseconds since the process started: the same program sees the same times.
static NOW: AtomicU64 = AtomicU64::new(1);

/// One kernel launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    pub kernel: KernelId,
    /// Blocks and threads; no component is 0.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter block; bytes it lacks read as zero.
    pub params: &'a [u8],
    /// Where the driver put each of [`Program::globals`], in that order.
    pub global_addresses: &'a [u64],
    /// All blocks make progress together from the start.
    pub cooperative: bool,
}

/// Whether a launch has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Finished,
    /// The instructions granted are used up; step again.
    Paused,
}

/// A launch under way, which can be left and taken up again between instructions.
///
/// Blocks run one after the other in the order of their numbers. Only a block that makes no
/// progress for long, so waits for something, lets the next one start beside it. All blocks of a
/// cooperative launch run side by side from the start.
#[derive(Debug)]
pub struct Execution {
    kernel: KernelId,
    /// Initial register frame of each function that the kernel reaches.
    templates: Vec<Vec<u64>>,
    params: Vec<u8>,
    grid: [u32; 3],
    block: [u32; 3],
    shared_size: usize,
    /// Zero-initialised memory of a cooperative grid, in which its blocks find each other.
    workspace: [u8; 64],
    /// Number of the next block to start, and of blocks in all.
    next: u64,
    total: u64,
    running: VecDeque<Block>,
    /// A finished block, kept for its allocations.
    spare: Option<Block>,
    executed: u64,
}

impl Execution {
    /// Prepares a launch; copies everything it needs of `launch`.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the kernel can reach an instruction that the interpreter lacks.
    pub fn new(program: &Program, launch: &Launch<'_>) -> Result<Execution, LaunchFault> {
        let info = program.kernel_info(launch.kernel);
        let kernel = &program.kernel_code[launch.kernel.0 as usize];
        let dynamic_start = kernel.static_shared.next_multiple_of(16);
        let shared_size = dynamic_start.saturating_add(launch.dynamic_shared);
        let mut templates = vec![Vec::new(); program.functions.len()];
        for (at, &function) in kernel.reachable.iter().enumerate() {
            // A function that only a pointer may lead to fails when it is reached.
            let certain = at < kernel.certain;
            let code = &program.functions[function as usize];
            if certain && let Some((what, line)) = code.lacking.first() {
                return Err(LaunchFault {
                    kind: FaultKind::Unsupported(what.clone()),
                    kernel: info.name.clone(),
                    line: *line,
                    block: [0; 3],
                    thread: [0; 3],
                });
            }
            let mut template = vec![0; code.slots as usize];
            for &(slot, constant) in &code.constants {
                template[slot as usize] = match constant {
                    Constant::Bits(bits) => bits,
                    Constant::Global(index, offset) => {
                        let base = launch.global_addresses.get(index as usize);
                        base.copied().unwrap_or(0).wrapping_add_signed(offset)
                    }
                    Constant::Shared(index, offset) => {
                        let place = kernel.shared.iter().find(|(var, _)| *var == index);
                        place.map_or(0, |&(_, at)| u64::from(at)).wrapping_add_signed(offset)
                    }
                    Constant::Function(index) => CODE_WINDOW + u64::from(index),
                    Constant::DynamicSharedSize => u64::from(launch.dynamic_shared),
                    Constant::TotalSharedSize => u64::from(shared_size),
                    Constant::GridWorkspace if launch.cooperative => GRID_WINDOW >> 32,
                    Constant::GridWorkspace => 0,
                };
            }
            templates[function as usize] = template;
        }
        let mut params = launch.params.to_vec();
        params.resize(params.len().max(info.params_size as usize), 0);
        Ok(Execution {
            kernel: launch.kernel,
            templates,
            params,
            grid: launch.grid,
            block: launch.block,
            shared_size: shared_size as usize,
            workspace: [0; 64],
            next: 0,
            total: launch.grid.iter().map(|&n| u64::from(n)).product(),
            running: VecDeque::new(),
            spare: None,
            executed: 0,
        }
        .with_resident(program, launch.cooperative))
    }

    fn with_resident(mut self, program: &Program, cooperative: bool) -> Execution {
        while cooperative && self.next < self.total {
            self.admit(program);
        }
        self
    }

    /// Starts the next block.
    fn admit(&mut self, program: &Program) {
        let [x, y, _] = self.grid.map(u64::from);
        let n = self.next;
        let ctaid = [(n % x) as u32, (n / x % y) as u32, (n / x / y) as u32];
        self.next += 1;
        let mut block = self.spare.take().unwrap_or_else(Block::new);
        let position = Position { grid: self.grid, block: self.block, ctaid };
        let kernel = &program.kernel_code[self.kernel.0 as usize];
        let (functions, templates) = (&program.functions[..], &self.templates[..]);
        block.start(functions, templates, kernel.function, position, self.shared_size);
        self.running.push_back(block);
    }

    /// Runs about `instructions` more thread instructions of the program given to `new`.
    ///
    /// # Errors
    ///
    /// The fault that ends the launch; what was executed before it stays done.
    pub fn step(
        &mut self,
        program: &Program,
        memory: &dyn Memory,
        log: &mut AccessLog,
        instructions: u64,
    ) -> Result<Progress, LaunchFault> {
        let goal = self.executed.saturating_add(instructions.max(1));
        loop {
            if self.running.is_empty() {
                if self.next == self.total {
                    return Ok(Progress::Finished);
                }
                self.admit(program);
            }
            let Some(block) = self.running.front_mut() else { return Ok(Progress::Finished) };
            let env = Shared {
                functions: &program.functions,
                name: &program.kernel_info(self.kernel).name,
                templates: &self.templates,
                params: &self.params,
                memory,
                grid_wait: program.kernel_info(self.kernel).grid_wait,
            };
            let now = NOW.load(Ordering::Relaxed);
            let (turn, round) = block.turn(&env, log, &mut self.workspace, (self.executed, now))?;
            self.executed += turn.executed;
            NOW.fetch_add(turn.executed * NANOSECONDS + turn.slept, Ordering::Relaxed);
            if block.finished() {
                self.spare = self.running.pop_front();
            } else if round {
                let stalled = block.stalled_rounds >= STALLED;
                if stalled && self.running.len() < RESIDENT && self.next < self.total {
                    self.admit(program);
                }
                self.running.rotate_left(1);
            }
            if self.executed >= goal {
                return Ok(Progress::Paused);
            }
        }
    }

    /// The fault of a launch that is given up.
    pub fn timeout(&self, program: &Program) -> LaunchFault {
        let name = &program.kernel_info(self.kernel).name;
        match self.running.front() {
            Some(block) => block.stuck(&program.functions, name, FaultKind::Timeout),
            None => LaunchFault {
                kind: FaultKind::Timeout,
                kernel: name.clone(),
                line: 0,
                block: [0; 3],
                thread: [0; 3],
            },
        }
    }
}
