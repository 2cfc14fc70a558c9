//! The disassembler's text, taken apart: as data, and with anything at all.

use proptest::prelude::*;
use streamsan_kernels::sass::{
    AddressTerm, ConstantBank, Guard, Instruction, Marks, NoInstruction, Operand, Register,
};

fn suffixes(suffixes: &[&str]) -> Marks {
    let suffixes = suffixes.iter().map(|&suffix| suffix.to_owned()).collect();
    Marks { suffixes, ..Marks::default() }
}

fn term(register: Register, marks: &[&str]) -> AddressTerm {
    AddressTerm { register, marks: suffixes(marks) }
}

fn address(terms: Vec<AddressTerm>, offset: i64, descriptor: Option<(&str, Register)>) -> Operand {
    let descriptor = descriptor.map(|(word, register)| (word.to_owned(), register));
    Operand::Address { terms, offset, descriptor }
}

fn constant(bank: u8, register: Option<Register>, offset: i64, marks: Marks) -> Operand {
    Operand::Constant { bank: ConstantBank::Number(bank), register, offset, marks }
}

#[test]
fn operands() {
    use Register::{Barrier, General, Predicate, True, Uniform, UniformTrue, UniformZero, Zero};
    let r = |number| Operand::Register(General(number), Marks::default());
    let other = |text: &str| Operand::Other(text.to_owned());
    let minus = Marks { minus: true, ..Marks::default() };
    let not = Marks { not: true, ..Marks::default() };
    let absolute = Marks { absolute: true, ..Marks::default() };
    for (text, expected) in [
        ("R254", r(254)),
        ("R2.reuse", r(2)),
        ("RZ", Operand::Register(Zero, Marks::default())),
        ("-RZ.H0_H0", Operand::Register(Zero, Marks { minus: true, ..suffixes(&["H0_H0"]) })),
        ("R0.reuse.H1_H1", Operand::Register(General(0), suffixes(&["H1_H1"]))),
        ("~R9.reuse", Operand::Register(General(9), not.clone())),
        ("-R1", Operand::Register(General(1), minus.clone())),
        ("|R3|", Operand::Register(General(3), absolute.clone())),
        ("|R31|.reuse", Operand::Register(General(31), absolute.clone())),
        ("-|R0|", Operand::Register(General(0), Marks { minus: true, ..absolute.clone() })),
        ("UR62", Operand::Register(Uniform(62), Marks::default())),
        ("URZ", Operand::Register(UniformZero, Marks::default())),
        ("!P6", Operand::Register(Predicate(6), not.clone())),
        ("PT", Operand::Register(True, Marks::default())),
        ("!UPT", Operand::Register(UniformTrue, not.clone())),
        ("B15", Operand::Register(Barrier(15), Marks::default())),
        ("0x7fffffff", Operand::Integer(0x7fff_ffff)),
        ("-0x80", Operand::Integer(-0x80)),
        ("0xffffffffffffffff", Operand::Integer(-1)),
        ("c[0x0][0x160]", constant(0, None, 0x160, Marks::default())),
        ("c[0x2] [0x0].F32", constant(2, None, 0, suffixes(&["F32"]))),
        ("-c[0x0][0x4]", constant(0, None, 4, minus.clone())),
        ("|c[0x0][0x4]|", constant(0, None, 4, absolute)),
        ("~c[0x0][0x4]", constant(0, None, 4, not)),
        ("c[0x2][R0+0xc]", constant(2, Some(General(0)), 12, Marks::default())),
        ("c[0x0][R3+-0x4]", constant(0, Some(General(3)), -4, Marks::default())),
        ("c[0x3][UR4]", constant(3, Some(Uniform(4)), 0, Marks::default())),
        (
            "cx[UR4][0x10]",
            Operand::Constant {
                bank: ConstantBank::Descriptor(Uniform(4)),
                register: None,
                offset: 16,
                marks: Marks::default(),
            },
        ),
        ("[R2]", address(vec![term(General(2), &[])], 0, None)),
        ("[0x4]", address(vec![], 4, None)),
        ("[R0.X8+-0x2080]", address(vec![term(General(0), &["X8"])], -0x2080, None)),
        ("[R2.64-0x4]", address(vec![term(General(2), &["64"])], -4, None)),
        (
            "desc[UR4][R2.64-0x10]",
            address(vec![term(General(2), &["64"])], -16, Some(("desc", Uniform(4)))),
        ),
        (
            "[R4.64+UR4-0x2]",
            address(vec![term(General(4), &["64"]), term(Uniform(4), &[])], -2, None),
        ),
        ("[-0x4]", address(vec![], -4, None)),
        ("c[0x0][R3-0x4]", constant(0, Some(General(3)), -4, Marks::default())),
        ("[R2.64-R4]", other("[R2.64-R4]")),
        ("[R2-0x4-0x8]", other("[R2-0x4-0x8]")),
        ("R2.64-0x4", other("R2.64-0x4")),
        ("R2.(x)", other("R2.(x)")),
        ("[R2.64-0x4x]", other("[R2.64-0x4x]")),
        ("[RZ]", address(vec![term(Zero, &[])], 0, None)),
        (
            "[R4.64+UR4+0x2]",
            address(vec![term(General(4), &["64"]), term(Uniform(4), &[])], 2, None),
        ),
        (
            "desc[UR4][R2.64+0x10]",
            address(vec![term(General(2), &["64"])], 16, Some(("desc", Uniform(4)))),
        ),
        ("desc[UR14]", address(vec![], 0, Some(("desc", Uniform(14))))),
        ("gdesc[UR8]", address(vec![], 0, Some(("gdesc", Uniform(8))))),
        ("gdesc[UR12].tnspB", address(vec![], 0, Some(("gdesc.tnspB", Uniform(12))))),
        ("tmem[UR4+0x20]", address(vec![], 32, Some(("tmem", Uniform(4))))),
        ("SR_TID.X", Operand::Special("SR_TID.X".to_owned())),
        ("SRZ", Operand::Special("SRZ".to_owned())),
        ("PR", Operand::Special("PR".to_owned())),
        // Floats, and what is not known.
        ("5.9604644775390625e-08", other("5.9604644775390625e-08")),
        ("105615", other("105615")),
        ("+INF ", other("+INF")),
        ("-QNAN", other("-QNAN")),
        ("SB0", other("SB0")),
        ("2D", other("2D")),
        ("R255555", other("R255555")),
        ("[R2*R3]", other("[R2*R3]")),
        ("[R2+0x4+0x4]", other("[R2+0x4+0x4]")),
        ("[R2", other("[R2")),
        ("c[0x100][0x0]", other("c[0x100][0x0]")),
        ("`(.L_x_3)", other("`(.L_x_3)")),
    ] {
        let instruction: Instruction = format!("OP {text} ;").parse().expect("an instruction");
        assert_eq!(instruction.operands, [expected], "{text}");
    }
}

#[test]
fn instructions() {
    for (text, guard, opcode, modifiers, operands) in [
        ("EXIT ;", None, "EXIT", &[][..], 0),
        ("BRA 0x0;", None, "BRA", &[], 1),
        ("@!P0 LDG.E.64 R2, desc[UR4][R2.64] ;", Some(("P0", true)), "LDG", &["E", "64"], 2),
        ("@UP1 UIADD3 UR4, UP0, UPT, UR4, 0x1, URZ", Some(("UP1", false)), "UIADD3", &[], 6),
        ("RET.REL.NODEC R4 0x0 ;", None, "RET", &["REL", "NODEC"], 2),
        ("BRX R4 -0x160 ;", None, "BRX", &[], 2),
        ("IMAD R1, R2, c[0x0] [0x4], RZ", None, "IMAD", &[], 4),
        ("LDC R1, c[0x0][0x37c] &req={0,1} &wr=0x0 ?trans1;", None, "LDC", &[], 2),
    ] {
        let instruction: Instruction = text.parse().expect(text);
        let told = instruction.guard.map(|Guard { predicate, negated }| (predicate, negated));
        let told = told.map(|(predicate, negated)| (predicate.to_string(), negated));
        assert_eq!(told.as_ref().map(|(name, negated)| (name.as_str(), *negated)), guard, "{text}");
        assert_eq!((instruction.opcode.as_str(), instruction.operands.len()), (opcode, operands));
        assert_eq!(*instruction.modifiers, *modifiers, "{text}");
    }
    for nothing in ["", " ;", "@P0", "@X EXIT", ".E R2"] {
        assert_eq!(nothing.parse::<Instruction>(), Err(NoInstruction), "{nothing:?}");
    }
}

/// Pieces of operands, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "R1", "UR2", "P3", "RZ", "URZ", "PT", "B4", "c", "cx", "desc", "[", "]", "[0x0]", "+", "-",
        "~", "!", "|", ".", ".64", ".reuse", "0x10", "1.5", ", ", " ", "@", "&", ";", "é", "SR_",
        "-0x4", ".(", "R2.64",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}", more in pieces()) {
        for text in [text, format!("OP {more}"), more] {
            // An instruction that was read once is read as the same again.
            if let Ok(instruction) = text.parse::<Instruction>() {
                let printed = instruction.to_string();
                let again: Instruction = printed.parse().expect("it was printed");
                prop_assert_eq!(again.to_string(), printed);
            }
        }
    }
}
