//! Which group an opcode belongs to.

use streamsan_ptx::Instruction;

use super::form::{Form, LACKING, Lowered, Problem, invalid};
use super::function::FunctionLowering;
use crate::code::{Op, Slot};

impl<'m> FunctionLowering<'_, 'm> {
    /// Emits the code of one instruction. `guard` is set only for `bra`.
    pub(super) fn instruction(
        &mut self,
        instruction: &'m Instruction,
        guard: Option<(Slot, bool)>,
    ) -> Lowered<()> {
        let form = Form::new(instruction);
        match form.opcode() {
            "add" | "sub" | "mul" | "mad" | "mul24" | "mad24" | "fma" | "div" | "rem" | "abs"
            | "neg" | "min" | "max" | "sad" | "sqrt" | "rcp" | "rsqrt" | "ex2" | "lg2" | "sin"
            | "cos" | "tanh" | "testp" | "copysign" | "and" | "or" | "xor" | "not" | "cnot"
            | "shl" | "shr" | "bfe" | "bfind" | "popc" | "clz" | "brev" | "prmt" | "shf"
            | "dp4a" | "bmsk" => self.arithmetic(&form),
            "addc" | "subc" | "madc" => self.carrying(&form),
            "bfi" => self.insert_field(&form),
            "lop3" => self.logic3(&form),
            "setp" => self.setp(&form),
            "set" => self.set(&form),
            "selp" => self.selp(&form),
            "slct" => self.slct(&form),
            "mov" => self.mov(&form),
            "cvt" => self.cvt(&form),
            "ld" | "ldu" => self.load(&form),
            "st" => self.store(&form),
            "atom" | "red" => self.atomic(&form),
            "cvta" => self.cvta(&form),
            "isspacep" => self.isspacep(&form),
            "cp" => self.copy_async(&form),
            "bra" => self.branch(&form, guard),
            "brx" => self.branch_table(&form),
            "call" => self.call(&form),
            "ret" => self.simple(Op::Return),
            "exit" => self.simple(Op::Exit),
            // Without a debugger a breakpoint ends the kernel.
            "trap" | "brkpt" => self.simple(Op::Trap),
            "bar" | "barrier" => self.barrier(&form),
            "mbarrier" => self.mbarrier(&form),
            "shfl" => self.shuffle(&form),
            "vote" => self.vote(&form),
            "match" => self.match_lanes(&form),
            "redux" => self.redux(&form),
            "activemask" => self.active_mask(&form),
            "elect" => self.elect(&form),
            "nanosleep" => {
                let a = self.source(form.operand(0)?, form.ty(0)?)?;
                self.simple(Op::Sleep { a })
            }
            // Cache policies have no effect, whatever their bits.
            "createpolicy" => {
                let (d, a) = (self.destination(form.operand(0)?)?, self.bits(0));
                self.simple(Op::Move { d, a })
            }
            // Memory is sequentially consistent, and caches are not modelled.
            "griddepcontrol" => self.grid_dependency(&form),
            "membar" | "fence" | "prefetch" | "prefetchu" | "discard" | "pmevent"
            | "applypriority" => self.simple(Op::Nop),
            opcode if LACKING.contains(&opcode) => Err(Problem::Unsupported),
            _ => invalid("this is no PTX instruction"),
        }
    }

    /// `griddepcontrol.launch_dependents` allows what happens anyway. The driver starts a kernel that
    /// has `.wait` behind the launches that it depends on, so that the wait is over when a thread
    /// comes to it; what the thread touches before is told apart.
    fn grid_dependency(&mut self, form: &Form<'_>) -> Lowered<()> {
        let waits = form.has("wait");
        self.code.grid_wait |= waits;
        self.simple(if waits { Op::GridWait } else { Op::Nop })
    }

    fn simple(&mut self, op: Op) -> Lowered<()> {
        self.push(op);
        Ok(())
    }
}
