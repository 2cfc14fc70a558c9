//! The disassembler's text of one instruction, taken apart. Total: an operand that is of no known
//! form is kept as it is printed.

use super::instruction::{AddressTerm, ConstantBank, Guard, Instruction, Marks, Operand, Register};
use std::str::FromStr;

/// A text without an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an instruction as the disassembler prints it")]
pub struct NoInstruction;

impl FromStr for Instruction {
    type Err = NoInstruction;

    fn from_str(text: &str) -> Result<Self, NoInstruction> {
        instruction(text).ok_or(NoInstruction)
    }
}

/// Reads an instruction without the semicolon behind it. `None` where there is nothing.
pub(super) fn instruction(text: &str) -> Option<Instruction> {
    let mut text = without_scheduling(text).trim();
    let mut guard = None;
    if let Some(rest) = text.strip_prefix('@') {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        let (negated, name) = match word.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, word),
        };
        guard = Some(Guard { predicate: register(name)?, negated });
        text = behind.trim_start();
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut parts = word.split('.');
    let opcode = parts.next().filter(|opcode| !opcode.is_empty())?.to_owned();
    let modifiers = parts.map(str::to_owned).collect();
    Some(Instruction { guard, opcode, modifiers, operands: operands(rest) })
}

/// Marks of newer versions behind the operands: `&req={0}`, `&wr=0x1`, `?WAIT2_END_GROUP`.
fn without_scheduling(text: &str) -> &str {
    let end = text.find(['&', '?', ';']).unwrap_or(text.len());
    &text[..end]
}

/// Operands are separated by commas, and a register from the distance behind it by a space
/// (`BRX R4 -0x160`).
fn operands(text: &str) -> Vec<Operand> {
    let mut operands = Vec::new();
    for piece in text.split(',') {
        let mut piece = piece.trim();
        while let Some((first, second)) = piece.split_once(char::is_whitespace) {
            let Some(register) = plain(first) else { break };
            operands.push(register);
            piece = second.trim_start();
        }
        if !piece.is_empty() {
            operands.push(operand(piece));
        }
    }
    operands
}

fn operand(text: &str) -> Operand {
    let known = integer(text)
        .map(Operand::Integer)
        .or_else(|| bracketed(text))
        .or_else(|| plain(text))
        .or_else(|| special(text));
    known.unwrap_or_else(|| Operand::Other(text.to_owned()))
}

/// A register with its marks.
fn plain(text: &str) -> Option<Operand> {
    let (mut marks, name) = signs(text);
    let (name, suffixes) = name.split_once('.').unwrap_or((name, ""));
    let register = register(name)?;
    add_suffixes(&mut marks, suffixes)?;
    Some(Operand::Register(register, marks))
}

fn special(text: &str) -> Option<Operand> {
    let name = text.split('.').next().unwrap_or_default();
    let known = name.starts_with("SR") || matches!(name, "PR" | "UPR" | "CC");
    known.then(|| Operand::Special(text.to_owned()))
}

/// `-`, `~`, `!` and the first bar in front of a name. The second bar stands behind the name or
/// behind a suffix.
fn signs(text: &str) -> (Marks, &str) {
    let mut marks = Marks::default();
    let mut text = text;
    loop {
        let mark = match text.as_bytes().first() {
            Some(b'-') => &mut marks.minus,
            Some(b'~' | b'!') => &mut marks.not,
            Some(b'|') => &mut marks.absolute,
            _ => break,
        };
        if *mark {
            break;
        }
        *mark = true;
        text = &text[1..];
    }
    (marks, text)
}

/// `None` where one of them is no word: the operand is of another form.
fn add_suffixes(marks: &mut Marks, text: &str) -> Option<()> {
    // Whether the bank of registers is read again is a matter of scheduling.
    let parts = text.split('.').map(|part| part.trim_end_matches('|'));
    for part in parts.filter(|part| !part.is_empty() && *part != "reuse") {
        marks.suffixes.push(is_word(part).then(|| part.to_owned())?);
    }
    Some(())
}

fn register(name: &str) -> Option<Register> {
    let name = name.trim_end_matches('|');
    Some(match name {
        "RZ" => Register::Zero,
        "URZ" => Register::UniformZero,
        "PT" => Register::True,
        "UPT" => Register::UniformTrue,
        _ => {
            let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| plain)?;
            match &name[..name.len() - digits.len()] {
                "R" => Register::General(number),
                "UR" => Register::Uniform(number),
                "P" => Register::Predicate(number),
                "UP" => Register::UniformPredicate(number),
                "B" => Register::Barrier(number),
                _ => return None,
            }
        }
    })
}

/// Integers are printed in hexadecimal; what is decimal is a float.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.strip_prefix("0x")?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Longer ones than 63 bits are bit patterns.
    let number = u64::from_str_radix(digits, 16).ok().filter(|_| plain)? as i64;
    Some(if negative { number.wrapping_neg() } else { number })
}

/// `c[0x0][0x160]`, `desc[UR4][R2.64+0x10]`, `[R2]`, `gdesc[UR8]`, `tmem[UR4+0x20]`.
fn bracketed(text: &str) -> Option<Operand> {
    let (mut marks, text) = signs(text);
    let (word, rest) = text.split_once('[')?;
    let (first, rest) = rest.split_once(']')?;
    let mut rest = rest.trim_start().trim_end_matches('|');
    let mut second = None;
    if let Some(inner) = rest.strip_prefix('[') {
        let (inner, behind) = inner.split_once(']')?;
        second = Some(inner);
        rest = behind;
    }
    add_suffixes(&mut marks, rest.strip_prefix('.').or(rest.is_empty().then_some(""))?)?;
    match (word, second) {
        ("c" | "cx", Some(inner)) => {
            let bank = match integer(first) {
                Some(number) => ConstantBank::Number(number.try_into().ok()?),
                None => ConstantBank::Descriptor(register(first)?),
            };
            let (terms, offset) = sum(inner)?;
            let register = match &terms[..] {
                [] => None,
                [term] if term.marks == Marks::default() => Some(term.register),
                _ => return None,
            };
            Some(Operand::Constant { bank, register, offset, marks })
        }
        ("", None) if marks == Marks::default() => {
            let (terms, offset) = sum(first)?;
            Some(Operand::Address { terms, offset, descriptor: None })
        }
        (_, second) if is_word(word) && !(marks.minus || marks.not || marks.absolute) => {
            let (terms, mut offset) = sum(first)?;
            let descriptor = match &terms[..] {
                [] => None,
                [term] if term.marks == Marks::default() => Some(term.register),
                _ => return None,
            };
            let mut terms = terms;
            if descriptor.is_some() {
                terms.clear();
            }
            if let Some(inner) = second {
                if offset != 0 {
                    return None;
                }
                (terms, offset) = sum(inner)?;
            }
            // `gdesc[UR12].tnspB`: how the operand is read is told behind it.
            let word = [&[word.to_owned()][..], &marks.suffixes].concat().join(".");
            let descriptor = Some((word, descriptor?));
            Some(Operand::Address { terms, offset, descriptor })
        }
        _ => None,
    }
}

fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    !text.is_empty() && text.bytes().all(is_part)
}

/// Registers and a number, added up or taken off.
fn sum(text: &str) -> Option<(Vec<AddressTerm>, i64)> {
    let (mut terms, mut offset) = (Vec::new(), None);
    for part in text.split('+') {
        // `R2.64-0x4`: the sign of the number is all that stands between them.
        let behind = part.rfind("-0x").filter(|&at| !part[..at].trim().is_empty());
        let (first, second) = part.split_at(behind.unwrap_or(part.len()));
        for part in [Some(first), behind.map(|_| second)].into_iter().flatten().map(str::trim) {
            if let Some(number) = integer(part) {
                if offset.replace(number).is_some() {
                    return None;
                }
            } else {
                let Operand::Register(register, marks) = plain(part)? else { return None };
                terms.push(AddressTerm { register, marks });
            }
        }
    }
    Some((terms, offset.unwrap_or(0)))
}
