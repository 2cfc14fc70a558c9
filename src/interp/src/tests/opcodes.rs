//! Every opcode group against results measured on a GPU (`testdata/opcodes`).
//!
//! A line of a data file is an instruction sequence and, for several inputs, the result an H200
//! gave. The sequence reads `%a16`, `%a32`, `%a64`, `%ap` (the predicate "is not zero"), the same
//! of `b` and `c`, and `%l32`, the number of the thread; it writes `%d16` ... `%dp` and `%ep`.

use super::harness::{Arg, Bench};

/// The kernel around an instruction sequence: parameters to registers, one result a thread.
fn wrap(sequence: &str) -> String {
    let result = if sequence.contains("%d32") {
        "cvt.u64.u32 %res, %d32;"
    } else if sequence.contains("%d64") {
        "mov.b64 %res, %d64;"
    } else if sequence.contains("%d16") {
        "cvt.u64.u16 %res, %d16;"
    } else {
        "selp.u64 %res, 1, 0, %dp; @%ep add.u64 %res, %res, 2;"
    };
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 p_out, .param .u64 p_a, .param .u64 p_b, .param .u64 p_c)\n\
         {{ .reg .pred %ap, %bp, %cp, %dp, %ep; .reg .b16 %a16, %b16, %c16, %d16;\n\
         .reg .b32 %a32, %b32, %c32, %d32, %l32;\n\
         .reg .b64 %a64, %b64, %c64, %d64, %res, %out, %at;\n\
         ld.param.b64 %a64, [p_a]; ld.param.b64 %b64, [p_b]; ld.param.b64 %c64, [p_c];\n\
         ld.param.b64 %out, [p_out];\n\
         cvt.u32.u64 %a32, %a64; cvt.u32.u64 %b32, %b64; cvt.u32.u64 %c32, %c64;\n\
         cvt.u16.u64 %a16, %a64; cvt.u16.u64 %b16, %b64; cvt.u16.u64 %c16, %c64;\n\
         setp.ne.u64 %ap, %a64, 0; setp.ne.u64 %bp, %b64, 0; setp.ne.u64 %cp, %c64, 0;\n\
         setp.ne.u64 %dp, %a64, %a64; setp.ne.u64 %ep, %a64, %a64;\n\
         mov.b64 %d64, 0; mov.b32 %d32, 0; mov.b16 %d16, 0; mov.u32 %l32, %tid.x;\n\
         {sequence}\n{result}\n\
         mul.wide.u32 %at, %l32, 8; add.u64 %out, %out, %at; st.global.u64 [%out], %res; ret; }}"
    )
}

fn check(data: &str, threads: u32) {
    let mut failures = Vec::new();
    let mut checked = 0;
    for line in data.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(" | ");
        let sequence = fields.next().unwrap();
        let bench = Bench::new(&wrap(sequence));
        let out = bench.allocate(8 * threads as usize);
        for case in fields {
            let (inputs, expected) = case.split_once(" = ").unwrap();
            let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
            let inputs: Vec<u64> = inputs.split(' ').map(hex).collect();
            let expected: Vec<u64> = expected.split(',').map(hex).collect();
            let args = [out, inputs[0], inputs[1], inputs[2]].map(Arg::U64);
            bench.launch("k", [1, 1, 1], [threads, 1, 1], &args).unwrap();
            let got = bench.download(out, threads as usize, u64::from_le_bytes);
            checked += 1;
            if got != expected {
                failures.push(format!("{sequence} {inputs:x?}: {got:x?}, not {expected:x?}"));
            }
        }
    }
    assert!(checked > 10, "the data file is empty");
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! groups {
    ($($name:ident: $threads:literal,)*) => {$(
        #[test]
        fn $name() {
            let data = include_str!(concat!("../../testdata/opcodes/", stringify!($name), ".txt"));
            check(data, $threads);
        }
    )*};
}

groups! {
    integer: 1,
    bits: 1,
    compare: 1,
    float: 1,
    half: 1,
    convert_int: 1,
    convert_float: 1,
    moves: 1,
    warp: 32,
}
