//! Calls in machine code: which function a call means, and whether the function is inlined.
//!
//! Stage: lowering, a part of `lift`.
//!
//! Invariant: registers that a call may assign are unknown behind the call if it is not inlined.

use std::collections::BTreeSet;

use smallvec::{SmallVec, smallvec};

use super::super::constant_banks::{RETURN, is_predicate};
use super::super::operation::{Lifted, LiftedSource, Operation, SourceValue};
use super::super::syscalls;
use super::{
    Builder, Call, MAX_COPIED, MAX_DEPTH, MAX_INSTRUCTIONS, Next, SIZE, identity, integer,
};
use crate::sass::{Function, Instruction, Operand, Register};

impl<'a> Builder<'a> {
    /// Whether a function is one of the compiler's own for division and the like, through which
    /// no pointer passes.
    fn is_arithmetic(&self, function: &Function, first: usize) -> bool {
        let inner = function.inner.get(&((first as i64 * SIZE) as u32));
        let name = if first == 0 { Some(&function.name) } else { inner };
        name.is_some_and(|name| name.contains("$__cuda_sm") || name.starts_with("__cuda_sm"))
    }

    /// Whether a call is prepared to return behind itself: one of the instructions before it puts
    /// that place into a register, from where the function may move it before it returns.
    fn returns_behind(function: &Function, at: usize) -> bool {
        let expected = (at as i64 + 1) * SIZE;
        (at.saturating_sub(128)..at).rev().any(|earlier| {
            let place = (earlier as i64 * SIZE) as u32;
            let Some(instruction) = function.instructions[earlier].as_deref() else { return false };
            let moves = instruction.opcode == "MOV" || instruction.has("MOV");
            let relocation = function.relocations.get(&place);
            moves
                && match relocation {
                    Some(relocation) => relocation.addend == expected,
                    None => instruction.operands.contains(&Operand::Integer(expected)),
                }
        })
    }

    /// All that a function may have assigned is some number.
    fn clobber(&mut self, at: usize, assigned: &BTreeSet<u32>, guard: Option<(u32, bool)>) {
        let lifted = Lifted {
            operation: Operation::Opaque { bounds: None, keeps: false },
            results: assigned.iter().copied().collect(),
            sources: SmallVec::new(),
            place: at as u32 * SIZE as u32,
        };
        self.push(Some(lifted), guard, Next::On);
    }

    pub(super) fn call(
        &mut self,
        function: &'a Function,
        at: usize,
        instruction: &Instruction,
        guard: Option<(u32, bool)>,
        within: Option<&Call<'a>>,
    ) {
        self.clobber(at, &BTreeSet::from([RETURN, RETURN + 1]), None);
        let Some((callee, first)) = self.callee(function, at, instruction) else {
            let name = self.called_name(function, at);
            let place = at as u32 * SIZE as u32;
            match name.as_deref().and_then(|name| syscalls::called(name, place)) {
                Some(Some(access)) => self.push(Some(access), guard, Next::On),
                Some(None) => {}
                None => {
                    let reason = match name {
                        Some(name) => format!("calls `{name}`, whose code is not followed"),
                        None => "calls a function through a pointer".to_owned(),
                    };
                    self.unknown(at, &reason);
                }
            }
            // The registers that the conventions of calls leave to the callee, and more.
            let assigned = (0..255).filter(|&r| r != 1).chain(512..520).collect();
            self.clobber_blind(at, &assigned, guard);
            return;
        };
        let body = self.body(callee, first);
        if !Self::returns_behind(function, at) {
            self.unknown(at, "a call that does not return behind itself");
        }
        if body.computes && self.is_arithmetic(callee, first) {
            self.clobber(at, &body.assigned.clone(), guard);
            return;
        }
        let key = (identity(callee), first);
        let depth = within.map_or(0, |call| call.depth) + 1;
        let mut stack = within.map(|call| call.stack.clone()).unwrap_or_default();
        let pending: usize = self.pending.iter().map(|c| c.function.instructions.len()).sum();
        let size = self.listing.steps.len() + pending + body.instructions.len();
        if body.computes && body.instructions.len() > MAX_COPIED {
            // The results depend on the arguments.
            let register = |&r: &u32| LiftedSource::plain(SourceValue::Register(r));
            let sources = body.read.iter().filter(|&&r| !is_predicate(r)).map(register);
            let lifted = Lifted {
                operation: Operation::Opaque { bounds: None, keeps: false },
                results: body.assigned.iter().copied().collect(),
                sources: sources.collect(),
                place: at as u32 * SIZE as u32,
            };
            self.push(Some(lifted), guard, Next::On);
            return;
        }
        if stack.contains(&key) || depth > MAX_DEPTH || size > MAX_INSTRUCTIONS {
            self.unknown(at, "calls a function that is not followed");
            let assigned = (0..255).filter(|&r| r != 1).chain(512..520).collect();
            self.clobber_blind(at, &assigned, guard);
            return;
        }
        stack.push(key);
        let label = self.new_label();
        let returns = self.new_label();
        self.push(None, guard, Next::To(smallvec![label]));
        self.listing.labels[returns as usize] = self.listing.steps.len();
        self.pending.push(Call { function: callee, first, label, returns, depth, stack });
    }

    fn clobber_blind(&mut self, at: usize, assigned: &BTreeSet<u32>, guard: Option<(u32, bool)>) {
        let lifted = Lifted {
            operation: Operation::Opaque { bounds: None, keeps: true },
            results: assigned.iter().copied().collect(),
            sources: SmallVec::new(),
            place: at as u32 * SIZE as u32,
        };
        self.push(Some(lifted), guard, Next::On);
    }

    pub(super) fn inline(&mut self, call: Call<'a>) {
        let body = self.body(call.function, call.first);
        self.function(call.function, Some(&body), Some(&call));
    }

    /// The function that a call means, and its first instruction.
    fn callee(
        &self,
        function: &'a Function,
        at: usize,
        instruction: &Instruction,
    ) -> Option<(&'a Function, usize)> {
        let name = function.relocations.get(&((at as i64 * SIZE) as u32)).map(|r| &r.symbol);
        if let Some(named) = name.and_then(|name| self.code.functions.get(name)) {
            return Some((named, 0));
        }
        if instruction.has("REL") {
            let target = instruction.operands.iter().find_map(|operand| match operand {
                Operand::Target(to) | Operand::Integer(to) => Some(*to),
                _ => None,
            })?;
            let first = usize::try_from(target / SIZE).ok()?;
            return (first < function.instructions.len()).then_some((function, first));
        }
        let name = self.called_name(function, at)?;
        self.code.functions.get(&name).map(|function| (function, 0))
    }

    /// The function whose address was put into the registers of a call through them.
    fn called_name(&self, function: &Function, at: usize) -> Option<String> {
        let instruction = function.instructions[at].as_deref()?;
        let Some(Operand::Register(Register::General(register), _)) = instruction.operands.first()
        else {
            return None;
        };
        let from = at.saturating_sub(64);
        for earlier in (from..at).rev() {
            let Some(candidate) = function.instructions[earlier].as_deref() else { continue };
            let assigns = matches!(
                candidate.operands.first(),
                Some(Operand::Register(Register::General(r), _)) if r == register
            );
            if !assigns {
                continue;
            }
            let place = (earlier as i64 * SIZE) as u32;
            if let Some(relocation) = function.relocations.get(&place) {
                return Some(relocation.symbol.clone());
            }
            return match candidate.operands.get(1) {
                Some(Operand::Constant { bank, register: None, offset, .. }) => {
                    self.banks.symbol(*bank, *offset)
                }
                Some(Operand::Constant { bank, register: Some(index), offset, .. }) => {
                    // `LDC.64 R2, c[0x4][R0]` with a constant in R0.
                    let index = constant_before(function, earlier, *index)?;
                    self.banks.symbol(*bank, offset + index)
                }
                _ => None,
            };
        }
        None
    }
}

/// The constant that a register was given in front of an instruction.
fn constant_before(function: &Function, at: usize, register: Register) -> Option<i64> {
    let from = at.saturating_sub(64);
    for earlier in (from..at).rev() {
        let Some(candidate) = function.instructions[earlier].as_deref() else { continue };
        let assigns = matches!(
            candidate.operands.first(),
            Some(Operand::Register(r, _)) if *r == register
        );
        if assigns {
            let last = candidate.operands.len().checked_sub(1)?;
            return match candidate.opcode.as_str() {
                "MOV" | "IMAD" | "UMOV" => integer(candidate, last),
                _ => None,
            };
        }
    }
    None
}
