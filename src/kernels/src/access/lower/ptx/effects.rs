//! The effects of PTX instructions on memory: every load, store, atomic, copy, texture access and
//! call becomes a [`Raw`] access under its path condition.
//!
//! Stage: lowering; also the form in which machine code records its accesses.
//!
//! Invariant: an opcode that is not in the tables here is never skipped. The memory behind each
//! operand that may be an address counts as touched in an unknown way.

use std::collections::BTreeSet;

use crate::access::domain::condition::Condition;
use crate::access::domain::expression::{ExprId, Provenance, Symbol};
use crate::access::domain::path_condition::PathCondition;
use crate::access::fixpoint::grid_control::Waited;
use crate::access::fixpoint::interpret::{Interpreter, Sources, State};
use crate::access::lower::ptx::values::PtxSite;
use crate::access::lower::steps::Arg;
use crate::access::summary::result::Touch;
use crate::ptx::{Instruction, Space};
use streamsan_model::{Trigger, WordKind};

/// Bytes from the address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Size {
    Bytes(u32),
    Expression(ExprId),
    /// At most as many bytes as the expression gives.
    AtMost(u32),
    Unknown,
}

/// One access as an instruction makes it.
#[derive(Debug, Clone)]
pub(in crate::access) struct Raw {
    pub(in crate::access) step: usize,
    pub(in crate::access) address: ExprId,
    /// The address before any of its φs was split.
    pub(in crate::access) before: ExprId,
    pub(in crate::access) touch: Touch,
    pub(in crate::access) size: Size,
    pub(in crate::access) kind: WordKind,
    pub(in crate::access) path: Vec<Condition>,
    pub(in crate::access) exact: bool,
    /// Whether the address is one of several, under conditions that are not known.
    pub(in crate::access) several: bool,
    pub(in crate::access) waited: Waited,
}

/// The effects of a block, or of the whole kernel, on memory.
#[derive(Debug, Default)]
pub(in crate::access) struct Effects {
    pub(in crate::access) accesses: Vec<Raw>,
    /// Why anything may be touched.
    pub(in crate::access) unknown: BTreeSet<String>,
    /// A wait for the primary grid was seen.
    pub(in crate::access) waits: bool,
    /// Something was touched where no wait was certain.
    pub(in crate::access) early: bool,
    /// The place where the kernel lets its dependents begin.
    pub(in crate::access) trigger: Trigger,
}

impl Effects {
    /// Adds those of the steps behind.
    pub(in crate::access) fn append(&mut self, mut behind: Effects) {
        self.accesses.append(&mut behind.accesses);
        self.unknown.append(&mut behind.unknown);
        self.waits |= behind.waits;
        self.early |= behind.early;
        self.trigger = self.trigger.max(behind.trigger);
    }
}

/// Opcodes that compute, synchronise threads of a block or cluster, or work on memory that no
/// other kernel sees (registers, shared memory, tensor memory).
const LOCAL: &[&str] = &[
    "abs",
    "add",
    "addc",
    "activemask",
    "and",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clz",
    "clusterlaunchcontrol",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "isspacep",
    "istypep",
    "ldmatrix",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "szext",
    "tanh",
    "tcgen05",
    "testp",
    "txq",
    "suq",
    "vote",
    "wgmma",
    "xor",
    "applypriority",
];

/// Functions of the device runtime that touch no memory of the program but through their own
/// means: the printf buffer and the device heap.
const KNOWN_CALLS: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// Whether `ld`, `st`, `atom` or `red` performs strong operations whose scope is the system. PTX ISA:
/// "`ld.volatile` has the same memory synchronization semantics as `ld.relaxed.sys`", and `st` alike;
/// an `.mmio` operation is a relaxed one with the scope `.sys`; without a scope `atom` and `red` have
/// `.gpu`.
pub(in crate::access) fn is_strong_at_system_scope(instruction: &Instruction) -> bool {
    let is_strong = match instruction.opcode.as_str() {
        "ld" | "st" => ["relaxed", "acquire", "release"].iter().any(|word| instruction.has(word)),
        "atom" | "red" => true,
        _ => return false,
    };
    is_strong && instruction.has("sys") || instruction.has("volatile") || instruction.has("mmio")
}

/// The state spaces that an instruction names.
pub(in crate::access) fn spaces(site: &PtxSite<'_, '_>) -> Vec<Space> {
    site.instruction.modifiers.iter().filter_map(|word| Space::from_name(word)).collect()
}

impl Interpreter<'_> {
    /// Interprets the effect of a step on memory. Returns whether the step is done with.
    pub(in crate::access) fn effect(
        &mut self,
        site: &PtxSite<'_, '_>,
        guard: Option<(u32, bool)>,
        callee: Option<&str>,
        state: &mut State,
    ) -> bool {
        let instruction = site.instruction;
        let mut here = AccessPath::at(state);
        if let Some((register, negated)) = guard {
            self.assume_in(&mut here, state, register, !negated);
        }
        match instruction.opcode.as_str() {
            "ld" | "ldu" => self.load(site, &here, state),
            "st" => self.store(site, &here, state),
            "atom" | "red" => {
                let at = usize::from(instruction.opcode == "atom");
                let count = match site.args.get(at + 1) {
                    Some(Arg::Vector(items)) => items.len() as u32,
                    _ => 1,
                };
                if instruction.has("async") {
                    return true;
                }
                let size = Size::Bytes(self.element(site) * count);
                let touch = Touch::Atomic.strong(is_strong_at_system_scope(instruction));
                self.memory(site, at, touch, size, &here, state);
                if at == 1 {
                    let address = self.operand(site, 1, state);
                    self.loaded(site, address, state);
                }
                true
            }
            "cp" => self.copy(site, &here, state),
            "tex" | "tld4" | "suld" => {
                let at = site.args.iter().position(|arg| matches!(arg, Arg::Address(..)));
                self.handle(site, at.unwrap_or(0), Touch::Read, &here, state);
                self.opaque(site, state);
                true
            }
            "sust" => self.handle(site, 0, Touch::Write, &here, state),
            "sured" => self.handle(site, 0, Touch::Atomic, &here, state),
            "wmma" if instruction.has("load") => {
                self.memory(site, 1, Touch::Read, Size::Unknown, &here, state);
                self.opaque(site, state);
                true
            }
            "wmma" if instruction.has("store") => {
                self.memory(site, 0, Touch::Write, Size::Unknown, &here, state)
            }
            "wmma" => false,
            "multimem" => {
                let reads = instruction.has("ld_reduce");
                let touch = match (reads, instruction.has("red")) {
                    (true, _) => Touch::Read,
                    (_, true) => Touch::Atomic,
                    _ => Touch::Write,
                };
                self.memory(site, usize::from(reads), touch, Size::Unknown, &here, state);
                self.opaque(site, state);
                true
            }
            "discard" => self.memory(site, 0, Touch::Write, Size::Bytes(128), &here, state),
            "tensormap" => {
                // Replacing a field and publishing a map both write the map itself.
                self.memory(site, 0, Touch::Write, Size::Bytes(128), &here, state)
            }
            "alloca" => {
                let window = self.interner.of(Symbol::Window);
                self.assign(site, window, state);
                true
            }
            "cvta" => {
                let words = spaces(site);
                if matches!(words[..], [Space::Shared | Space::Local]) {
                    let window = self.interner.of(Symbol::Window);
                    self.assign(site, window, state);
                    return true;
                }
                let value = self.operand(site, 1, state);
                if let Some(Symbol::Param { offset, width: 8, .. }) = self.interner.as_symbol(value)
                {
                    self.pointers.insert(offset);
                }
                false
            }
            "mapa" => {
                let window = self.interner.of(Symbol::Window);
                self.assign(site, window, state);
                true
            }
            // See `grid_control`.
            "griddepcontrol" => true,
            "shfl" => {
                // Another lane's value: the same where no lane has one of its own.
                let value = self.operand(site, 1, state);
                let differs = self.interner.mentions(value, &|symbol| {
                    !matches!(symbol, Symbol::Param { .. } | Symbol::Global(_))
                });
                if differs || matches!(site.args[0], Arg::Pair(..)) {
                    self.opaque(site, state);
                } else {
                    self.assign(site, value, state);
                }
                true
            }
            "call" => self.call(site, callee, &here, state),
            opcode if LOCAL.contains(&opcode) => false,
            _ => {
                self.anything(site, &here, state);
                self.opaque(site, state);
                true
            }
        }
    }

    /// Bytes of one element: those of the last type that is written; 16 where none is.
    pub(in crate::access) fn element(&self, site: &PtxSite<'_, '_>) -> u32 {
        site.types.last().map_or(16, |ty| ty.size())
    }

    /// Records an access, unless its address is in shared or local memory.
    pub(in crate::access) fn note(
        &mut self,
        step: usize,
        address: ExprId,
        (touch, size, kind): (Touch, Size, WordKind),
        here: &AccessPath,
        state: &State,
    ) {
        if self.interner.provenance(address) & Provenance::WINDOW != 0 {
            return;
        }
        self.interner.budget.memory(size_of::<Raw>() + size_of::<Condition>() * here.path.len());
        self.effects.early |= state.passed.waited != Waited::Yes;
        self.effects.accesses.push(Raw {
            step,
            address,
            before: address,
            touch,
            size,
            kind,
            path: here.path.to_vec(),
            exact: here.exact,
            several: false,
            waited: state.passed.waited,
        });
    }

    /// An access at the address that operand `at` is; nothing for other spaces.
    pub(in crate::access) fn memory(
        &mut self,
        site: &PtxSite<'_, '_>,
        at: usize,
        touch: Touch,
        size: Size,
        here: &AccessPath,
        state: &State,
    ) -> bool {
        let words = spaces(site);
        if words.first().is_some_and(|s| !matches!(s, Space::Global | Space::Const)) {
            return true;
        }
        let address = self.operand(site, at, state);
        self.note(site.number, address, (touch, size, WordKind::Pointer), here, state);
        true
    }

    /// A texture or surface access through a reference or a handle.
    pub(in crate::access) fn handle(
        &mut self,
        site: &PtxSite<'_, '_>,
        at: usize,
        touch: Touch,
        here: &AccessPath,
        state: &State,
    ) -> bool {
        let address = self.operand(site, at, state);
        self.note(site.number, address, (touch, Size::Unknown, WordKind::Handle), here, state);
        true
    }

    /// Every operand that may be an address is touched in an unknown way.
    pub(in crate::access) fn anything(
        &mut self,
        site: &PtxSite<'_, '_>,
        here: &AccessPath,
        state: &State,
    ) {
        let mut values = Sources::new();
        for arg in site.args {
            self.collect(site, arg, state, &mut values);
        }
        for value in values {
            self.note(
                site.number,
                value,
                (Touch::Unknown, Size::Unknown, WordKind::Pointer),
                here,
                state,
            );
        }
        let name = site.instruction.full_name();
        self.effects
            .unknown
            .insert(format!("line {}: `{name}` is not known", site.instruction.line));
    }

    fn call(
        &mut self,
        site: &PtxSite<'_, '_>,
        callee: Option<&str>,
        here: &AccessPath,
        state: &mut State,
    ) -> bool {
        let line = site.instruction.line;
        if !callee.is_some_and(|name| KNOWN_CALLS.contains(&name)) {
            let reason = match callee {
                Some(name) => format!("line {line}: calls `{name}`, whose code is not followed"),
                None => format!("line {line}: calls a function through a pointer"),
            };
            self.effects.unknown.insert(reason);
            self.effects.early |= state.passed.waited != Waited::Yes;
            let mut values = Sources::new();
            for arg in &site.args[1..] {
                match arg {
                    // Each argument apart, so that each pointer is seen.
                    Arg::Group(items) => {
                        for item in items {
                            match item {
                                Arg::Slot(slot) => {
                                    let pieces = &self.flat.slots[*slot as usize].pieces;
                                    values.extend(pieces.values().filter_map(|&(_, r)| {
                                        state.registers[r as usize].checked_sub(1).map(ExprId)
                                    }));
                                }
                                item => self.collect(site, item, state, &mut values),
                            }
                        }
                    }
                    arg => self.collect(site, arg, state, &mut values),
                }
            }
            for value in values {
                let (touch, kind) = (Touch::Unknown, WordKind::Pointer);
                self.note(site.number, value, (touch, Size::Unknown, kind), here, state);
            }
        }
        self.opaque(site, state);
        true
    }
}

/// The path condition of an access, the guard of the instruction included.
#[derive(Debug)]
pub(in crate::access) struct AccessPath {
    pub(in crate::access) path: PathCondition,
    pub(in crate::access) exact: bool,
}

impl AccessPath {
    /// In front of an instruction.
    pub(in crate::access) fn at(state: &State) -> AccessPath {
        AccessPath { path: state.path.clone(), exact: state.exact }
    }
}

impl Interpreter<'_> {
    /// Adds what follows from a predicate being `value`.
    pub(in crate::access) fn assume_in(
        &self,
        here: &mut AccessPath,
        state: &State,
        register: u32,
        value: bool,
    ) {
        let id = state.registers[register as usize];
        if id == 0 {
            here.exact = false;
            return;
        }
        let predicate = &self.predicates[id as usize - 1];
        let known = if value { &predicate.when_true } else { &predicate.when_false };
        here.exact &= known.complete;
        here.path.extend(known.conditions.iter().copied());
    }
}
