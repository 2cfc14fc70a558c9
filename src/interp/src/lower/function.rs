//! Lowering one function: statements, scopes, labels and guards.

use std::collections::HashMap;

use streamsan_ptx::{
    Function, Instruction, Param, Space, Statement, StatementKind, Type, Variable,
};

use super::form::Problem;
use super::module::Context;
use super::symbols::{Scope, Scopes, Symbol};
use crate::code::{ArgumentPlace, Code, Constant, FIRST_SLOT, Op, Slot, Special};
use crate::fault::LowerError;

/// Local memory of one frame at most, in bytes (the limit of a thread on every GPU).
const MAX_LOCAL: u64 = 512 * 1024;

pub(super) struct FunctionLowering<'a, 'm> {
    pub(super) context: &'a mut Context<'m>,
    pub(super) is_entry: bool,
    pub(super) code: Code,
    pub(super) scopes: Scopes<'m>,
    constants: HashMap<Constant, Slot>,
    specials: HashMap<Special, Slot>,
    /// Place of each label, once it is met.
    labels: Vec<Option<u32>>,
    /// Operations whose target is still a label's number.
    pub(super) fixups: Vec<usize>,
    pub(super) line: u32,
    pub(super) carry: Option<Slot>,
    /// Functions called by name, and whether any is called through a pointer.
    pub(super) called: Vec<u32>,
    pub(super) calls_pointer: bool,
    pub(super) shared_used: Vec<u32>,
}

/// The results of lowering a function beside its code.
pub(super) struct Lowering {
    pub(super) code: Code,
    pub(super) called: Vec<u32>,
    pub(super) calls_pointer: bool,
    pub(super) shared_used: Vec<u32>,
}

pub(super) fn lower_function<'m>(
    context: &mut Context<'m>,
    function: &'m Function,
    statements: &'m [Statement],
    end_line: u32,
) -> Result<Lowering, LowerError> {
    let mut this = FunctionLowering {
        context,
        is_entry: function.is_entry,
        code: Code { slots: FIRST_SLOT, ..Code::default() },
        scopes: Scopes::default(),
        constants: HashMap::new(),
        specials: HashMap::new(),
        labels: Vec::new(),
        fixups: Vec::new(),
        line: function.line,
        carry: None,
        called: Vec::new(),
        calls_pointer: false,
        shared_used: Vec::new(),
    };
    this.scopes.stack.push(Scope::default());
    if function.is_entry {
        for param in &function.params {
            let symbol = Symbol::KernelParam { offset: param.offset };
            this.scopes.innermost().names.insert(param.name.clone(), symbol);
        }
    } else {
        for param in &function.params {
            let place = this.parameter(param)?;
            this.code.parameters.push(place);
        }
        for param in &function.returns {
            let place = this.parameter(param)?;
            this.code.results.push(place);
        }
    }
    this.block(statements)?;
    this.line = end_line;
    this.push(Op::Return);
    this.resolve_labels();
    this.code.local = this.code.local.next_multiple_of(16);
    Ok(Lowering {
        code: this.code,
        called: this.called,
        calls_pointer: this.calls_pointer,
        shared_used: this.shared_used,
    })
}

impl<'m> FunctionLowering<'_, 'm> {
    fn error(&self, line: u32, subject: &str, message: impl Into<String>) -> LowerError {
        LowerError { line, subject: subject.to_owned(), message: message.into() }
    }

    pub(super) fn push(&mut self, op: Op) {
        self.code.ops.push(op);
        self.code.lines.push(self.line);
    }

    pub(super) fn slots(&mut self, count: u32) -> Slot {
        let slot = self.code.slots;
        self.code.slots += count;
        slot
    }

    pub(super) fn temporary(&mut self) -> Slot {
        self.slots(1)
    }

    pub(super) fn constant(&mut self, constant: Constant) -> Slot {
        if let Some(slot) = self.constants.get(&constant) {
            return *slot;
        }
        let slot = self.slots(1);
        self.constants.insert(constant, slot);
        self.code.constants.push((slot, constant));
        slot
    }

    pub(super) fn special(&mut self, special: Special) -> Slot {
        if let Some(slot) = self.specials.get(&special) {
            return *slot;
        }
        let slot = self.slots(1);
        self.specials.insert(special, slot);
        self.code.specials.push((slot, special));
        slot
    }

    fn allocate_local(
        &mut self,
        line: u32,
        name: &str,
        size: u64,
        align: u32,
    ) -> Result<u32, LowerError> {
        let offset = u64::from(self.code.local).next_multiple_of(u64::from(align.max(1)));
        // A frame starts at a multiple of 16; nothing in PTX asks for more than that of locals.
        if offset + size > MAX_LOCAL {
            return Err(self.error(line, name, "the local memory of this function is too large"));
        }
        self.code.local = (offset + size) as u32;
        Ok(offset as u32)
    }

    fn parameter(&mut self, param: &'m Param) -> Result<ArgumentPlace, LowerError> {
        let (symbol, place) = if param.space == Space::Register {
            let slot = self.slots(1);
            (Symbol::Register { slot, ty: param.ty, vector: 1 }, ArgumentPlace::Slot(slot))
        } else {
            let size = param.size;
            let offset = self.allocate_local(param.line, &param.name, size.into(), param.align)?;
            (Symbol::Local { offset, size }, ArgumentPlace::Memory { offset, size })
        };
        self.scopes.innermost().names.insert(param.name.clone(), symbol);
        Ok(place)
    }

    fn variable(&mut self, variable: &'m Variable) -> Result<(), LowerError> {
        let Variable { name, line, .. } = variable;
        let symbol = match variable.space {
            Space::Local | Space::Param => {
                let size = variable.size();
                let offset = self.allocate_local(*line, name, size, variable.align)?;
                Symbol::Local { offset, size: size as u32 }
            }
            Space::Shared => Symbol::Shared(self.context.add_shared(variable)),
            Space::Global | Space::Const => Symbol::Global(self.context.add_global(variable)?),
            _ => return Err(self.error(*line, name, "this variable has no place in a function")),
        };
        self.scopes.innermost().names.insert(name.clone(), symbol);
        Ok(())
    }

    /// Labels and branch tables are known in all of their block, before they are met.
    fn declare_labels(&mut self, statements: &'m [Statement]) -> Result<(), LowerError> {
        for statement in statements {
            match &statement.kind {
                StatementKind::Label(name) => {
                    let number = self.labels.len() as u32;
                    self.labels.push(None);
                    if self.scopes.innermost().labels.insert(name, number).is_some() {
                        return Err(self.error(statement.line, name, "this label is there twice"));
                    }
                }
                StatementKind::BranchTargets { name, labels } => {
                    self.scopes.innermost().tables.insert(name, labels);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn block(&mut self, statements: &'m [Statement]) -> Result<(), LowerError> {
        self.declare_labels(statements)?;
        for statement in statements {
            self.line = statement.line;
            match &statement.kind {
                StatementKind::Block(inner) => {
                    self.scopes.stack.push(Scope::default());
                    self.block(inner)?;
                    self.scopes.stack.pop();
                }
                StatementKind::Label(name) => {
                    let at = self.code.ops.len() as u32;
                    if let Some(number) = self.scopes.label(name) {
                        self.labels[number as usize] = Some(at);
                    }
                }
                StatementKind::Registers(registers) => {
                    let count = registers.count.unwrap_or(1);
                    let words = registers.ty.bits().div_ceil(32) * registers.vector;
                    if registers.ty != Type::Pred {
                        let all = count.saturating_mul(words);
                        self.code.registers = self.code.registers.saturating_add(all);
                    }
                    let slots = &mut self.code.slots;
                    self.scopes.declare_registers(registers, |count| {
                        *slots += count;
                        *slots - count
                    });
                }
                StatementKind::Variable(variable) => self.variable(variable)?,
                StatementKind::Instruction(instruction) => self.guarded(instruction)?,
                StatementKind::BranchTargets { .. }
                | StatementKind::CallTargets { .. }
                | StatementKind::CallPrototype { .. }
                | StatementKind::Location { .. }
                | StatementKind::Pragma(_) => {}
            }
        }
        Ok(())
    }

    fn guarded(&mut self, instruction: &'m Instruction) -> Result<(), LowerError> {
        self.line = instruction.line;
        let lowered = self.guard_and_lower(instruction);
        match lowered {
            Ok(()) => Ok(()),
            Err(Problem::Invalid(message)) => {
                Err(self.error(instruction.line, &instruction.full_name(), message))
            }
            Err(Problem::Unsupported) => {
                self.lacking(instruction.full_name(), instruction.line);
                Ok(())
            }
            Err(Problem::Lacking(what)) => {
                self.lacking(what, instruction.line);
                Ok(())
            }
        }
    }

    /// The driver would load this module, so only a launch that needs this code may fail.
    fn lacking(&mut self, what: String, line: u32) {
        let index = self.code.lacking.len() as u32;
        self.code.lacking.push((what, line));
        self.push(Op::Lacking { what: index });
    }

    fn guard_and_lower(&mut self, instruction: &'m Instruction) -> Result<(), Problem> {
        let Some(guard) = &instruction.guard else { return self.instruction(instruction, None) };
        let p = self.register(&guard.predicate)?;
        if instruction.opcode == "bra" {
            return self.instruction(instruction, Some((p, guard.negated)));
        }
        // A guarded instruction is one that is jumped over.
        let skip = self.code.ops.len();
        self.push(Op::BranchIf { p, negated: !guard.negated, target: 0 });
        let lowered = self.instruction(instruction, None);
        let after = self.code.ops.len() as u32;
        if let Some(Op::BranchIf { target, .. }) = self.code.ops.get_mut(skip) {
            *target = after;
        }
        lowered
    }

    fn resolve_labels(&mut self) {
        let place = |number: u32| self.labels.get(number as usize).copied().flatten();
        // Every label of a scope stands in that scope, so each has a place by now.
        let end = self.code.ops.len() as u32 - 1;
        for &at in &self.fixups {
            if let Op::Jump { target } | Op::BranchIf { target, .. } = &mut self.code.ops[at] {
                *target = place(*target).unwrap_or(end);
            }
        }
        for target in &mut self.code.targets {
            *target = place(*target).unwrap_or(end);
        }
    }
}
