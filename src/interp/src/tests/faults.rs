//! Faults, and that each is told precisely.

use streamsan_ptx as ptx;

use super::harness::{Arg, Bench, kernel, run, span};
use crate::fault::LowerError;
use crate::{AccessLog, FaultKind, Launch, Memory, Program};

const KERNELS: &str = include_str!("../../testdata/kernels.ptx");

/// The fault of a kernel whose parameter `p` is in `%rd1`; it points to 64 bytes.
fn fault(body: &str, threads: u32) -> (FaultKind, u32, u32) {
    let bench = Bench::new(&kernel(".param .u64 p", &format!("ld.param.u64 %rd1, [p];\n{body}")));
    let out = bench.allocate(64);
    let fault = bench.launch("k", [1, 1, 1], [threads, 1, 1], &[Arg::U64(out)]).unwrap_err();
    assert_eq!(fault.kernel, "k");
    (fault.kind, fault.line, fault.thread[0])
}

fn lower(body: &str) -> LowerError {
    let module = ptx::parse(&kernel(".param .u64 p", body)).unwrap();
    Program::lower(&module).unwrap_err()
}

#[test]
fn access_out_of_bounds_names_its_address_and_thread() {
    let bench = Bench::new(KERNELS);
    let p = bench.allocate(40);
    let args = [Arg::U64(p), Arg::U32(7), Arg::U32(64)];
    let (log, result) = bench.launch_with("fill", [1, 1, 1], [64, 1, 1], &args, 0, false);
    let fault = result.unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress { address: p + 40, size: 4 });
    assert_eq!(fault.thread, [10, 0, 0]);
    let line = KERNELS.lines().nth(fault.line as usize - 1).unwrap();
    assert!(line.contains("st.global.u32"), "{line}");
    assert_eq!(log.weak.writes.ranges(), [span(p, 40)], "what was done before the fault");
}

#[test]
fn illegal_addresses_of_every_kind_are_caught() {
    let cases = [
        "mov.u64 %rd2, 0; ld.u32 %r1, [%rd2];",
        "ld.global.u32 %r1, [%rd1+64];",
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+64];",
        "ld.global.u8 %r1, [%rd1+-1];",
        "red.global.add.u32 [%rd1+64], 1;",
        ".shared .u32 s[4]; ld.shared.u32 %r1, [s+16];",
        ".shared .u32 s[4]; st.shared.u32 [s+-4], 1;",
        ".local .u32 l[4]; ld.local.u32 %r1, [l+16];",
        ".shared .u32 s; mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2+65536], 1;",
        ".shared .u32 s; mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; ld.shared.u32 %r1, [%rd2];",
        "mov.u64 %rd2, -8; ld.global.u64 %rd3, [%rd2];",
        "mov.u64 %rd2, p; cvta.param.u64 %rd2, %rd2; st.u32 [%rd2], 1;",
    ];
    for body in cases {
        let (kind, line, _) = fault(body, 1);
        assert!(matches!(kind, FaultKind::IllegalAddress { .. }), "{body}: {kind:?}");
        assert_eq!(line, 8, "{body}");
    }
}

#[test]
fn misaligned_accesses_are_caught_before_their_bounds() {
    for body in [
        "ld.global.u32 %r1, [%rd1+2];",
        "st.global.u64 [%rd1+4], %rd1;",
        "ld.v2.u32 {%r1, %r2}, [%rd1+4];",
        "atom.add.u32 %r1, [%rd1+65], 1;",
    ] {
        let (kind, ..) = fault(body, 1);
        assert!(matches!(kind, FaultKind::MisalignedAddress { .. }), "{body}: {kind:?}");
    }
}

#[test]
fn trap_assert_and_wild_calls_end_the_kernel() {
    assert_eq!(fault("trap;", 1).0, FaultKind::Trap);
    let wild = ".reg .u64 f; mov.u64 f, 64; call f, ();";
    assert_eq!(fault(wild, 1).0, FaultKind::InvalidProgramCounter);
    let table = "T: .branchtargets A; mov.u32 %r1, 1; brx.idx %r1, T; A: ret;";
    assert_eq!(fault(table, 1).0, FaultKind::InvalidProgramCounter);
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n\
        .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,\n\
        .param .b64 e);\n.global .b8 text[12] = {105, 32, 60, 32, 110, 0, 97, 46, 99, 117, 0};\n\
        .entry k() { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n\
        .reg .b64 r; mov.u64 r, text; st.param.b64 [a], r; add.u64 r, r, 6; st.param.b64 [b], r;\n\
        st.param.b32 [c], 42; st.param.b64 [d], r; st.param.b64 [e], 1;\n\
        call __assertfail, (a, b, c, d, e); ret; }";
    let fault = Bench::new(text).launch("k", [1, 1, 1], [1, 1, 1], &[]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Assert("a.cu:42: a.cu: i < n".into()));
}

#[test]
fn endless_recursion_is_a_fault_not_a_crash() {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n\
        .func f() { .local .b8 l[64]; call f, (); ret; }\n.entry k() { call f, (); ret; }";
    let fault = Bench::new(text).launch("k", [1, 1, 1], [1, 1, 1], &[]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap);
}

#[test]
fn barrier_that_some_never_reach_is_a_deadlock() {
    let body = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; bra B;\n\
        A: bar.sync 2; B: ret;";
    assert_eq!(fault(body, 64).0, FaultKind::Deadlock);
    let lanes = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;\n\
        bar.sync 0; bra B; A: bar.warp.sync -1; B: ret;";
    assert_eq!(fault(lanes, 32).0, FaultKind::Deadlock);
}

#[test]
fn spinning_kernel_times_out_unless_the_host_ends_it() {
    let mut bench = Bench::new(KERNELS);
    bench.max_instructions = 100_000;
    let (flag, out) = (bench.allocate(4), bench.allocate(4));
    let fault = bench.launch("spin", [1, 1, 1], [1, 1, 1], &[Arg::U64(flag), Arg::U64(out)]);
    let fault = fault.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert!(fault.line > 0);

    let params: Vec<u8> = [flag, out].iter().flat_map(|p| p.to_le_bytes()).collect();
    let launch = Launch {
        kernel: bench.program.kernel("spin").unwrap(),
        grid: [1, 1, 1],
        block: [1, 1, 1],
        dynamic_shared: 0,
        params: &params,
        global_addresses: &[0; 8],
        cooperative: false,
    };
    // A flag raised between two steps, as a host thread would, lets the kernel end.
    let mut steps = 0;
    let between = |number| {
        steps = number;
        if number == 3 {
            bench.memory.store(flag, &5u32.to_le_bytes()).unwrap();
        }
    };
    run(&bench.program, &launch, &bench.memory, &mut AccessLog::default(), 100_000, between)
        .unwrap();
    assert_eq!(bench.read_words(out, 1), [5]);
    assert_eq!(steps, 3);
}

#[test]
fn instruction_the_interpreter_lacks_fails_only_the_launch_that_needs_it() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .func helper() { .reg .b32 %r<4>;\n\
        mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r0}, {%r1}, {%r2}, {%r3}; ret; }\n\
        .entry bad() { call helper, (); ret; }\n.entry good() { ret; }";
    let bench = Bench::new(text);
    bench.launch("good", [1, 1, 1], [1, 1, 1], &[]).unwrap();
    let fault = bench.launch("bad", [1, 1, 1], [1, 1, 1], &[]).unwrap_err();
    assert_eq!(fault.line, 5);
    let FaultKind::Unsupported(what) = &fault.kind else { panic!("{fault}") };
    assert!(what.starts_with("mma.sync.aligned"), "{what}");
    assert!(fault.to_string().contains("PTX line 5"), "{fault}");
}

#[test]
fn lacking_instruction_behind_a_pointer_fails_when_it_is_reached() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .func lacks() { .reg .b32 r; movmatrix.sync.aligned.m8n8.trans.b16 r, r; ret; }\n\
        .func plain() { ret; }\n.global .u64 table[2] = {plain, lacks};\n\
        .entry k(.param .u32 n) { .reg .b64 f<3>; ld.param.u32 f0, [n];\n\
        mov.u64 f1, table; shl.b64 f0, f0, 3; add.u64 f1, f1, f0; ld.global.u64 f2, [f1];\n\
        call f2, (); ret; }";
    let bench = Bench::new(text);
    bench.launch("k", [1, 1, 1], [1, 1, 1], &[Arg::U32(0)]).unwrap();
    let fault = bench.launch("k", [1, 1, 1], [1, 1, 1], &[Arg::U32(1)]).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Unsupported(_)), "{fault}");
    assert_eq!(fault.line, 4);
}

#[test]
fn what_no_driver_compiles_is_refused_at_load_with_its_line() {
    let cases = [
        ("frobnicate.u32 %r1, %r2;", "frobnicate.u32", "no PTX instruction"),
        ("add.u32 %r1, %r2, %nope;", "add.u32", "`%nope`"),
        ("add.u32 %r40, %r1, %r2;", "add.u32", "`%r40`"),
        ("add.u32 %r1, %r2;", "add.u32", "operand 3"),
        ("add.u32 %r1, %r2, %r3, %r4;", "add.u32", "more than"),
        ("bra NOWHERE;", "bra", "`NOWHERE`"),
        ("call nobody, ();", "call", "`nobody`"),
        ("ld.global.u32 %r1, %rd1;", "ld.global.u32", "address"),
        ("ld.global.v2.u32 {%r1}, [%rd1];", "ld.global.v2.u32", "vector"),
        ("st.global.u32 [unknown], %r1;", "st.global.u32", "`unknown`"),
        ("mov.b64 %rd1, {%r1, %r2, %r3};", "mov.b64", "parts"),
        ("L: ret; L: ret;", "L", "twice"),
    ];
    for (body, subject, message) in cases {
        let error = lower(body);
        assert_eq!(error.subject, subject, "{error}");
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.line, 7, "{error}");
    }
}
