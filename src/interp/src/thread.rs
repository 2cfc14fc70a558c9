//! One thread of a block and the loop that executes its instructions.

use crate::alu::{convert, convert_pair, insert_field, lop3};
use crate::code::{ArgumentPlace, Callee, ClockKind, Code, LOCAL_BASE, Op, Slot, Special};
use crate::fault::FaultKind;
use crate::memory::CODE_WINDOW;
use crate::printf;
use crate::space::Spaces;

/// Local memory of a thread at most, all its frames together: the limit of every GPU.
const MAX_LOCAL: u32 = 512 * 1024;
/// Frames of a thread at most.
const MAX_DEPTH: usize = 1 << 14;
/// Virtual nanoseconds that an instruction takes, for `%globaltimer`.
pub(crate) const NANOSECONDS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// At the barrier of this number.
    Barrier(u8),
    /// At an operation of its warp.
    Warp,
    Exited,
}

/// Why a thread stopped executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its share is used up, or it went to sleep.
    Expired,
    Exited,
    /// At the barrier operation at its program counter.
    Barrier,
    /// At the warp operation at its program counter.
    Warp,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    function: u32,
    pc: u32,
    base: usize,
    local_base: u32,
    site: u32,
}

/// The position that all threads of a block share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) ctaid: [u32; 3],
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) function: u32,
    pub(crate) pc: u32,
    /// First slot of the current frame in `regs`.
    pub(crate) base: usize,
    pub(crate) regs: Vec<u64>,
    pub(crate) state: State,
    pub(crate) tid: [u32; 3],
    /// Number in the block.
    pub(crate) linear: u32,
    local: Vec<u8>,
    local_base: u32,
    frames: Vec<Frame>,
    /// Virtual nanoseconds slept.
    pub(crate) slept: u64,
    /// It is behind the wait for the prerequisite grids.
    pub(crate) waited: bool,
}

/// The parts that executing needs beside the thread.
pub(crate) struct Machine<'a> {
    pub(crate) functions: &'a [Code],
    /// Initial frames, by function; empty for what the kernel cannot reach.
    pub(crate) templates: &'a [Vec<u64>],
    pub(crate) position: Position,
    pub(crate) spaces: Spaces<'a>,
    /// Instructions executed before this thread's turn.
    pub(crate) clock: u64,
    /// Virtual time at the same moment.
    pub(crate) now: u64,
}

fn special(register: Special, thread: (u32, [u32; 3]), position: &Position) -> u64 {
    let (linear, tid) = thread;
    let lane = linear % 32;
    u64::from(match register {
        Special::Tid(axis) => tid[usize::from(axis)],
        Special::Ntid(axis) => position.block[usize::from(axis)],
        Special::Ctaid(axis) => position.ctaid[usize::from(axis)],
        Special::Nctaid(axis) => position.grid[usize::from(axis)],
        Special::Lane => lane,
        Special::Warp => linear / 32,
        Special::WarpCount => position.block.iter().product::<u32>().div_ceil(32),
        Special::MaskEqual => 1 << lane,
        Special::MaskLess => (1 << lane) - 1,
        Special::MaskLessEqual => u32::MAX >> (31 - lane),
        Special::MaskGreater => !(u32::MAX >> (31 - lane)),
        Special::MaskGreaterEqual => u32::MAX << lane,
    })
}

impl Thread {
    pub(crate) fn new() -> Thread {
        Thread {
            function: 0,
            pc: 0,
            base: 0,
            regs: Vec::new(),
            state: State::Exited,
            tid: [0; 3],
            linear: 0,
            local: Vec::new(),
            local_base: 0,
            frames: Vec::new(),
            slept: 0,
            waited: false,
        }
    }

    /// Makes this a fresh thread at the first instruction of `function`.
    pub(crate) fn start(
        &mut self,
        functions: &[Code],
        templates: &[Vec<u64>],
        function: u32,
        linear: u32,
        position: &Position,
    ) {
        let [x, y, _] = position.block;
        self.tid = [linear % x, linear / x % y, linear / x / y];
        self.linear = linear;
        self.state = State::Ready;
        self.frames.clear();
        self.slept = 0;
        self.waited = false;
        self.enter(functions, templates, function, 0, 0, position);
    }

    fn enter(
        &mut self,
        functions: &[Code],
        templates: &[Vec<u64>],
        function: u32,
        base: usize,
        local_base: u32,
        position: &Position,
    ) {
        let code = &functions[function as usize];
        let template = &templates[function as usize];
        self.regs.truncate(base);
        self.regs.extend_from_slice(template);
        let frame = &mut self.regs[base..];
        frame[LOCAL_BASE as usize] = u64::from(local_base);
        for &(slot, register) in &code.specials {
            frame[slot as usize] = special(register, (self.linear, self.tid), position);
        }
        let local_end = (local_base + code.local) as usize;
        if self.local.len() < local_end {
            self.local.resize(local_end, 0);
        }
        (self.function, self.pc, self.base, self.local_base) = (function, 0, base, local_base);
    }

    pub(crate) fn register(&self, slot: Slot) -> u64 {
        self.regs[self.base + slot as usize]
    }

    pub(crate) fn set_register(&mut self, slot: Slot, value: u64) {
        self.regs[self.base + slot as usize] = value;
    }

    fn read(&self, place: ArgumentPlace, base: usize, local_base: u32) -> (u64, &[u8]) {
        match place {
            ArgumentPlace::Slot(slot) => (self.regs[base + slot as usize], &[]),
            ArgumentPlace::Memory { offset, size } => {
                let start = (local_base + offset) as usize;
                (0, &self.local[start..start + size as usize])
            }
        }
    }

    /// Copies an argument or a result from one frame to another.
    fn pass(&mut self, from: (ArgumentPlace, usize, u32), to: (ArgumentPlace, usize, u32)) {
        let (value, bytes) = self.read(from.0, from.1, from.2);
        match (from.0, to.0) {
            (ArgumentPlace::Slot(_), ArgumentPlace::Slot(slot)) => {
                self.regs[to.1 + slot as usize] = value;
            }
            (ArgumentPlace::Slot(_), ArgumentPlace::Memory { offset, size }) => {
                let (start, count) = ((to.2 + offset) as usize, size.min(8) as usize);
                let bytes = value.to_le_bytes();
                self.local[start..start + count].copy_from_slice(&bytes[..count]);
            }
            (ArgumentPlace::Memory { .. }, ArgumentPlace::Slot(slot)) => {
                let mut value = [0u8; 8];
                let count = bytes.len().min(8);
                value[..count].copy_from_slice(&bytes[..count]);
                self.regs[to.1 + slot as usize] = u64::from_le_bytes(value);
            }
            (
                ArgumentPlace::Memory { offset: a, size },
                ArgumentPlace::Memory { offset: b, size: c },
            ) => {
                let start = (from.2 + a) as usize;
                let end = start + size.min(c) as usize;
                self.local.copy_within(start..end, (to.2 + b) as usize);
            }
        }
    }

    fn call(&mut self, machine: &mut Machine<'_>, site: u32) -> Result<(), FaultKind> {
        let functions = machine.functions;
        let code = &functions[self.function as usize];
        let call = &code.calls[site as usize];
        let callee = match call.callee {
            Callee::Function(index) => index,
            Callee::Pointer(slot) => {
                let value = self.regs[self.base + slot as usize];
                let index = value.wrapping_sub(CODE_WINDOW);
                let known = |t: &Vec<u64>| !t.is_empty();
                if !machine.templates.get(index as usize).is_some_and(known)
                    || index > u64::from(u32::MAX)
                {
                    return Err(FaultKind::InvalidProgramCounter);
                }
                index as u32
            }
            Callee::AssertFail => return Err(self.assertion(machine, &call.arguments)),
            Callee::Printf => {
                let mut values = [0u64; 2];
                for (value, place) in values.iter_mut().zip(&call.arguments) {
                    *value = self.argument_value(*place);
                }
                let [format, arguments] = values;
                printf::print(&mut machine.spaces, &self.local, format, arguments)?;
                self.pc += 1;
                return Ok(());
            }
        };
        let target = &functions[callee as usize];
        let (base, local_base) = (self.base, self.local_base);
        let (new_base, new_local) = (base + code.slots as usize, local_base + code.local);
        if self.frames.len() == MAX_DEPTH || new_local + target.local > MAX_LOCAL {
            return Err(FaultKind::Trap);
        }
        let frame = Frame { function: self.function, pc: self.pc + 1, base, local_base, site };
        self.frames.push(frame);
        let position = machine.position;
        self.enter(functions, machine.templates, callee, new_base, new_local, &position);
        for (argument, parameter) in call.arguments.iter().zip(&target.parameters) {
            self.pass((*argument, base, local_base), (*parameter, new_base, new_local));
        }
        Ok(())
    }

    fn argument_value(&self, place: ArgumentPlace) -> u64 {
        let (value, bytes) = self.read(place, self.base, self.local_base);
        let mut whole = value.to_le_bytes();
        let count = bytes.len().min(8);
        whole[..count].copy_from_slice(&bytes[..count]);
        u64::from_le_bytes(whole)
    }

    fn assertion(&self, machine: &Machine<'_>, arguments: &[ArgumentPlace]) -> FaultKind {
        let value = |at: usize| arguments.get(at).map_or(0, |&place| self.argument_value(place));
        let text = |at: usize| {
            let bytes = machine.spaces.text(&self.local, value(at)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (message, file, function) = (text(0), text(1), text(3));
        FaultKind::Assert(format!("{file}:{}: {function}: {message}", value(2) as u32))
    }

    /// Leaves the current function. `false`: there was none to return to.
    fn leave(&mut self, functions: &[Code]) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        let results = &functions[self.function as usize].results;
        let site = &functions[frame.function as usize].calls[frame.site as usize];
        let (base, local_base) = (self.base, self.local_base);
        for (result, place) in results.iter().zip(&site.results) {
            self.pass((*result, base, local_base), (*place, frame.base, frame.local_base));
        }
        self.regs.truncate(base);
        (self.function, self.pc) = (frame.function, frame.pc);
        (self.base, self.local_base) = (frame.base, frame.local_base);
        true
    }

    /// Runs until something stops the thread or `share` instructions are used. Returns why, and
    /// how many were executed. On a fault the program counter is at the faulting instruction.
    pub(crate) fn run(
        &mut self,
        machine: &mut Machine<'_>,
        share: u64,
    ) -> (Result<Stop, FaultKind>, u64) {
        let mut left = share;
        let stop = loop {
            match self.run_frame(machine, &mut left, share) {
                Ok(None) => {}
                Ok(Some(stop)) => break Ok(stop),
                Err(fault) => break Err(fault),
            }
        };
        (stop, share - left)
    }

    /// Runs inside one frame; `None` when the frame changed.
    fn run_frame(
        &mut self,
        machine: &mut Machine<'_>,
        left: &mut u64,
        share: u64,
    ) -> Result<Option<Stop>, FaultKind> {
        let functions = machine.functions;
        let code = &functions[self.function as usize];
        let ops = &code.ops[..];
        let regs = &mut self.regs[self.base..];
        let mut pc = self.pc as usize;
        macro_rules! r {
            ($slot:expr) => {
                regs[$slot as usize]
            };
        }
        macro_rules! fallible {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(fault) => {
                        self.pc = pc as u32;
                        return Err(fault);
                    }
                }
            };
        }
        loop {
            if *left == 0 {
                self.pc = pc as u32;
                return Ok(Some(Stop::Expired));
            }
            *left -= 1;
            match ops[pc] {
                Op::Nop => {}
                Op::GridWait => {
                    // Accesses from here on belong into another log.
                    self.waited = true;
                    self.pc = pc as u32 + 1;
                    return Ok(Some(Stop::Expired));
                }
                Op::Move { d, a } => r!(d) = r!(a),
                Op::Alu1 { f, d, a } => r!(d) = f(r!(a)),
                Op::Alu2 { f, d, a, b } => r!(d) = f(r!(a), r!(b)),
                Op::Alu3 { f, d, a, b, c } => r!(d) = f(r!(a), r!(b), r!(c)),
                Op::Add32 { d, a, b } => {
                    r!(d) = u64::from((r!(a) as u32).wrapping_add(r!(b) as u32));
                }
                Op::Add64 { d, a, b } => r!(d) = r!(a).wrapping_add(r!(b)),
                Op::Select { d, a, b, p } => r!(d) = if r!(p) & 1 == 1 { r!(a) } else { r!(b) },
                Op::InsertField { d, bits, list } => {
                    let s = |n: usize| regs[code.lists[list as usize + n] as usize];
                    r!(d) = insert_field(s(0), s(1), s(2), s(3), u32::from(bits));
                }
                Op::Logic3 { d, a, b, c, table } => {
                    r!(d) = lop3(r!(a), r!(b), r!(c), r!(table));
                }
                Op::Convert { spec, d, a } => r!(d) = convert(spec, r!(a)),
                Op::ConvertPair { spec, d, a, b } => r!(d) = convert_pair(spec, r!(a), r!(b)),
                Op::Pack { d, list, count, width } => {
                    let mut whole = 0;
                    for n in (0..count).rev() {
                        let part = r!(code.lists[list as usize + usize::from(n)]);
                        whole = whole << width | (part & ((1 << width) - 1));
                    }
                    r!(d) = whole;
                }
                Op::Unpack { a, list, count, width } => {
                    let whole = r!(a);
                    for n in 0..count {
                        let part = whole >> (n * width) & ((1 << width) - 1);
                        r!(code.lists[list as usize + usize::from(n)]) = part;
                    }
                }
                Op::Load { place, strong, size, d, a, offset } => {
                    let address = r!(a).wrapping_add_signed(i64::from(offset));
                    let mut buf = [0u8; 8];
                    let into = &mut buf[..usize::from(size)];
                    fallible!(machine.spaces.load(&self.local, (place, strong), address, into));
                    r!(d) = u64::from_le_bytes(buf);
                }
                Op::Store { place, strong, size, v, a, offset } => {
                    let address = r!(a).wrapping_add_signed(i64::from(offset));
                    let bytes = r!(v).to_le_bytes();
                    let data = &bytes[..usize::from(size)];
                    fallible!(machine.spaces.store(
                        &mut self.local,
                        (place, strong),
                        address,
                        data
                    ));
                }
                Op::LoadVector { place, strong, size, count, list, a, offset } => {
                    let address = r!(a).wrapping_add_signed(i64::from(offset));
                    let (size, count) = (usize::from(size), usize::from(count));
                    let mut buf = [0u8; 64];
                    let into = &mut buf[..size * count];
                    fallible!(machine.spaces.load(&self.local, (place, strong), address, into));
                    for (n, part) in buf[..size * count].chunks_exact(size).enumerate() {
                        let mut value = [0u8; 8];
                        value[..size].copy_from_slice(part);
                        r!(code.lists[list as usize + n]) = u64::from_le_bytes(value);
                    }
                }
                Op::StoreVector { place, strong, size, count, list, a, offset } => {
                    let address = r!(a).wrapping_add_signed(i64::from(offset));
                    let (size, count) = (usize::from(size), usize::from(count));
                    let mut buf = [0u8; 64];
                    for (n, part) in buf[..size * count].chunks_exact_mut(size).enumerate() {
                        let value = r!(code.lists[list as usize + n]).to_le_bytes();
                        part.copy_from_slice(&value[..size]);
                    }
                    let data = &buf[..size * count];
                    fallible!(machine.spaces.store(
                        &mut self.local,
                        (place, strong),
                        address,
                        data
                    ));
                }
                Op::Atomic { f, place, strong, size, d, a, offset, b, c } => {
                    let address = r!(a).wrapping_add_signed(i64::from(offset));
                    let (spaces, values) = (&mut machine.spaces, (r!(b), r!(c)));
                    r!(d) = fallible!(spaces.atomic(
                        &mut self.local,
                        (place, strong),
                        address,
                        size,
                        f,
                        values
                    ));
                }
                Op::CopyToShared { size, to, to_offset, from, from_offset, valid } => {
                    let to = r!(to).wrapping_add_signed(i64::from(to_offset));
                    let from = r!(from).wrapping_add_signed(i64::from(from_offset));
                    let valid = r!(valid).min(u64::from(size)) as u8;
                    let local = &mut self.local;
                    fallible!(machine.spaces.copy_to_shared(local, to, from, size, valid));
                }
                Op::Jump { target } => {
                    pc = target as usize;
                    continue;
                }
                Op::BranchIf { p, negated, target } => {
                    if (r!(p) & 1 == 1) != negated {
                        pc = target as usize;
                        continue;
                    }
                }
                Op::BranchTable { a, table, count } => {
                    let index = r!(a) as u32;
                    if index >= count {
                        self.pc = pc as u32;
                        return Err(FaultKind::InvalidProgramCounter);
                    }
                    pc = code.targets[(table + index) as usize] as usize;
                    continue;
                }
                Op::Call { site } => {
                    self.pc = pc as u32;
                    self.call(machine, site)?;
                    return Ok(None);
                }
                Op::Return => {
                    self.pc = pc as u32;
                    let returned = self.leave(functions);
                    return Ok(if returned { None } else { Some(Stop::Exited) });
                }
                Op::Exit => return Ok(Some(Stop::Exited)),
                Op::Trap => {
                    self.pc = pc as u32;
                    return Err(FaultKind::Trap);
                }
                Op::Lacking { what } => {
                    self.pc = pc as u32;
                    let name = code.lacking[what as usize].0.clone();
                    return Err(FaultKind::Unsupported(name));
                }
                Op::Clock { kind, d } => {
                    let executed = share - *left;
                    let now = machine.now + executed * NANOSECONDS + self.slept;
                    let clock = machine.clock + executed;
                    r!(d) = match kind {
                        ClockKind::Clock => clock,
                        ClockKind::ClockHigh => clock >> 32,
                        ClockKind::GlobalTimer => now,
                        ClockKind::GlobalTimerHigh => now >> 32,
                    };
                }
                Op::Sleep { a } => {
                    self.slept = self.slept.saturating_add(r!(a) & 0xffff_ffff);
                    self.pc = pc as u32 + 1;
                    return Ok(Some(Stop::Expired));
                }
                Op::Barrier { .. } => {
                    self.pc = pc as u32;
                    return Ok(Some(Stop::Barrier));
                }
                Op::Warp { .. } => {
                    self.pc = pc as u32;
                    return Ok(Some(Stop::Warp));
                }
            }
            pc += 1;
        }
    }
}
