//! Branches and calls.

use streamsan_ptx::{Operand, Type};

use super::form::{Form, Lowered, Problem, invalid};
use super::function::FunctionLowering;
use super::symbols::Symbol;
use crate::code::{ArgumentPlace, CallSite, Callee, Op, Slot};

impl FunctionLowering<'_, '_> {
    fn label(&mut self, name: &str) -> Lowered<u32> {
        match self.scopes.label(name) {
            Some(number) => Ok(number),
            None => invalid(format!("there is no label `{name}` here")),
        }
    }

    pub(super) fn branch(&mut self, form: &Form<'_>, guard: Option<(Slot, bool)>) -> Lowered<()> {
        form.only(&["uni"])?;
        let Operand::Name(name) = form.operand(0)? else {
            return invalid("a branch goes to a label");
        };
        let target = self.label(name)?;
        self.fixups.push(self.code.ops.len());
        self.push(match guard {
            None => Op::Jump { target },
            Some((p, negated)) => Op::BranchIf { p, negated, target },
        });
        Ok(())
    }

    pub(super) fn branch_table(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&["idx", "uni"])?;
        let a = self.source(form.operand(0)?, Type::U32)?;
        let Operand::Name(name) = form.operand(1)? else {
            return invalid("the label of a `.branchtargets` list is expected");
        };
        let Some(labels) = self.scopes.table(name) else {
            return invalid(format!("there is no `.branchtargets` list `{name}` here"));
        };
        let table = self.code.targets.len() as u32;
        for label in labels {
            let number = self.label(label)?;
            self.code.targets.push(number);
        }
        self.push(Op::BranchTable { a, table, count: labels.len() as u32 });
        Ok(())
    }

    fn argument(&mut self, operand: &Operand, result: bool) -> Lowered<ArgumentPlace> {
        if let Operand::Name(name) = operand
            && let Some(Symbol::Local { offset, size }) = self.find(name)
        {
            return Ok(ArgumentPlace::Memory { offset, size });
        }
        let slot = if result {
            self.destination(operand)?
        } else {
            // The width of an immediate is that of the parameter; 64 bits hold any of them.
            self.source(operand, Type::B64)?
        };
        Ok(ArgumentPlace::Slot(slot))
    }

    pub(super) fn call(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&["uni"])?;
        let mut operands = form.instruction.operands.iter().peekable();
        let mut results = Vec::new();
        if let Some(Operand::Group(items)) = operands.peek() {
            for item in items {
                results.push(self.argument(item, true)?);
            }
            operands.next();
        }
        let Some(Operand::Name(name)) = operands.next() else {
            return invalid("the name of a function is expected");
        };
        let mut arguments = Vec::new();
        if let Some(Operand::Group(items)) = operands.peek() {
            for item in items {
                arguments.push(self.argument(item, false)?);
            }
        }
        let callee = match self.find(name) {
            Some(Symbol::Register { slot, .. }) => {
                self.calls_pointer = true;
                Callee::Pointer(slot)
            }
            Some(Symbol::Function(index)) => self.direct(name, index, &arguments, &results)?,
            _ => return invalid(format!("`{name}` is no function")),
        };
        let site = self.code.calls.len() as u32;
        self.code.calls.push(CallSite { callee, arguments, results });
        self.push(Op::Call { site });
        Ok(())
    }

    fn direct(
        &mut self,
        name: &str,
        index: u32,
        arguments: &[ArgumentPlace],
        results: &[ArgumentPlace],
    ) -> Lowered<Callee> {
        let function = self.context.function(index);
        if function.is_entry {
            return invalid("a kernel cannot be called");
        }
        let fits =
            function.params.len() == arguments.len() && function.returns.len() == results.len();
        if !fits {
            return invalid(format!("`{name}` takes other parameters than these"));
        }
        match self.context.callee(index) {
            Some(callee @ Callee::Function(_)) => {
                self.called.push(index);
                Ok(callee)
            }
            Some(callee) => Ok(callee),
            // Device functions that the driver links in: memory allocation and the like.
            None if matches!(name, "malloc" | "free") || name.starts_with("cuda") => {
                Err(Problem::Lacking(format!("call of {name}")))
            }
            None => invalid(format!("function `{name}` has no body in any module linked here")),
        }
    }
}
