//! An instruction with its modifiers sorted into types and words.

use streamsan_ptx::{Instruction, Operand, Type};

use crate::alu::Round;

/// Why an instruction has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// No driver would compile it.
    Invalid(String),
    /// The interpreter lacks it.
    Unsupported,
    /// As `Unsupported`, where the instruction itself does not say what is lacking.
    Lacking(String),
}

pub(super) type Lowered<T> = Result<T, Problem>;

pub(super) fn invalid<T>(message: impl Into<String>) -> Lowered<T> {
    Err(Problem::Invalid(message.into()))
}

/// `Unsupported` for the absent.
pub(super) fn known<T>(value: Option<T>) -> Lowered<T> {
    value.ok_or(Problem::Unsupported)
}

#[derive(Debug)]
pub(super) struct Form<'i> {
    pub(super) instruction: &'i Instruction,
    /// Modifiers that name types, in order.
    pub(super) types: Vec<Type>,
    /// The other modifiers, in order.
    pub(super) words: Vec<&'i str>,
}

impl<'i> Form<'i> {
    pub(super) fn new(instruction: &'i Instruction) -> Form<'i> {
        let mut form = Form { instruction, types: Vec::new(), words: Vec::new() };
        for modifier in &instruction.modifiers {
            match Type::from_name(modifier) {
                Some(ty) => form.types.push(ty),
                None => form.words.push(modifier),
            }
        }
        form
    }

    pub(super) fn opcode(&self) -> &'i str {
        &self.instruction.opcode
    }

    pub(super) fn ty(&self, at: usize) -> Lowered<Type> {
        known(self.types.get(at).copied())
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub(super) fn operand(&self, at: usize) -> Lowered<&'i Operand> {
        match self.instruction.operands.get(at) {
            Some(operand) => Ok(operand),
            None => invalid(format!("operand {} is missing", at + 1)),
        }
    }

    /// Refuses any word that is not in `allowed`: it could change the meaning.
    pub(super) fn only(&self, allowed: &[&str]) -> Lowered<()> {
        if self.words.iter().all(|word| allowed.contains(word)) {
            Ok(())
        } else {
            Err(Problem::Unsupported)
        }
    }

    /// Refuses more operands than the instruction takes.
    pub(super) fn at_most(&self, count: usize) -> Lowered<()> {
        if self.instruction.operands.len() > count {
            return invalid(format!("more than {count} operands"));
        }
        Ok(())
    }

    /// The rounding modifier, to nearest where none is written; whether it is an integer one.
    pub(super) fn round(&self) -> (Round, bool) {
        for word in &self.words {
            let round = match *word {
                "rn" | "rni" => Round::Nearest,
                "rz" | "rzi" => Round::Zero,
                "rm" | "rmi" => Round::Down,
                "rp" | "rpi" => Round::Up,
                _ => continue,
            };
            return (round, word.len() == 3);
        }
        (Round::Nearest, false)
    }
}

/// Opcodes of the PTX ISA without code here. Everything else unknown is no PTX.
pub(super) const LACKING: &[&str] = &[
    "alloca",
    "clusterlaunchcontrol",
    "dp2a",
    "fns",
    "getctarank",
    "istypep",
    "ldmatrix",
    "mapa",
    "mma",
    "movmatrix",
    "multimem",
    "setmaxnreg",
    "st.async",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tcgen05",
    "tensormap",
    "tex",
    "tld4",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wgmma",
    "wmma",
];
