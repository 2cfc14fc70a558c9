//! Properties: Rust's wrapping arithmetic as the reference, and no panic on hostile modules.

use proptest::prelude::*;
use streamsan_ptx as ptx;

use super::harness::{Arg, Bench, TestMemory, kernel, run};
use crate::{AccessLog, KernelId, Launch, Program};

const KERNELS: &str = include_str!("../../testdata/kernels.ptx");

/// Instructions on `%rd1`, `%rd2`, `%rd3` with the function they must compute.
type Reference = fn(u64, u64, u64) -> u64;
const OPERATIONS: &[(&str, Reference)] = &[
    ("add.s64 D, A, B;", |a, b, _| a.wrapping_add(b)),
    ("sub.s64 D, A, B;", |a, b, _| a.wrapping_sub(b)),
    ("mul.lo.s64 D, A, B;", |a, b, _| a.wrapping_mul(b)),
    ("mul.hi.u64 D, A, B;", |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64),
    ("mul.hi.s64 D, A, B;", |a, b, _| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64),
    ("mad.lo.u64 D, A, B, C;", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    ("div.u64 D, A, B;", |a, b, _| a.checked_div(b).unwrap_or(u64::MAX)),
    (
        "rem.s64 D, A, B;",
        |a, b, _| {
            if b == 0 { u64::MAX } else { (a as i64).wrapping_rem(b as i64) as u64 }
        },
    ),
    ("min.s64 D, A, B;", |a, b, _| (a as i64).min(b as i64) as u64),
    ("max.u64 D, A, B;", |a, b, _| a.max(b)),
    ("and.b64 D, A, B;", |a, b, _| a & b),
    ("xor.b64 D, A, B;", |a, b, _| a ^ b),
    ("neg.s64 D, A;", |a, _, _| a.wrapping_neg()),
    ("abs.s64 D, A;", |a, _, _| (a as i64).wrapping_abs() as u64),
    ("brev.b64 D, A;", |a, _, _| a.reverse_bits()),
    ("add.u32 E, X, Y; cvt.u64.u32 D, E;", |a, b, _| u64::from((a as u32).wrapping_add(b as u32))),
    ("sub.u32 E, X, Y; cvt.s64.s32 D, E;", |a, b, _| {
        i64::from((a as i32).wrapping_sub(b as i32)) as u64
    }),
    ("mul.wide.s32 D, X, Y;", |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64),
    ("mad.wide.u32 D, X, Y, C;", |a, b, c| {
        (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)
    }),
    ("and.b32 E, Y, 63; shl.b64 D, A, E;", |a, b, _| a << (b & 63)),
    ("and.b32 E, Y, 63; shr.s64 D, A, E;", |a, b, _| ((a as i64) >> (b & 63)) as u64),
    ("shf.l.wrap.b32 E, X, X, Y; cvt.u64.u32 D, E;", |a, b, _| {
        u64::from((a as u32).rotate_left(b as u32 & 31))
    }),
    ("popc.b64 E, A; cvt.u64.u32 D, E;", |a, _, _| u64::from(a.count_ones())),
    ("clz.b32 E, X; cvt.u64.u32 D, E;", |a, _, _| u64::from((a as u32).leading_zeros())),
    ("setp.lt.s64 %p1, A, B; selp.u64 D, 1, 0, %p1;", |a, b, _| u64::from((a as i64) < b as i64)),
    ("mov.b64 {E, F}, A; mov.b64 D, {F, E};", |a, _, _| a.rotate_left(32)),
    ("lop3.b32 E, X, Y, X, 0x3c; cvt.u64.u32 D, E;", |a, b, _| u64::from(a as u32 ^ b as u32)),
    ("cvt.s64.s8 D, A;", |a, _, _| i64::from(a as i8) as u64),
    ("cvt.sat.u16.s64 E, A; cvt.u64.u32 D, E;", |a, _, _| (a as i64).clamp(0, 65535) as u64),
];

fn operands() -> impl Strategy<Value = u64> {
    let special = prop::sample::select(vec![
        0,
        1,
        2,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        1 << 31,
        (1 << 31) - 1,
        0xffff_ffff,
    ]);
    prop_oneof![special, any::<u64>(), (0u64..100)]
}

#[test]
fn integer_operations_follow_wrapping_arithmetic() {
    let mut body = String::from(
        "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];\n\
         ld.param.u64 %rd4, [c]; cvt.u32.u64 %r1, %rd2; cvt.u32.u64 %r2, %rd3;\n",
    );
    for (at, (text, _)) in OPERATIONS.iter().enumerate() {
        let names = [
            ("D", "%rd5"),
            ("A", "%rd2"),
            ("B", "%rd3"),
            ("C", "%rd4"),
            ("E", "%r3"),
            ("F", "%r4"),
            ("X", "%r1"),
            ("Y", "%r2"),
        ];
        let text = names.iter().fold((*text).to_owned(), |text, (from, to)| text.replace(from, to));
        body.push_str(&format!("{text} st.global.u64 [%rd1+{}], %rd5;\n", at * 8));
    }
    let params = ".param .u64 p, .param .u64 a, .param .u64 b, .param .u64 c";
    let bench = Bench::new(&kernel(params, &body));
    let out = bench.allocate(OPERATIONS.len() * 8);
    proptest!(|(a in operands(), b in operands(), c in operands())| {
        bench.launch("k", [1, 1, 1], [1, 1, 1], &[out, a, b, c].map(Arg::U64)).unwrap();
        let got = bench.download(out, OPERATIONS.len(), u64::from_le_bytes);
        for ((text, reference), got) in OPERATIONS.iter().zip(got) {
            prop_assert_eq!(got, reference(a, b, c), "{} on {:#x} {:#x} {:#x}", text, a, b, c);
        }
    });
}

/// Loads a text as a driver would and runs every kernel for a while. Any error is fine.
fn load_and_run(text: &str) {
    let Ok(module) = ptx::parse(text) else { return };
    let Ok(program) = Program::lower(&module) else { return };
    let memory = TestMemory::default();
    for index in 0..program.kernels().len() {
        let kernel = KernelId(index as u32);
        let params = vec![0x11; program.kernel_info(kernel).params_size as usize];
        let launch = Launch {
            kernel,
            grid: [2, 1, 1],
            block: [5, 1, 1],
            dynamic_shared: 64,
            params: &params,
            global_addresses: &vec![0; program.globals().len()],
            cooperative: index % 2 == 0,
        };
        let _ = run(&program, &launch, &memory, &mut AccessLog::default(), 20_000, |_| {});
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn modules_with_shuffled_and_mangled_lines_never_panic(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..5), 1..12)
    ) {
        let mut lines: Vec<String> = KERNELS.lines().map(str::to_owned).collect();
        for (first, second, kind) in edits {
            let (a, b) = (first.index(lines.len()), second.index(lines.len()));
            match kind {
                0 => lines.swap(a, b),
                1 => { lines.remove(a); }
                2 => lines[a] = lines[b].clone(),
                3 => lines[a] = lines[a].replace("u32", "f64").replace("%rd", "%r"),
                _ => lines[a] = lines[a].replace(['1', '4'], "77"),
            }
        }
        load_and_run(&lines.join("\n"));
    }
}

#[test]
fn every_kernel_survives_wild_parameters() {
    load_and_run(KERNELS);
}
