//! The transfer functions of PTX instructions that compute: their effect on registers.
//!
//! Stage: lowering; the fixpoint calls `step` for each step of a block.
//!
//! Invariant: a guarded assignment is a gated φ of the old and the new value. A result that is not
//! followed is an opaque symbol, which remembers its operands.

use smallvec::smallvec;

use crate::access::domain::condition::Predicate;
use crate::access::domain::expression::{ExprId, Index, Interner, Operator, Symbol};
use crate::access::fixpoint::interpret::{Interpreter, Kind, Sources, State};
use crate::access::lower::liveness;
use crate::access::lower::steps::{Arg, Flow};
use crate::ptx::{Instruction, Type};

/// One instruction under interpretation.
pub(in crate::access) struct PtxSite<'a, 'm> {
    pub(in crate::access) number: usize,
    pub(in crate::access) instruction: &'m Instruction,
    pub(in crate::access) args: &'a [Arg],
    pub(in crate::access) types: Vec<Type>,
    /// GuardedPhis: the old value of a result may stay.
    pub(in crate::access) guard: Option<(u32, bool)>,
}

/// Where something is assigned, and under which guard: the old value of a result may stay.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct AssignSite {
    pub(in crate::access) number: usize,
    pub(in crate::access) guard: Option<(u32, bool)>,
}

impl PtxSite<'_, '_> {
    /// The type that says what the operation works on: the last one written.
    fn ty(&self) -> Type {
        self.types.last().copied().unwrap_or(Type::B32)
    }
}

fn dimension(name: &str) -> Option<(&str, u8)> {
    let (base, dim) = name.rsplit_once('.')?;
    Some((
        base,
        match dim {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return None,
        },
    ))
}

impl Interpreter<'_> {
    /// Interprets one step.
    pub(in crate::access) fn step(&mut self, number: usize, state: &mut State) {
        if let Some(control) = self.controls[number] {
            self.control(number, control, state);
        }
        if let Some(lifted) = self.flat.steps[number].machine.clone() {
            let place = AssignSite { number, guard: self.flat.steps[number].guard };
            return self.machine_step(place, &lifted, state);
        }
        let step = self.flat.steps[number].clone();
        let Some(instruction) = step.instruction else { return };
        let types = instruction.modifiers.iter().filter_map(|m| Type::from_name(m)).collect();
        let site = PtxSite { number, instruction, args: &step.args, types, guard: step.guard };
        match step.flow {
            Flow::To(_) | Flow::Out => return,
            Flow::Bind => {
                if let [Arg::Register(to), from] = &step.args[..] {
                    if self.flat.registers[*to as usize] {
                        let predicate = self.predicate(from, state);
                        state.registers[*to as usize] = self.predicate_id(predicate) + 1;
                    } else {
                        let value = self.value(&site, from, state);
                        state.registers[*to as usize] = value.0 + 1;
                    }
                }
                return;
            }
            Flow::On => {}
        }
        if self.effect(&site, step.guard, step.callee, state) {
            return;
        }
        if self.predicate_step(&site, state) {
            return;
        }
        match instruction.opcode.as_str() {
            "mov" => self.mov(&site, state),
            "selp" | "slct" => {
                let a = self.operand(&site, 1, state);
                let b = self.operand(&site, 2, state);
                let value = if a == b {
                    a
                } else {
                    let symbol = Symbol::Site(number as u32, 0);
                    let which = match site.args.get(3) {
                        Some(arg) if instruction.opcode == "selp" => self.predicate(arg, state),
                        _ => Predicate::default(),
                    };
                    let inputs = [(a, which.when_true), (b, which.when_false)];
                    self.define_gated_phi(symbol, inputs)
                };
                self.assign(&site, value, state);
            }
            _ => {
                let followed = self.arithmetic(&site, state);
                match followed {
                    Some(value) => self.assign(&site, value, state),
                    None => self.opaque(&site, state),
                }
            }
        }
    }

    /// The value of an operand that is no predicate.
    pub(in crate::access) fn value(
        &mut self,
        site: &PtxSite<'_, '_>,
        arg: &Arg,
        state: &State,
    ) -> ExprId {
        match arg {
            Arg::Register(register) if !self.flat.registers[*register as usize] => {
                match state.registers[*register as usize] {
                    0 => self.unknown(site, smallvec![], None),
                    id => ExprId(id - 1),
                }
            }
            Arg::Constant(value) => self.interner.constant(*value),
            Arg::Special(name) => self.special(site, name),
            Arg::Param(offset) => {
                let block = self.interner.of(Symbol::ParamBlock);
                self.interner.offset(block, i64::from(*offset)).unwrap_or(block)
            }
            Arg::Global(global) => self.interner.of(Symbol::Global(*global)),
            Arg::Window => self.interner.of(Symbol::Window),
            Arg::Address(base, offset, _) => {
                let base = self.value(site, base, state);
                match self.interner.offset(base, *offset) {
                    Some(value) => value,
                    None => self.unknown(site, smallvec![base], None),
                }
            }
            Arg::Slot(slot) => {
                let pieces: Vec<u32> =
                    self.flat.slots[*slot as usize].pieces.values().map(|p| p.1).collect();
                let sources = pieces
                    .into_iter()
                    .filter_map(|r| state.registers[r as usize].checked_sub(1).map(ExprId))
                    .collect();
                self.unknown(site, sources, None)
            }
            _ => self.unknown(site, smallvec![], None),
        }
    }

    /// The value of the operand `at`; an unknown one where there is none.
    pub(in crate::access) fn operand(
        &mut self,
        site: &PtxSite<'_, '_>,
        at: usize,
        state: &State,
    ) -> ExprId {
        match site.args.get(at) {
            Some(arg) => self.value(site, arg, state),
            None => self.unknown(site, smallvec![], None),
        }
    }

    /// A new value at this site.
    pub(in crate::access) fn unknown(
        &mut self,
        site: &PtxSite<'_, '_>,
        sources: Sources,
        bounds: Option<(i64, i64)>,
    ) -> ExprId {
        self.fresh(site.number, Kind::Opaque, sources, bounds)
    }

    /// A new value at a step, the same for the same sources.
    pub(in crate::access) fn fresh(
        &mut self,
        number: usize,
        kind: Kind,
        sources: Sources,
        bounds: Option<(i64, i64)>,
    ) -> ExprId {
        let number = number as u32;
        let mut slot = 100;
        // Several unknown operands of one instruction are different values.
        while slot < 200 {
            let symbol = Symbol::Site(number, slot);
            let id = self.interner.symbol_id(symbol);
            match self.definitions.get(&id) {
                Some(known) if known.sources != sources || known.kind != kind => slot += 1,
                _ => return self.define(symbol, kind, sources, bounds),
            }
        }
        self.define(Symbol::Site(number, 200), Kind::Opaque, sources, bounds)
    }

    fn special(&mut self, site: &PtxSite<'_, '_>, name: &str) -> ExprId {
        let index = match dimension(name) {
            Some(("%tid", d)) => Some(Index::Thread(d)),
            Some(("%ctaid", d)) => Some(Index::Block(d)),
            Some(("%ntid", d)) => Some(Index::BlockSize(d)),
            Some(("%nctaid", d)) => Some(Index::GridSize(d)),
            _ if name == "%laneid" => Some(Index::Lane),
            _ => None,
        };
        match index {
            Some(index) => self.interner.of(Symbol::Index(index)),
            // Where grids that synchronise find the driver's memory for it.
            None if name.starts_with("%envreg") => {
                self.fresh(site.number, Kind::Driver, smallvec![], None)
            }
            None => self.unknown(site, smallvec![], None),
        }
    }

    /// Writes the result, or joins it with the old value where the instruction has a guard.
    pub(in crate::access) fn assign(
        &mut self,
        site: &PtxSite<'_, '_>,
        value: ExprId,
        state: &mut State,
    ) {
        match site.args.first() {
            Some(Arg::Register(register)) => self.assign_to(site, *register, 0, value, state),
            Some(Arg::Pair(first, _)) => {
                if let Arg::Register(register) = **first {
                    self.assign_to(site, register, 0, value, state);
                }
            }
            _ => {}
        }
    }

    /// Assigns result `number` of an instruction.
    pub(in crate::access) fn assign_to(
        &mut self,
        site: &PtxSite<'_, '_>,
        register: u32,
        number: u16,
        value: ExprId,
        state: &mut State,
    ) {
        let place = AssignSite { number: site.number, guard: site.guard };
        self.write(place, register, number, value, state);
    }

    /// Assigns a register, or joins the value with the old one where there is a guard.
    pub(in crate::access) fn write(
        &mut self,
        at: AssignSite,
        register: u32,
        number: u16,
        value: ExprId,
        state: &mut State,
    ) {
        let place = register as usize;
        if self.flat.registers[place] {
            state.registers[place] = 0;
            return;
        }
        let old = state.registers[place];
        let value = match at.guard {
            Some((guard, negated)) if old != 0 && old != value.0 + 1 => {
                let symbol = Symbol::Site(at.number as u32, 300 + number);
                let kept = self.implied(state, guard, negated);
                let made = self.implied(state, guard, !negated);
                let predicate = state.registers[guard as usize];
                let id = self.interner.symbol_id(symbol);
                let values = [ExprId(old - 1), value];
                let phi = (predicate != 0).then_some((predicate, negated, values));
                self.set_guarded_phi(id, phi);
                self.define_gated_phi(symbol, [(values[0], kept), (value, made)])
            }
            _ => value,
        };
        state.registers[place] = value.0 + 1;
    }

    /// All results become values that are made of the operands in some way.
    pub(in crate::access) fn opaque(&mut self, site: &PtxSite<'_, '_>, state: &mut State) {
        if !liveness::has_result(&self.flat.steps[site.number]) {
            return;
        }
        let mut sources = Sources::new();
        for arg in site.args.iter().skip(1) {
            self.collect(site, arg, state, &mut sources);
        }
        let bounds = match site.instruction.opcode.as_str() {
            "popc" | "clz" => Some((0, 64)),
            _ => None,
        };
        let mut number = 0;
        self.opaque_results(site, &site.args[0], &sources, bounds, &mut number, state);
    }

    /// Adds the values that an operand brings to `out`; constants and predicates bring none.
    pub(in crate::access) fn collect(
        &mut self,
        site: &PtxSite<'_, '_>,
        arg: &Arg,
        state: &State,
        out: &mut Sources,
    ) {
        match arg {
            Arg::Vector(items) | Arg::Group(items) => {
                items.iter().for_each(|item| self.collect(site, item, state, out));
            }
            Arg::Constant(_) | Arg::Other | Arg::Sink | Arg::Special(_) => {}
            Arg::Register(r) if self.flat.registers[*r as usize] => {}
            _ => out.push(self.value(site, arg, state)),
        }
    }

    /// Assigns an opaque value to each register of an operand.
    pub(in crate::access) fn opaque_results(
        &mut self,
        site: &PtxSite<'_, '_>,
        arg: &Arg,
        sources: &[ExprId],
        bounds: Option<(i64, i64)>,
        number: &mut u16,
        state: &mut State,
    ) {
        match arg {
            Arg::Register(register) => {
                *number += 1;
                let symbol = Symbol::Site(site.number as u32, *number);
                let value = self.define(symbol, Kind::Opaque, sources.into(), bounds);
                self.assign_to(site, *register, *number, value, state);
            }
            Arg::Vector(items) | Arg::Group(items) => {
                for item in items {
                    self.opaque_results(site, item, sources, bounds, number, state);
                }
            }
            Arg::Pair(a, b) => {
                self.opaque_results(site, a, sources, bounds, number, state);
                self.opaque_results(site, b, sources, bounds, number, state);
            }
            Arg::Slot(slot) => {
                let pieces: Vec<u32> =
                    self.flat.slots[*slot as usize].pieces.values().map(|p| p.1).collect();
                for register in pieces {
                    let arg = Arg::Register(register);
                    self.opaque_results(site, &arg, sources, bounds, number, state);
                }
            }
            _ => {}
        }
    }

    fn mov(&mut self, site: &PtxSite<'_, '_>, state: &mut State) {
        match (site.args, site.ty()) {
            ([Arg::Vector(items), from], Type::B64 | Type::U64 | Type::S64) if items.len() == 2 => {
                let value = self.value(site, from, state);
                let parts = match self.interner.as_symbol(value) {
                    // Two parameters that were loaded as one.
                    Some(Symbol::Param { offset, width: 8, .. }) => [offset, offset + 4]
                        .map(|offset| Symbol::Param { offset, width: 4, signed: true })
                        .map(|half| self.interner.of(half)),
                    _ => {
                        let zero = self.interner.constant(0);
                        [value, self.interner.function(Operator::Upper, value, zero)]
                    }
                };
                for (number, (item, part)) in items.iter().zip(parts).enumerate() {
                    if let Arg::Register(register) = item {
                        self.assign_to(site, *register, number as u16, part, state);
                    }
                }
            }
            ([_, Arg::Vector(items)], Type::B64 | Type::U64 | Type::S64) if items.len() == 2 => {
                let low = self.value(site, &items[0], state);
                let high = self.value(site, &items[1], state);
                let value = self.pack(low, high);
                match value {
                    Some(value) => self.assign(site, value, state),
                    None => self.opaque(site, state),
                }
            }
            ([Arg::Register(_), from], _) if !matches!(from, Arg::Vector(_) | Arg::Other) => {
                let value = self.value(site, from, state);
                self.assign(site, value, state);
            }
            _ => self.opaque(site, state),
        }
    }

    /// The 64-bit value of two halves, where it is known what they are halves of.
    pub(in crate::access) fn pack(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        let word = |symbol| match symbol {
            Some(Symbol::Param { offset, width: 4, .. }) => Some(offset),
            _ => None,
        };
        match self.interner.as_symbol(high) {
            Some(Symbol::Function(Operator::Upper, whole, _)) => {
                let (a, b) = (self.interner.bare(whole), self.interner.bare(low));
                if a == b {
                    return Some(whole);
                }
                // The low half was aligned or moved within its 32 bits: not followed.
                return None;
            }
            symbol => {
                if let (Some(a), Some(b)) = (word(self.interner.as_symbol(low)), word(symbol))
                    && b == a + 4
                {
                    let param = Symbol::Param { offset: a, width: 8, signed: true };
                    return Some(self.interner.of(param));
                }
            }
        }
        match self.interner.as_constant(high) {
            Some(0) => self.interner.with_no_wrap(low, 0, i64::from(u32::MAX)),
            _ => None,
        }
    }

    /// The predicate that an operand is.
    pub(in crate::access) fn predicate(&self, arg: &Arg, state: &State) -> Predicate {
        match arg {
            Arg::Register(register) if self.flat.registers[*register as usize] => {
                match state.registers[*register as usize] {
                    0 => Predicate::default(),
                    id => self.predicates[id as usize - 1].clone(),
                }
            }
            Arg::Not(inner) => self.predicate(inner, state).not(),
            _ => Predicate::default(),
        }
    }

    fn assign_predicate(
        &mut self,
        site: &PtxSite<'_, '_>,
        arg: &Arg,
        value: Predicate,
        state: &mut State,
    ) {
        if let Arg::Register(register) = arg
            && self.flat.registers[*register as usize]
        {
            state.registers[*register as usize] =
                if site.guard.is_some() { 0 } else { self.predicate_id(value) + 1 };
        }
    }

    /// Instructions whose results are predicates. Returns whether this is one.
    fn predicate_step(&mut self, site: &PtxSite<'_, '_>, state: &mut State) -> bool {
        let Some(first) = site.args.first() else { return false };
        let target = match first {
            Arg::Pair(p, _) => p,
            other => other,
        };
        if !matches!(target, Arg::Register(r) if self.flat.registers[*r as usize]) {
            return false;
        }
        let combine = |word: &str, a: Predicate, b: &Predicate, interner: &mut Interner| match word
        {
            "and" => a.and(b, interner),
            "or" => a.or(b.clone(), interner),
            _ => Predicate::default(),
        };
        let value = match site.instruction.opcode.as_str() {
            "setp" => {
                let ty = site.ty();
                let words = &site.instruction.modifiers;
                let mut value = if ty.is_float() || ty.bits() > 64 {
                    Predicate::default()
                } else {
                    let a = self.operand(site, 1, state);
                    let b = self.operand(site, 2, state);
                    let (a, b) = (self.signed(a, ty), self.signed(b, ty));
                    let word = words.first().map_or("", String::as_str);
                    Predicate::compare(&mut self.interner, word, ty.is_signed(), ty.bits(), a, b)
                };
                let with = words.iter().find(|w| matches!(w.as_str(), "and" | "or" | "xor"));
                if let Some(with) = with {
                    let other = match site.args.get(3) {
                        Some(arg) => self.predicate(arg, state),
                        None => Predicate::default(),
                    };
                    let negated = combine(with, value.clone().not(), &other, &mut self.interner);
                    value = combine(with, value, &other, &mut self.interner);
                    if let Arg::Pair(_, q) = first {
                        self.assign_predicate(site, q, negated, state);
                    }
                } else if let Arg::Pair(_, q) = first {
                    self.assign_predicate(site, q, value.clone().not(), state);
                }
                value
            }
            word @ ("and" | "or") if site.args.len() == 3 => {
                let a = self.predicate(&site.args[1], state);
                let b = self.predicate(&site.args[2], state);
                combine(word, a, &b, &mut self.interner)
            }
            "not" if site.args.len() == 2 => self.predicate(&site.args[1], state).not(),
            "mov" if site.args.len() == 2 => self.predicate(&site.args[1], state),
            _ => {
                if let Arg::Pair(_, q) = first {
                    self.assign_predicate(site, q, Predicate::default(), state);
                }
                Predicate::default()
            }
        };
        self.assign_predicate(site, target, value, state);
        true
    }

    /// A constant as the signed number of its type.
    pub(in crate::access) fn signed(&mut self, value: ExprId, ty: Type) -> ExprId {
        match self.interner.as_constant(value) {
            Some(constant) if ty.bits() < 64 => {
                let shift = 64 - ty.bits();
                self.interner.constant(constant << shift >> shift)
            }
            _ => value,
        }
    }
}
