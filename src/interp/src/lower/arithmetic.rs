//! Arithmetic, logic, comparison, conversion and moves.

use streamsan_ptx::{Operand, Type};

use super::form::{Form, Lowered, Problem, invalid, known};
use super::function::FunctionLowering;
use crate::alu::{self, Convert, Fn1, Fn2, Fn3};
use crate::code::{Op, SINK, Slot};

/// Modifiers that arithmetic understands; any other makes it unsupported.
const WORDS: &[&str] = &[
    "rn",
    "rz",
    "rm",
    "rp",
    "ftz",
    "sat",
    "approx",
    "full",
    "lo",
    "hi",
    "wide",
    "cc",
    "NaN",
    "xorsign",
    "abs",
    "relu",
    "shiftamt",
    "clamp",
    "wrap",
    "l",
    "r",
    "noftz",
    "f4e",
    "b4e",
    "rc8",
    "ecl",
    "ecr",
    "rc16",
    "finite",
    "infinite",
    "number",
    "notanumber",
    "normal",
    "subnormal",
];

enum Function {
    One(Fn1),
    Two(Fn2),
    Three(Fn3),
}

/// The words that choose among functions of one opcode and type.
fn mode(form: &Form<'_>) -> String {
    let flags = ["rn", "rz", "rm", "rp", "ftz", "approx", "full", "noftz", "abs", "cc"];
    let saturating_float = form.types.first().is_some_and(|ty| ty.is_float());
    let words: Vec<&str> = form
        .words
        .iter()
        .filter(|word| !(flags.contains(word) || saturating_float && **word == "sat"))
        .map(|word| if *word == "NaN" { "nan" } else { word })
        .collect();
    words.join(".")
}

fn choose(form: &Form<'_>, ty: Type) -> Option<Function> {
    let (opcode, mode, round) = (form.opcode(), mode(form), form.round().0);
    let mode = mode.as_str();
    if ty.is_float() {
        let opcode = if opcode == "fma" && mode == "relu" { "fma.relu" } else { opcode };
        return None
            .or_else(|| alu::float1(opcode, mode, round, ty).map(Function::One))
            .or_else(|| alu::float2(opcode, mode, round, ty).map(Function::Two))
            .or_else(|| alu::float3(opcode, round, ty).map(Function::Three));
    }
    let dot = || match form.types[..] {
        [a, b] => Some(format!("{a:?}.{b:?}").to_lowercase()),
        _ => None,
    };
    match (opcode, mode) {
        ("dp4a", "") => return alu::integer3(opcode, &dot()?, ty).map(Function::Three),
        ("mul", "wide") => return alu::wide(ty).map(Function::Two),
        _ => {}
    }
    None.or_else(|| alu::integer1(opcode, ty).filter(|_| mode.is_empty()).map(Function::One))
        .or_else(|| alu::integer2(opcode, mode, ty).map(Function::Two))
        .or_else(|| alu::integer3(opcode, mode, ty).map(Function::Three))
        .or_else(|| alu::bits1(opcode, mode, ty).map(Function::One))
        .or_else(|| alu::bits2(opcode, mode, ty).map(Function::Two))
        .or_else(|| alu::bits3(opcode, mode, ty).map(Function::Three))
}

/// The type of operand `at`: counts and positions are 32-bit whatever the instruction.
fn operand_type(opcode: &str, ty: Type, at: usize) -> Type {
    match (opcode, at) {
        ("shl" | "shr", 1) | ("bfe", 1 | 2) => Type::U32,
        _ => ty,
    }
}

impl FunctionLowering<'_, '_> {
    pub(super) fn arithmetic(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(WORDS)?;
        if form.has("cc") {
            return self.carrying(form);
        }
        let ty = form.ty(0)?;
        if form.opcode() == "mad" && form.has("wide") {
            return self.mad_wide(form, ty);
        }
        let function = known(choose(form, ty))?;
        let count = match function {
            Function::One(_) => 1,
            Function::Two(_) => 2,
            Function::Three(_) => 3,
        };
        form.at_most(count + 1)?;
        let flush = form.has("ftz") && ty == Type::F32;
        let mut sources = [SINK; 3];
        for (at, source) in sources.iter_mut().enumerate().take(count) {
            let operand_type = operand_type(form.opcode(), ty, at);
            *source = self.source(form.operand(at + 1)?, operand_type)?;
            if flush {
                *source = self.flushed(*source);
            }
        }
        let d = self.destination(form.operand(0)?)?;
        let [a, b, c] = sources;
        let plain_add = form.opcode() == "add" && form.words.is_empty() && !ty.is_float();
        self.push(match function {
            Function::One(f) => Op::Alu1 { f, d, a },
            Function::Two(_) if plain_add && ty.bits() == 32 => Op::Add32 { d, a, b },
            Function::Two(_) if plain_add && ty.bits() == 64 => Op::Add64 { d, a, b },
            Function::Two(f) => Op::Alu2 { f, d, a, b },
            Function::Three(f) => Op::Alu3 { f, d, a, b, c },
        });
        if flush {
            self.push(Op::Alu1 { f: alu::flush, d, a: d });
        }
        if form.has("sat") && ty.is_float() {
            let f = known(alu::saturate(ty))?;
            self.push(Op::Alu1 { f, d, a: d });
        }
        Ok(())
    }

    fn flushed(&mut self, a: Slot) -> Slot {
        let d = self.temporary();
        self.push(Op::Alu1 { f: alu::flush, d, a });
        d
    }

    fn mad_wide(&mut self, form: &Form<'_>, ty: Type) -> Lowered<()> {
        let result = match ty {
            Type::U16 | Type::S16 => Type::U32,
            _ => Type::U64,
        };
        let f = known(alu::wide(ty))?;
        let a = self.source(form.operand(1)?, ty)?;
        let b = self.source(form.operand(2)?, ty)?;
        let c = self.source(form.operand(3)?, result)?;
        let d = self.destination(form.operand(0)?)?;
        let product = self.temporary();
        self.push(Op::Alu2 { f, d: product, a, b });
        self.push(match result {
            Type::U32 => Op::Add32 { d, a: product, b: c },
            _ => Op::Add64 { d, a: product, b: c },
        });
        Ok(())
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
    pub(super) fn carrying(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&["cc", "lo", "hi"])?;
        let ty = form.ty(0)?;
        let opcode = form.opcode();
        let (sum, carry_out) = known(alu::carry(opcode.starts_with("sub"), ty))?;
        let carry = match self.carry {
            Some(slot) => slot,
            None => self.temporary(),
        };
        self.carry = Some(carry);
        let carry_in = if opcode.ends_with('c') { carry } else { self.bits(0) };
        let mut a = self.source(form.operand(1)?, ty)?;
        let mut b = self.source(form.operand(2)?, ty)?;
        if opcode.starts_with("mad") {
            let part = if form.has("hi") { "hi" } else { "lo" };
            let f = known(alu::integer2("mul", part, ty))?;
            let product = self.temporary();
            self.push(Op::Alu2 { f, d: product, a, b });
            a = product;
            b = self.source(form.operand(3)?, ty)?;
        }
        let d = self.destination(form.operand(0)?)?;
        let result = self.temporary();
        self.push(Op::Alu3 { f: sum, d: result, a, b, c: carry_in });
        if form.has("cc") {
            self.push(Op::Alu3 { f: carry_out, d: carry, a, b, c: carry_in });
        }
        self.push(Op::Move { d, a: result });
        Ok(())
    }

    pub(super) fn insert_field(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&[])?;
        let ty = form.ty(0)?;
        let sources = [
            self.source(form.operand(1)?, ty)?,
            self.source(form.operand(2)?, ty)?,
            self.source(form.operand(3)?, Type::U32)?,
            self.source(form.operand(4)?, Type::U32)?,
        ];
        let d = self.destination(form.operand(0)?)?;
        let list = self.list(&sources);
        self.push(Op::InsertField { d, bits: ty.bits() as u8, list });
        Ok(())
    }

    pub(super) fn logic3(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&[])?;
        let [a, b, c, table] = [1, 2, 3, 4];
        let mut slots = [SINK; 4];
        for (slot, at) in slots.iter_mut().zip([a, b, c, table]) {
            *slot = self.source(form.operand(at)?, Type::B32)?;
        }
        let d = self.destination(form.operand(0)?)?;
        let [a, b, c, table] = slots;
        self.push(Op::Logic3 { d, a, b, c, table });
        Ok(())
    }

    /// A comparison into a fresh slot, combined with a third predicate if there is one.
    /// Returns it and, if `both`, the same for the opposite comparison.
    fn comparison(&mut self, form: &Form<'_>, ty: Type, both: bool) -> Lowered<(Slot, Slot)> {
        let Some((name, flags)) = form.words.split_first() else {
            return invalid("a comparison operator is missing");
        };
        let f = known(alu::compare(name, ty))?;
        let mut a = self.source(form.operand(1)?, ty)?;
        let mut b = self.source(form.operand(2)?, ty)?;
        let mut combine = None;
        for flag in flags {
            match *flag {
                "ftz" if ty == Type::F32 => {
                    a = self.flushed(a);
                    b = self.flushed(b);
                }
                "ftz" => {}
                _ => combine = Some(known(alu::boolean(flag))?),
            }
        }
        let (p, q) = (self.temporary(), self.temporary());
        self.push(Op::Alu2 { f, d: p, a, b });
        if both {
            self.push(Op::Alu1 { f: |a| a ^ 1, d: q, a: p });
        }
        if let Some(f) = combine {
            let c = self.source(form.operand(3)?, Type::Pred)?;
            self.push(Op::Alu2 { f, d: p, a: p, b: c });
            if both {
                self.push(Op::Alu2 { f, d: q, a: q, b: c });
            }
        } else {
            form.at_most(3)?;
        }
        Ok((p, q))
    }

    pub(super) fn setp(&mut self, form: &Form<'_>) -> Lowered<()> {
        let ty = form.ty(0)?;
        let destination = form.operand(0)?;
        // The common case writes its predicate without a detour.
        if let ([name], Operand::Name(_)) = (&form.words[..], destination) {
            form.at_most(3)?;
            let f = known(alu::compare(name, ty))?;
            let a = self.source(form.operand(1)?, ty)?;
            let b = self.source(form.operand(2)?, ty)?;
            let d = self.destination(destination)?;
            self.push(Op::Alu2 { f, d, a, b });
            return Ok(());
        }
        let (p, q) = self.comparison(form, ty, matches!(destination, Operand::Pair(..)))?;
        let (d, e) = self.destination_pair(destination)?;
        self.push(Op::Move { d, a: p });
        if e != SINK {
            self.push(Op::Move { d: e, a: q });
        }
        Ok(())
    }

    pub(super) fn set(&mut self, form: &Form<'_>) -> Lowered<()> {
        let (to, ty) = (form.ty(0)?, form.ty(1)?);
        let (p, _) = self.comparison(form, ty, false)?;
        let d = self.destination(form.operand(0)?)?;
        let truth = match to {
            Type::U32 | Type::S32 => 0xffff_ffff,
            Type::F32 => 0x3f80_0000,
            Type::U16 | Type::S16 => 0xffff,
            Type::F16 => 0x3c00,
            Type::BF16 => 0x3f80,
            _ => return Err(Problem::Unsupported),
        };
        let (a, b) = (self.bits(truth), self.bits(0));
        self.push(Op::Select { d, a, b, p });
        Ok(())
    }

    pub(super) fn selp(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&[])?;
        form.at_most(4)?;
        let ty = form.ty(0)?;
        let a = self.source(form.operand(1)?, ty)?;
        let b = self.source(form.operand(2)?, ty)?;
        let p = self.source(form.operand(3)?, Type::Pred)?;
        let d = self.destination(form.operand(0)?)?;
        self.push(Op::Select { d, a, b, p });
        Ok(())
    }

    pub(super) fn slct(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&["ftz"])?;
        let (ty, sign) = (form.ty(0)?, form.ty(1)?);
        let f = known(alu::select_by_sign(sign))?;
        let a = self.source(form.operand(1)?, ty)?;
        let b = self.source(form.operand(2)?, ty)?;
        let mut c = self.source(form.operand(3)?, sign)?;
        if form.has("ftz") && sign == Type::F32 {
            c = self.flushed(c);
        }
        let d = self.destination(form.operand(0)?)?;
        self.push(Op::Alu3 { f, d, a, b, c });
        Ok(())
    }

    pub(super) fn mov(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&[])?;
        form.at_most(2)?;
        let ty = form.ty(0)?;
        if ty == Type::B128 {
            return Err(Problem::Unsupported);
        }
        let part = |count: usize| match (ty.bits() as usize).checked_div(count) {
            Some(width @ (8 | 16 | 32)) if width * count == ty.bits() as usize => Ok(width as u8),
            _ => invalid("the parts do not fill the whole"),
        };
        match (form.operand(0)?, form.operand(1)?) {
            (Operand::Vector(parts), whole) => {
                let width = part(parts.len())?;
                let a = self.source(whole, ty)?;
                let mut slots = Vec::new();
                for item in parts {
                    slots.push(self.destination(item)?);
                }
                let (list, count) = (self.list(&slots), parts.len() as u8);
                self.push(Op::Unpack { a, list, count, width });
            }
            (whole, Operand::Vector(parts)) => {
                let width = part(parts.len())?;
                let mut slots = Vec::new();
                for item in parts {
                    slots.push(self.source(item, unsigned(width))?);
                }
                let d = self.destination(whole)?;
                let (list, count) = (self.list(&slots), parts.len() as u8);
                self.push(Op::Pack { d, list, count, width });
            }
            (to, from) => {
                let a = self.source(from, ty)?;
                let d = self.destination(to)?;
                self.push(Op::Move { d, a });
            }
        }
        Ok(())
    }

    pub(super) fn cvt(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&[
            "rn",
            "rz",
            "rm",
            "rp",
            "rni",
            "rzi",
            "rmi",
            "rpi",
            "ftz",
            "sat",
            "relu",
            "satfinite",
        ])?;
        let (to, from) = (form.ty(0)?, form.ty(1)?);
        let (round, integral) = form.round();
        let pair = match to {
            Type::F16x2 => Some(Type::F16),
            Type::BF16x2 => Some(Type::BF16),
            _ => None,
        };
        let spec = Convert {
            from,
            to: pair.unwrap_or(to),
            round,
            integral,
            saturate: form.has("sat"),
            flush: form.has("ftz"),
            relu: form.has("relu"),
        };
        if !spec.supported() || form.has("satfinite") {
            return Err(Problem::Unsupported);
        }
        let a = self.source(form.operand(1)?, from)?;
        if pair.is_some() {
            let b = self.source(form.operand(2)?, from)?;
            let d = self.destination(form.operand(0)?)?;
            self.push(Op::ConvertPair { spec, d, a, b });
            return Ok(());
        }
        form.at_most(2)?;
        let (d, width) = self.sized_destination(form.operand(0)?)?;
        self.push(match alu::fast_convert(spec) {
            Some(f) => Op::Alu1 { f, d, a },
            None => Op::Convert { spec, d, a },
        });
        if let Some(f) = alu::sign_extend(to, width) {
            self.push(Op::Alu1 { f, d, a: d });
        }
        Ok(())
    }
}

fn unsigned(width: u8) -> Type {
    match width {
        8 => Type::B8,
        16 => Type::B16,
        _ => Type::B32,
    }
}
