//! Machine code as one list of steps: the operation of each instruction, the place where control
//! goes next, and inlined calls of functions.
//!
//! Stage: lowering; from [`Code`] to [`MachineListing`]. The compiler's own functions for division
//! are not inlined: their results become unknown. Each place that a larger function is called from
//! gets a copy, up to a limit.
//!
//! Invariant: registers that a call may assign are unknown behind the call if it is not inlined.
//! Unless the callee only computes, the kernel may touch anything.

mod calls;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::constant_banks::{ConstantBanks, FREE, register_of};
use super::opcodes::Lifter;
use super::operation::{Lifted, Operation};
use crate::sass::{Code, Function, Instruction, Operand, Register};

/// Instructions of a kernel, calls inlined, beyond which calls are left alone.
const MAX_INSTRUCTIONS: usize = 60_000;
const MAX_DEPTH: usize = 12;
/// Instructions of a function without accesses that is inlined.
const MAX_COPIED: usize = 64;
/// Bytes of an instruction.
const SIZE: i64 = 16;
/// Words of a stack frame that are followed at most.
const MAX_SLOTS: usize = 1024;

/// Where a step goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    On,
    /// To labels, and on to the next one if it has a guard.
    To(SmallVec<[u32; 2]>),
    Out,
}

/// The operations of an instruction, in order, and the place where control goes next.
#[derive(Debug)]
pub(super) struct ListedStep {
    pub(super) lifted: Option<Lifted>,
    pub(super) guard: Option<(u32, bool)>,
    pub(super) next: Next,
}

/// The whole kernel.
#[derive(Debug)]
pub(super) struct MachineListing {
    pub(super) steps: Vec<ListedStep>,
    /// The step behind each label.
    pub(super) labels: Vec<usize>,
    /// Registers of the machine, and others that stand for memory; the number that is free.
    pub(super) registers: u32,
}

/// A function, or the part of one that a call reaches.
#[derive(Debug)]
struct CalledBody {
    /// Instructions, in order.
    instructions: Vec<usize>,
    /// Registers that it may assign.
    assigned: BTreeSet<u32>,
    /// Registers that it may read.
    read: BTreeSet<u32>,
    /// Whether the function touches only its own memory and calls no other function.
    computes: bool,
}

/// A kernel while it is listed.
struct Builder<'a> {
    code: &'a Code,
    banks: &'a ConstantBanks<'a>,
    listing: MachineListing,
    /// By function (its address in memory stands for it) and first instruction.
    bodies: HashMap<(usize, usize), Rc<CalledBody>>,
    /// Registers of words of the frame, by offset from where the stack began.
    slots: BTreeMap<i64, u32>,
    /// All these registers.
    frame_words: Vec<u32>,
    /// Whether words of the frame are followed.
    frame: bool,
    /// Whether addresses in local memory are made generic ones.
    stack_is_shared: bool,
    local: u32,
    /// Calls that are not inlined yet: function, first instruction, label, depth, return
    /// label and frame.
    pending: Vec<Call<'a>>,
    /// A predicate that nothing is known of.
    unknown_predicate: u32,
}

/// A call that is to be inlined.
struct Call<'a> {
    function: &'a Function,
    first: usize,
    label: u32,
    returns: u32,
    depth: usize,
    stack: Vec<(usize, usize)>,
}

/// Lists what the kernel does.
pub(super) fn list<'a>(code: &'a Code, banks: &'a ConstantBanks<'a>) -> MachineListing {
    let listing = MachineListing { steps: Vec::new(), labels: Vec::new(), registers: FREE + 2 };
    let mut builder = Builder {
        code,
        banks,
        listing,
        bodies: HashMap::new(),
        slots: BTreeMap::new(),
        frame_words: Vec::new(),
        frame: true,
        stack_is_shared: false,
        local: FREE,
        unknown_predicate: FREE + 1,
        pending: Vec::new(),
    };
    builder.find_slots();
    builder.function(&code.entry, None, None);
    while let Some(call) = builder.pending.pop() {
        builder.inline(call);
    }
    builder.listing
}

fn identity(function: &Function) -> usize {
    std::ptr::from_ref(function) as usize
}

fn integer(instruction: &Instruction, at: usize) -> Option<i64> {
    match instruction.operands.get(at) {
        Some(Operand::Integer(value)) => Some(*value),
        _ => None,
    }
}

fn is_stack(operand: Option<&Operand>) -> bool {
    matches!(operand, Some(Operand::Register(Register::General(1), _)))
}

/// The constant that an instruction adds to the stack pointer.
fn stack_change(instruction: &Instruction) -> Option<i64> {
    if !is_stack(instruction.operands.first())
        || !matches!(instruction.opcode.as_str(), "IADD3" | "VIADD" | "IADD")
    {
        return None;
    }
    let values: Vec<&Operand> = instruction.operands[1..]
        .iter()
        .filter(|o| !matches!(o, Operand::Register(Register::True | Register::Zero, _)))
        .collect();
    match values[..] {
        [register, Operand::Integer(by)] if is_stack(Some(register)) => Some(i64::from(*by as i32)),
        _ => None,
    }
}

impl<'a> Builder<'a> {
    fn new_label(&mut self) -> u32 {
        self.listing.labels.push(usize::MAX);
        self.listing.labels.len() as u32 - 1
    }

    /// The stack frame below the start of a function's instructions, in bytes; `None` where it is
    /// not plain.
    fn frame_of<'i>(instructions: impl Iterator<Item = &'i Instruction>) -> Option<i64> {
        let mut frame = 0;
        for instruction in instructions {
            match stack_change(instruction) {
                Some(by) if by < 0 => {
                    if frame != 0 && frame != by {
                        return None;
                    }
                    frame = by;
                }
                Some(_) => {}
                None => {
                    let assigns = is_stack(instruction.operands.first())
                        && !matches!(instruction.opcode.as_str(), "STL" | "ST" | "STG" | "STS");
                    let start = matches!(instruction.opcode.as_str(), "MOV" | "IMAD" | "LDC");
                    if assigns && !start {
                        return None;
                    }
                }
            }
        }
        Some(frame)
    }

    /// Gives the words of the kernel's own stack frame registers.
    fn find_slots(&mut self) {
        let entry = &self.code.entry;
        let mut wanted = BTreeSet::new();
        for instruction in entry.instructions.iter().flatten() {
            for operand in &instruction.operands {
                match operand {
                    Operand::Constant {
                        bank: crate::sass::ConstantBank::Number(bank),
                        offset,
                        ..
                    } if self.banks.is_local_window(*bank, *offset) => {
                        self.frame = false;
                        self.stack_is_shared = true;
                    }
                    Operand::Address { terms, offset, .. }
                        if matches!(instruction.opcode.as_str(), "LDL" | "STL")
                            && matches!(&terms[..], [t] if t.register == Register::General(1)) =>
                    {
                        let count = match () {
                            () if instruction.has("128") => 4,
                            () if instruction.has("64") => 2,
                            () => 1,
                        };
                        wanted.extend((0..count).map(|n| (offset & !3) + 4 * n));
                    }
                    _ => {}
                }
            }
        }
        let main = self.body(entry, 0);
        let in_main = main.instructions.iter().filter_map(|&at| entry.instructions[at].as_deref());
        // One frame for all functions that call no function with a frame of its own.
        let frame = Self::frame_of(in_main);
        self.frame &= frame.is_some() && wanted.len() <= MAX_SLOTS;
        if self.frame {
            for offset in wanted {
                let register = self.listing.registers;
                self.listing.registers += 1;
                self.slots.insert(offset, register);
                self.frame_words.push(register);
            }
        }
    }

    /// The instructions that are reached from one without leaving the function.
    fn body(&mut self, function: &'a Function, first: usize) -> Rc<CalledBody> {
        let key = (identity(function), first);
        if let Some(body) = self.bodies.get(&key) {
            return body.clone();
        }
        let count = function.instructions.len();
        let mut body = CalledBody {
            instructions: Vec::new(),
            assigned: BTreeSet::new(),
            read: BTreeSet::new(),
            computes: true,
        };
        let mut seen = vec![false; count];
        let mut work = vec![first];
        while let Some(mut at) = work.pop() {
            while at < count && !seen[at] {
                seen[at] = true;
                let Some(instruction) = &function.instructions[at] else {
                    body.computes = false;
                    at += 1;
                    continue;
                };
                let guarded = instruction.guard.is_some();
                let (targets, on) = self.successors(function, at, instruction);
                work.extend(targets);
                if instruction.opcode == "CALL" {
                    body.computes = false;
                }
                if !(on || guarded) {
                    break;
                }
                at += 1;
            }
        }
        body.instructions = (0..count).filter(|&at| seen[at]).collect();
        if first != 0 || identity(function) != identity(&self.code.entry) {
            let (slots, mut out) = (|_: i64| None, Vec::new());
            for &at in &body.instructions {
                let Some(instruction) = &function.instructions[at] else { continue };
                if branches(instruction) {
                    continue;
                }
                self.lift(function, at, instruction, &slots, &mut out);
                for lifted in out.drain(..) {
                    body.computes &= !lifted.acts();
                    body.assigned.extend(lifted.assigns());
                    body.read.extend(lifted.reads());
                }
            }
        }
        let body = Rc::new(body);
        self.bodies.insert(key, body.clone());
        body
    }

    fn lift(
        &self,
        function: &Function,
        at: usize,
        instruction: &Instruction,
        slots: &dyn Fn(i64) -> Option<u32>,
        out: &mut Vec<Lifted>,
    ) {
        let place = (at as u32) * SIZE as u32;
        let mut lifter = Lifter {
            banks: self.banks,
            instruction,
            place,
            slots,
            local: self.local,
            frame: &self.frame_words,
            relocation: function.relocations.get(&place),
            stack_is_shared: self.stack_is_shared,
            out,
        };
        lifter.lift();
    }

    /// Where a branch may go within its function, and whether the next instruction may follow
    /// though it has no guard.
    fn successors(&self, function: &Function, at: usize, i: &Instruction) -> (Vec<usize>, bool) {
        let target = i.operands.iter().find_map(|operand| match operand {
            Operand::Target(to) => Some(*to),
            _ => None,
        });
        let index = |to: i64| usize::try_from(to / SIZE).unwrap_or(usize::MAX);
        match i.opcode.as_str() {
            "BRA" | "JMP" => {
                let conditional = i.has("DIV") || i.has("CONV") || condition(i).is_some();
                match target.or_else(|| integer(i, i.operands.len().wrapping_sub(1))) {
                    Some(to) => (vec![index(to)], conditional),
                    None => ((0..function.instructions.len()).collect(), true),
                }
            }
            "BRX" | "JMX" | "BRXU" | "JMXU" => {
                let listed = function.branch_targets.get(&((at as i64 * SIZE) as u32));
                match listed {
                    Some(targets) => {
                        (targets.iter().map(|&to| index(i64::from(to))).collect(), false)
                    }
                    None => ((0..function.instructions.len()).collect(), false),
                }
            }
            "EXIT" => (vec![], condition(i).is_some()),
            "RET" | "KILL" | "RTT" => (vec![], false),
            _ => (vec![], true),
        }
    }

    /// Lists a function, or the part of it that a call reaches.
    fn function(
        &mut self,
        function: &'a Function,
        part: Option<&CalledBody>,
        call: Option<&Call<'a>>,
    ) {
        let count = function.instructions.len();
        let all = match part {
            Some(body) => body.instructions.clone(),
            None => self.body(function, 0).instructions.clone(),
        };
        self.listing.steps.reserve(all.len() + all.len() / 8);
        let mut label_of: HashMap<usize, u32> = HashMap::new();
        for &at in &all {
            if let Some(instruction) = &function.instructions[at]
                && branches(instruction)
            {
                for to in self.successors(function, at, instruction).0 {
                    let labels = &mut self.listing.labels;
                    label_of.entry(to).or_insert_with(|| {
                        labels.push(usize::MAX);
                        labels.len() as u32 - 1
                    });
                }
            }
        }
        let slots = match (self.frame, call) {
            (true, None) => Some(self.slots.clone()),
            _ => None,
        };
        let slot = |offset: i64| slots.as_ref().and_then(|slots| slots.get(&offset).copied());
        let (mut before, mut out): (Option<usize>, _) = (None, Vec::new());
        for at in all {
            // A part may have gaps: what stands in front of one never goes on.
            if before.is_some_and(|before| before + 1 != at) {
                self.push(None, None, Next::Out);
            }
            before = Some(at);
            if let Some(&label) = label_of.get(&at) {
                self.listing.labels[label as usize] = self.listing.steps.len();
            }
            if let Some(call) = call
                && at == call.first
            {
                self.listing.labels[call.label as usize] = self.listing.steps.len();
            }
            let Some(instruction) = &function.instructions[at] else {
                self.unknown(at, "an instruction that the disassembler does not know");
                continue;
            };
            let Some(guard) = self.guard(instruction) else { continue };
            if !branches(instruction) {
                self.lift(function, at, instruction, &slot, &mut out);
                for lifted in out.drain(..) {
                    self.push(Some(lifted), guard, Next::On);
                }
                continue;
            }
            match instruction.opcode.as_str() {
                "CALL" => self.call(function, at, instruction, guard, call),
                "RET" => {
                    let next = match call {
                        Some(call) => Next::To(smallvec![call.returns]),
                        None => Next::Out,
                    };
                    self.push(None, guard, next);
                }
                "EXIT" => {
                    let guard = self.with_condition(instruction, guard);
                    self.push(None, guard, Next::Out);
                }
                "KILL" | "RTT" => self.push(None, guard, Next::Out),
                _ => {
                    let (targets, _) = self.successors(function, at, instruction);
                    let guard = self.with_condition(instruction, guard);
                    let labels = targets.iter().filter_map(|to| label_of.get(to).copied());
                    self.push(None, guard, Next::To(labels.collect()));
                }
            }
        }
        self.push(None, None, Next::Out);
        for (to, label) in label_of {
            if to >= count && self.listing.labels[label as usize] == usize::MAX {
                self.listing.labels[label as usize] = self.listing.steps.len() - 1;
            }
        }
    }

    fn push(&mut self, lifted: Option<Lifted>, guard: Option<(u32, bool)>, next: Next) {
        self.listing.steps.push(ListedStep { lifted, guard, next });
    }

    /// The guard of an instruction; `None` where it is never executed.
    fn guard(&self, instruction: &Instruction) -> Option<Option<(u32, bool)>> {
        match instruction.guard {
            None => Some(None),
            Some(guard) => match register_of(guard.predicate, 0) {
                Some(register) => Some(Some((register, guard.negated))),
                None => (!guard.negated).then_some(None),
            },
        }
    }

    /// A branch may have a condition beside its guard.
    fn with_condition(
        &self,
        instruction: &Instruction,
        guard: Option<(u32, bool)>,
    ) -> Option<(u32, bool)> {
        let own = match condition(instruction) {
            Some((register, negated)) => register_of(register, 0).map(|r| (r, negated)),
            None if instruction.has("DIV") || instruction.has("CONV") => {
                Some((self.unknown_predicate, false))
            }
            None => return guard,
        };
        match (own, guard) {
            (Some(own), None) => Some(own),
            _ => Some((self.unknown_predicate, false)),
        }
    }

    fn unknown(&mut self, at: usize, reason: &str) {
        let operation = Operation::Unknown { reason: reason.to_owned() };
        let place = at as u32 * SIZE as u32;
        let lifted =
            Lifted { operation, results: SmallVec::new(), sources: SmallVec::new(), place };
        self.push(Some(lifted), None, Next::On);
    }
}

fn branches(instruction: &Instruction) -> bool {
    matches!(
        instruction.opcode.as_str(),
        "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "JMXU" | "CALL" | "RET" | "EXIT" | "KILL" | "RTT"
    )
}

/// `BRA.U !UP0, target`: the predicate, and whether it is negated.
fn condition(instruction: &Instruction) -> Option<(Register, bool)> {
    instruction.operands.iter().find_map(|operand| match operand {
        Operand::Register(
            register @ (Register::Predicate(_) | Register::UniformPredicate(_)),
            marks,
        ) => Some((*register, marks.not)),
        _ => None,
    })
}
