//! Parser tests: faithful trees, positions of errors, and no panic on anything.

use proptest::prelude::*;

use super::*;

const SAMPLE: &str = include_str!("../testdata/sample.ptx");

fn body(text: &str) -> Vec<Statement> {
    let text = format!(".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {{\n{text}\n}}");
    let mut module = parse(&text).unwrap();
    module.functions.remove(0).body.unwrap().statements
}

fn instruction(text: &str) -> Instruction {
    match body(text).remove(0).kind {
        StatementKind::Instruction(instruction) => instruction,
        other => panic!("{other:?}"),
    }
}

fn name(text: &str) -> Operand {
    Operand::Name(text.into())
}

#[test]
fn a_compiled_module_keeps_its_declarations() {
    let module = parse(SAMPLE).unwrap();
    assert_eq!(module.version, (6, 0));
    assert_eq!(module.target, ["sm_70"]);
    assert_eq!(module.address_size, 64);
    let globals: Vec<_> = module.globals.iter().map(|g| (&g.name[..], g.size())).collect();
    assert_eq!(globals, [("tab", 16), ("ptab", 16), ("cst", 12), ("dyn", 0)]);
    assert_eq!(
        module.globals[1].init,
        Some(Initializer::List(vec![
            Initializer::Symbol { name: "tab".into(), offset: 0, generic: true },
            Initializer::Symbol { name: "tab".into(), offset: 8, generic: true },
        ]))
    );
    assert_eq!(module.globals[3].linkage, Linkage::Extern);
    let helper = &module.functions[0];
    assert!(!helper.is_entry);
    assert_eq!(helper.returns.len(), 1);
    let layout: Vec<_> = helper.params.iter().map(|p| (p.offset, p.size, p.align)).collect();
    assert_eq!(layout, [(0, 32, 8), (32, 4, 4), (40, 8, 8)]);
    let kernel = module.functions.iter().find(|f| f.name == "k").unwrap();
    assert!(kernel.is_entry);
    assert_eq!(kernel.params_size, 44);
}

#[test]
fn operands_of_every_form_are_kept() {
    let i = instruction("@!%p1 ld.global.v2.f32 {%f1, _}, [%rd1+-4];");
    assert_eq!(i.guard, Some(Guard { predicate: "%p1".into(), negated: true }));
    assert_eq!(i.full_name(), "ld.global.v2.f32");
    assert_eq!(i.operands[0], Operand::Vector(vec![name("%f1"), Operand::Sink]));
    let Operand::Address(address) = &i.operands[1] else { panic!() };
    assert_eq!(address.base, AddressBase::Name("%rd1".into()));
    assert_eq!(address.offset, -4);

    let i = instruction("setp.eq.and.s32 %p1|%p2, %r1, -1, !%p3;");
    assert_eq!(i.operands[0], Operand::Pair(name("%p1").into(), name("%p2").into()));
    assert_eq!(i.operands[2], Operand::Immediate(Immediate::Int(-1)));
    assert_eq!(i.operands[3], Operand::Not(name("%p3").into()));

    let i = instruction("call.uni (r0), f, (a, 1);");
    assert_eq!(i.operands[0], Operand::Group(vec![name("r0")]));
    assert_eq!(
        i.operands[2],
        Operand::Group(vec![name("a"), Operand::Immediate(Immediate::Int(1))])
    );
    assert_eq!(instruction("mov.u32 %r1, %tid.x;").operands[1], name("%tid.x"));
    assert_eq!(
        instruction("mov.u64 %r1, table+8;").operands[1],
        Operand::SymbolOffset("table".into(), 8)
    );
    assert_eq!(
        instruction("ld.global.L2::128B.u32 %r1, [%rd1];").modifiers,
        ["global", "L2::128B", "u32"]
    );
    assert_eq!(instruction("frobnicate.v9;").full_name(), "frobnicate.v9");
}

/// The analysis keeps its knowledge of each word of the parameters, so that one declaration would
/// take as much memory as it says.
#[test]
fn parameters_beyond_what_a_driver_takes_are_refused() {
    let entry = |size| {
        format!(".version 8.0\n.target sm_80\n.visible .entry k(.param .b8 p[{size}]) {{ ret; }}")
    };
    assert!(parse(&entry(65536)).is_ok());
    assert!(parse(&entry(65537)).is_err());
    assert!(parse(&entry(2_147_483_647)).is_err());
}

#[test]
fn literals_keep_their_bits() {
    let cases = [
        ("0x1F", Immediate::Int(31)),
        ("017", Immediate::Int(15)),
        ("0b101", Immediate::Int(5)),
        ("42U", Immediate::Int(42)),
        ("0xFFFFFFFFFFFFFFFF", Immediate::Int(-1)),
        ("-7", Immediate::Int(-7)),
        ("0f3F800000", Immediate::F32(0x3f80_0000)),
        ("0d3FF0000000000000", Immediate::F64(0x3ff0_0000_0000_0000)),
        ("1.5e+3", Immediate::F64(1500f64.to_bits())),
        ("(1 + 2) * 3 << 1", Immediate::Int(18)),
        ("~0", Immediate::Int(-1)),
    ];
    for (text, expected) in cases {
        let i = instruction(&format!("mov.b64 %rd1, {text};"));
        assert_eq!(i.operands[1], Operand::Immediate(expected), "{text}");
    }
}

#[test]
fn blocks_labels_and_tables_are_kept_with_their_lines() {
    let statements = body(
        "L:\n{ .reg .b32 t<3>;\n.param .align 8 .b8 p[32];\n}\nT: .branchtargets L, M;\nM: ret;\n\
         P: .callprototype (.param .b32 _) _ (.param .b64 _);\n.loc 1 7 3\nbar.sync 0;",
    );
    let lines: Vec<_> = statements.iter().map(|s| s.line).collect();
    assert_eq!(lines, [5, 6, 9, 10, 10, 11, 12, 13]);
    let StatementKind::Block(inner) = &statements[1].kind else { panic!() };
    let StatementKind::Registers(registers) = &inner[0].kind else { panic!() };
    assert_eq!((&registers.name[..], registers.count), ("t", Some(3)));
    assert!(matches!(&statements[2].kind,
        StatementKind::BranchTargets { labels, .. } if labels == &["L", "M"]));
    assert_eq!(statements[6].kind, StatementKind::Location { file: 1, line: 7, column: 3 });
}

#[test]
fn directives_around_functions_are_understood() {
    let module = parse(
        ".version 8.0 // c\n.target sm_90a, debug\n/* c\n */ .file 1 \"a b.cu\"\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b)\n;\n\
         .weak .func f() .noreturn ;\n\
         .visible .entry k(.param .u64 .ptr .global .align 16 k_0, .param .align 4 .b8 k_1[6],\n\
         .param .u8 k_2, .param .f64 k_3) .maxntid 128, 2 .minnctapersm 1\n{ ret; }\n\
         .section .debug_str { .b8 1\n }\n.alias f, g;\n.tex .u64 t;",
    )
    .unwrap();
    let k = &module.functions[2];
    assert_eq!(k.max_threads, Some([128, 2, 1]));
    assert_eq!(
        k.params[0].pointer,
        Some(PointerAttribute { space: Some(Space::Global), align: 16 })
    );
    let layout: Vec<_> = k.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(layout, [(0, 8), (8, 6), (14, 1), (16, 8)]);
    assert_eq!(k.params_size, 24);
    assert!(module.functions[0].body.is_none());
}

#[test]
fn errors_name_line_and_column() {
    let cases = [
        ("", 1, 1, "`.version`"),
        (".version 7.0\n.target sm_70\n.entry k() {\n  add.s32 %r1 %r2;\n}", 4, 15, "`;`"),
        (".version 7.0\n.bogus x;", 2, 8, "`.bogus`"),
        (".version 7.0\n.entry k() { ret;", 2, 18, "`}`"),
        (".version 7.0\n/* open", 2, 1, "never closed"),
        (".version 7.0\n.entry k() { mov.u32 %r1, 0q9; }", 2, 27, "not a number"),
        (".version 7.0\n\x01", 2, 1, "unexpected character"),
        (".version 7.0\n.global .align 3 .b8 x;", 2, 18, "power of two"),
    ];
    for (text, line, column, part) in cases {
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    for open in ["{", "mov.u32 x, (", "mov.u32 x, {", "mov.u32 x, -", "mov.u32 x, !"] {
        let text = format!(".version 7.0\n.entry k() {{ {}", open.repeat(50_000));
        assert!(parse(&text).is_err());
    }
    let text = format!(".version 7.0\n.global .u32 x[] = {}", "{".repeat(50_000));
    assert!(parse(&text).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn mutated_text_never_panics(edits in prop::collection::vec(
        (any::<prop::sample::Index>(), 0usize..20, prop::sample::select(vec![
            "", "{", "}", "(", ")", "[", "]", ",", ";", ".", "\"", "/*", "0x", "-", "@", "!", "|",
            "%", "é", ".reg", ".b32", "<", "1e", "\n", "4294967296", "_", ":", "::", "\0",
        ])), 1..6)) {
        let mut text = SAMPLE.to_owned();
        for (index, remove, insert) in edits {
            let mut start = index.index(text.len());
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + remove).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, insert);
        }
        let _ = parse(&text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(\\.version 7\\.0)?[ -~\\n\u{e9}]{0,200}") {
        let _ = parse(&text);
    }
}
