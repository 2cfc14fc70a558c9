//! One block: its threads, its shared memory and its barriers.

use crate::access::AccessLog;
use crate::code::{BarrierKind, Code, Op};
use crate::fault::{FaultKind, LaunchFault};
use crate::memory::Memory;
use crate::space::Spaces;
use crate::thread::{Machine, NANOSECONDS, Position, State, Stop, Thread};
use crate::warp;

/// Barriers of a block (PTX ISA, `bar`).
const BARRIERS: usize = 16;
/// Instructions a thread may execute before others get their turn.
const SHARE: u64 = 8192;

#[derive(Debug, Clone, Copy, Default)]
struct Barrier {
    /// Threads that wait or have announced themselves.
    arrived: u32,
    /// Those of them whose predicate was true.
    voted: u32,
    /// Threads that must arrive; 0: all of the block.
    expected: u32,
    /// One of them is behind the wait for the prerequisite grids.
    waited: bool,
}

/// The data that all blocks of a launch share.
pub(crate) struct Shared<'a> {
    pub(crate) functions: &'a [Code],
    pub(crate) name: &'a str,
    pub(crate) templates: &'a [Vec<u64>],
    pub(crate) params: &'a [u8],
    pub(crate) memory: &'a dyn Memory,
    /// Whether the kernel waits for its prerequisite grids.
    pub(crate) grid_wait: bool,
}

/// The outcome of a warp's turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    pub(crate) executed: u64,
    /// Virtual nanoseconds that threads slept.
    pub(crate) slept: u64,
    /// A barrier completed, or threads of a warp met, or one exited.
    pub(crate) advanced: bool,
}

#[derive(Debug)]
pub(crate) struct Block {
    position: Position,
    threads: Vec<Thread>,
    shared: Vec<u8>,
    /// Threads that have not exited.
    live: u32,
    barriers: [Barrier; BARRIERS],
    next_warp: usize,
    /// Consecutive rounds in which nothing advanced.
    pub(crate) stalled_rounds: u32,
    executed_in_round: u64,
    advanced_in_round: bool,
}

impl Block {
    pub(crate) fn new() -> Block {
        Block {
            position: Position { grid: [1; 3], block: [1; 3], ctaid: [0; 3] },
            threads: Vec::new(),
            shared: Vec::new(),
            live: 0,
            barriers: [Barrier::default(); BARRIERS],
            next_warp: 0,
            stalled_rounds: 0,
            executed_in_round: 0,
            advanced_in_round: false,
        }
    }

    /// Makes this a fresh block, its shared memory zero.
    pub(crate) fn start(
        &mut self,
        functions: &[Code],
        templates: &[Vec<u64>],
        function: u32,
        position: Position,
        shared_size: usize,
    ) {
        let count = position.block.iter().product::<u32>();
        self.position = position;
        self.shared.clear();
        self.shared.resize(shared_size, 0);
        self.live = count;
        self.barriers = [Barrier::default(); BARRIERS];
        self.next_warp = 0;
        self.stalled_rounds = 0;
        self.executed_in_round = 0;
        self.advanced_in_round = false;
        self.threads.resize_with(count as usize, Thread::new);
        for (linear, thread) in self.threads.iter_mut().enumerate() {
            thread.start(functions, templates, function, linear as u32, &position);
        }
    }

    pub(crate) fn finished(&self) -> bool {
        self.live == 0
    }

    fn fault(&self, functions: &[Code], name: &str, thread: usize, kind: FaultKind) -> LaunchFault {
        let thread = &self.threads[thread];
        let lines = &functions[thread.function as usize].lines;
        LaunchFault {
            kind,
            kernel: name.to_owned(),
            line: lines.get(thread.pc as usize).copied().unwrap_or(0),
            block: self.position.ctaid,
            thread: thread.tid,
        }
    }

    /// Where the block stands, as a fault: at the first thread that has not exited.
    pub(crate) fn stuck(&self, functions: &[Code], name: &str, kind: FaultKind) -> LaunchFault {
        let first = self.threads.iter().position(|t| t.state != State::Exited).unwrap_or(0);
        self.fault(functions, name, first, kind)
    }

    /// One turn of one warp. Returns what happened and whether this ended a round of all warps.
    pub(crate) fn turn(
        &mut self,
        env: &Shared<'_>,
        log: &mut AccessLog,
        workspace: &mut [u8],
        (clock, now): (u64, u64),
    ) -> Result<(Turn, bool), LaunchFault> {
        let fault =
            |this: &Self, at: usize, kind: FaultKind| this.fault(env.functions, env.name, at, kind);
        let first = self.next_warp * 32;
        let last = (first + 32).min(self.threads.len());
        let mut turn = Turn::default();
        loop {
            let mut expired = false;
            for at in first..last {
                if self.threads[at].state != State::Ready {
                    continue;
                }
                let stop = self.run_thread(env, (log, workspace), at, (clock, now), &mut turn);
                match stop {
                    Ok(Stop::Expired) => expired = true,
                    Ok(Stop::Exited) => {
                        self.threads[at].state = State::Exited;
                        self.live -= 1;
                        turn.advanced = true;
                    }
                    Ok(Stop::Barrier) => {
                        self.arrive(env.functions, at).map_err(|kind| fault(self, at, kind))?;
                    }
                    Ok(Stop::Warp) => self.threads[at].state = State::Warp,
                    Err(kind) => return Err(fault(self, at, kind)),
                }
            }
            let met = warp::meet(&mut self.threads[first..last], env.functions);
            turn.advanced |= met;
            let ready = self.threads[first..last].iter().any(|t| t.state == State::Ready);
            if expired || !ready {
                break;
            }
        }
        turn.advanced |= self.complete_barriers(env.functions);
        self.executed_in_round += turn.executed;
        self.advanced_in_round |= turn.advanced;
        self.next_warp += 1;
        let round = self.next_warp * 32 >= self.threads.len();
        if round {
            self.next_warp = 0;
            if self.executed_in_round == 0 && !self.advanced_in_round && self.live > 0 {
                return Err(self.stuck(env.functions, env.name, FaultKind::Deadlock));
            }
            self.stalled_rounds =
                if self.advanced_in_round { 0 } else { self.stalled_rounds.saturating_add(1) };
            self.executed_in_round = 0;
            self.advanced_in_round = false;
        }
        Ok((turn, round))
    }

    fn run_thread(
        &mut self,
        env: &Shared<'_>,
        (log, workspace): (&mut AccessLog, &mut [u8]),
        at: usize,
        (clock, now): (u64, u64),
        turn: &mut Turn,
    ) -> Result<Stop, FaultKind> {
        let log = match env.grid_wait && !self.threads[at].waited {
            true => &mut **log.before_wait.get_or_insert_default(),
            false => log,
        };
        let mut machine = Machine {
            functions: env.functions,
            templates: env.templates,
            position: self.position,
            spaces: Spaces {
                memory: env.memory,
                shared: &mut self.shared,
                params: env.params,
                workspace,
                log,
            },
            clock: clock + turn.executed,
            now: now + turn.executed * NANOSECONDS,
        };
        let (stop, used) = self.threads[at].run(&mut machine, SHARE);
        turn.executed += used;
        // Threads sleep side by side.
        turn.slept = turn.slept.max(std::mem::take(&mut self.threads[at].slept));
        stop
    }

    /// A thread is at a barrier instruction.
    fn arrive(&mut self, functions: &[Code], at: usize) -> Result<(), FaultKind> {
        let thread = &mut self.threads[at];
        let op = functions[thread.function as usize].ops[thread.pc as usize];
        let Op::Barrier { kind, id, count, p, .. } = op else {
            return Err(FaultKind::InvalidProgramCounter);
        };
        let id = thread.register(id);
        let Some(barrier) = self.barriers.get_mut(id as usize) else {
            return Err(FaultKind::Trap);
        };
        barrier.arrived += 1;
        barrier.waited |= thread.waited;
        barrier.expected = count.map_or(0, |slot| thread.register(slot) as u32);
        if thread.register(p) & 1 == 1 {
            barrier.voted += 1;
        }
        if kind == BarrierKind::Arrive {
            thread.pc += 1;
        } else {
            thread.state = State::Barrier(id as u8);
        }
        Ok(())
    }

    /// Exited threads of warps that take part: the hardware counts whole warps.
    fn exited_beside(&self, id: u8) -> u32 {
        let mut exited = 0;
        for warp in self.threads.chunks(32) {
            if warp.iter().any(|t| t.state == State::Barrier(id)) {
                exited += warp.iter().filter(|t| t.state == State::Exited).count() as u32;
            }
        }
        exited
    }

    /// Releases every barrier at which all have arrived. A thread that exited counts as arrived.
    fn complete_barriers(&mut self, functions: &[Code]) -> bool {
        let mut completed = false;
        for id in 0..BARRIERS as u8 {
            let Barrier { arrived, voted, expected, waited } = self.barriers[usize::from(id)];
            let complete = match (arrived, expected) {
                (0, _) => false,
                (_, 0) => arrived >= self.live,
                _ => arrived >= expected || arrived + self.exited_beside(id) >= expected,
            };
            if !complete {
                continue;
            }
            completed = true;
            self.barriers[usize::from(id)] = Barrier::default();
            for thread in self.threads.iter_mut().filter(|t| t.state == State::Barrier(id)) {
                let op = functions[thread.function as usize].ops[thread.pc as usize];
                if let Op::Barrier { kind, d, .. } = op {
                    let result = match kind {
                        BarrierKind::Popc => u64::from(voted),
                        BarrierKind::And => u64::from(voted == arrived),
                        BarrierKind::Or => u64::from(voted > 0),
                        BarrierKind::Sync | BarrierKind::Arrive => 0,
                    };
                    thread.set_register(d, result);
                }
                thread.waited |= waited;
                thread.pc += 1;
                thread.state = State::Ready;
            }
        }
        completed
    }
}
