//! Barriers, warps, spaces and clocks: what no single instruction shows.

use super::harness::{Arg, Bench, kernel, span};
use crate::FaultKind;

/// Runs `body` as a kernel of one parameter `p`, whose value is in `%rd1`; `%r1` is `%tid.x`.
/// Returns the first words of the memory it points to.
fn run(body: &str, threads: u32, words: usize) -> Vec<u32> {
    let start = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n\
                 add.s64 %rd2, %rd1, %rd2;";
    let bench = Bench::new(&kernel(".param .u64 p", &format!("{start}\n{body}")));
    let out = bench.allocate(words * 4);
    bench.launch("k", [1, 1, 1], [threads, 1, 1], &[Arg::U64(out)]).unwrap();
    bench.read_words(out, words)
}

#[test]
fn barrier_orders_shared_memory_across_warps() {
    let body = ".shared .u32 s[128];\n mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2;\n\
        mul.lo.u32 %r4, %r1, 3; st.shared.u32 [%r3], %r4; bar.sync 0;\n\
        sub.u32 %r5, 127, %r1; mad.lo.u32 %r5, %r5, 4, %r2; ld.shared.u32 %r6, [%r5];\n\
        st.global.u32 [%rd2], %r6;";
    assert_eq!(run(body, 128, 128), (0..128).map(|i| (127 - i) * 3).collect::<Vec<_>>());
}

#[test]
fn exited_threads_count_as_arrived_at_a_barrier() {
    let body = "setp.ge.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0; st.global.u32 [%rd2], 1;";
    let out = run(body, 64, 64);
    assert_eq!(out.iter().sum::<u32>(), 40);
}

#[test]
fn both_sides_of_a_branch_may_meet_at_one_barrier() {
    let body = "setp.lt.u32 %p1, %r1, 10; @%p1 bra A; bar.sync 1; bra B;\n\
        A: bar.sync 1; B: st.global.u32 [%rd2], 1;";
    assert_eq!(run(body, 64, 64), [1; 64]);
}

#[test]
fn producer_arrives_and_consumer_waits_at_a_named_barrier() {
    // Warp 0 consumes what warp 1 produces; warp 2 has no part in barrier 3.
    let body = ".shared .u32 s;\n shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0;\n\
        setp.eq.u32 %p2, %r2, 2; @%p2 exit; @%p1 bra WAIT;\n\
        st.shared.u32 [s], 77; bar.arrive 3, 64; bra END;\n\
        WAIT: bar.sync 3, 64; ld.shared.u32 %r3, [s]; st.global.u32 [%rd2], %r3;\n END: ret;";
    assert_eq!(run(body, 96, 32), [77; 32]);
}

#[test]
fn barrier_object_holds_threads_until_all_have_arrived() {
    // Warp 1 comes late; every thread passes two phases, one by state and one by parity.
    let body = ".shared .align 8 .b64 m; .shared .u32 s[2];\n\
        setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [m], 64; @%p1 st.shared.u32 [s], 0;\n\
        @%p1 st.shared.u32 [s+4], 0; bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra FIRST;\n\
        nanosleep.u32 5000; FIRST: red.shared.add.u32 [s], 1;\n\
        mbarrier.arrive.shared::cta.b64 %rd3, [m];\n\
        W: mbarrier.try_wait.shared.b64 %p3, [m], %rd3; @!%p3 bra W; ld.shared.u32 %r2, [s];\n\
        red.shared.add.u32 [s+4], 1; mbarrier.arrive.shared.b64 _, [m];\n\
        V: mbarrier.test_wait.parity.shared.b64 %p3, [m], 1; @!%p3 bra V;\n\
        ld.shared.u32 %r3, [s+4]; mad.lo.u32 %r2, %r2, 1000, %r3; st.global.u32 [%rd2], %r2;";
    assert_eq!(run(body, 64, 64), [64064; 64]);
}

#[test]
fn cooperative_grid_synchronises_through_its_workspace() {
    // The barrier of a grid as compilers write it: a counter whose top bit flips each phase.
    let body = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4;\n\
        add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r1;\n\
        mov.u32 %r2, %envreg2; mov.u32 %r3, %envreg1; mov.b64 %rd3, {%r2, %r3};\n\
        setp.ne.s64 %p1, %rd3, 0; @!%p1 trap;\n\
        mov.u32 %r4, %nctaid.x; mov.u32 %r5, 0x80000001; sub.u32 %r5, %r5, %r4;\n\
        setp.eq.u32 %p2, %r1, 0; selp.u32 %r5, %r5, 1, %p2;\n\
        atom.add.release.gpu.u32 %r6, [%rd3+4], %r5;\n\
        L: ld.acquire.gpu.u32 %r7, [%rd3+4]; xor.b32 %r7, %r7, %r6; setp.gt.s32 %p3, %r7, -1;\n\
        @%p3 bra L; sub.u32 %r8, %r4, 1; sub.u32 %r8, %r8, %r1; mul.wide.u32 %rd4, %r8, 4;\n\
        add.s64 %rd4, %rd1, %rd4; ld.global.u32 %r9, [%rd4]; st.global.u32 [%rd2+32], %r9;";
    let bench = Bench::new(&kernel(".param .u64 p", body));
    let out = bench.allocate(64);
    let run = |cooperative| {
        bench.launch_with("k", [8, 1, 1], [1, 1, 1], &[Arg::U64(out)], 0, cooperative)
    };
    let log = run(true).1.unwrap();
    let words = bench.read_words(out, 16);
    assert_eq!(words[8..], [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(log.weak.atomics.ranges(), [], "the workspace is no memory of the program");
    assert_eq!(run(false).1.unwrap_err().kind, FaultKind::Trap);
}

#[test]
fn shuffle_among_a_subset_ignores_the_other_lanes() {
    let body = "setp.ge.u32 %p1, %r1, 8; @%p1 bra END;\n\
        shfl.sync.bfly.b32 %r2, %r1, 3, 0x1f, 0xff; st.global.u32 [%rd2], %r2;\n END: ret;";
    assert_eq!(run(body, 32, 8), [3, 2, 1, 0, 7, 6, 5, 4]);
}

#[test]
fn forms_before_sync_take_whoever_is_there() {
    let body = "setp.lt.u32 %p1, %r1, 4; @!%p1 bra END; shfl.down.b32 %r2, %r1, 1, 0x1f;\n\
        setp.ne.u32 %p2, %r1, 2; vote.ballot.b32 %r3, %p2; vote.all.pred %p3, %p2;\n\
        selp.u32 %r4, 256, 512, %p3; or.b32 %r3, %r3, %r4; mad.lo.u32 %r2, %r2, 4096, %r3;\n\
        st.global.u32 [%rd2], %r2;\n END: ret;";
    let expected = [1, 2, 3, 3].map(|next| next * 4096 + 512 + 0b1011);
    assert_eq!(run(body, 32, 4), expected);
}

#[test]
fn generic_addresses_reach_shared_and_local_memory() {
    let body = ".shared .u32 s[2]; .local .align 8 .b8 l[16];\n\
        mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; st.u32 [%rd4+4], 11; ld.shared.u32 %r2, [s+4];\n\
        mov.u64 %rd5, l; cvta.local.u64 %rd6, %rd5; st.u32 [%rd6+8], 13; ld.local.u32 %r3, [l+8];\n\
        isspacep.shared %p1, %rd4; isspacep.local %p2, %rd6; isspacep.global %p3, %rd1;\n\
        isspacep.global %p4, %rd4; selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 10, 0, %p2;\n\
        selp.u32 %r6, 100, 0, %p3; selp.u32 %r7, 1000, 0, %p4; add.u32 %r4, %r4, %r5;\n\
        add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;\n\
        cvta.to.shared.u64 %rd7, %rd4; atom.shared.add.u32 %r8, [%rd7+4], 5; ld.u32 %r9, [%rd4+4];\n\
        st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r9};";
    assert_eq!(run(body, 1, 4), [11, 13, 111, 16]);
}

#[test]
fn every_atomic_operation_returns_the_old_value() {
    let cases = [
        ("add.u32", 5, 3, 8),
        ("add.s32", u32::MAX, 3, 2),
        ("min.u32", u32::MAX, 3, 3),
        ("min.s32", u32::MAX, 3, u32::MAX),
        ("max.u32", u32::MAX, 3, u32::MAX),
        ("max.s32", u32::MAX, 3, 3),
        ("and.b32", 12, 10, 8),
        ("or.b32", 12, 10, 14),
        ("xor.b32", 12, 10, 6),
        ("exch.b32", 12, 10, 10),
        ("inc.u32", 3, 3, 0),
        ("inc.u32", 2, 3, 3),
        ("dec.u32", 0, 3, 3),
        ("dec.u32", 9, 3, 3),
        ("dec.u32", 2, 3, 1),
        ("add.f32", 1.5f32.to_bits(), 2f32.to_bits(), 3.5f32.to_bits()),
        ("add.noftz.f16x2", 0x3c00_4000, 0x3c00_3c00, 0x4000_4200),
    ];
    for (operation, old, operand, new) in cases {
        for space in ["global.", "relaxed.gpu.global.", "acq_rel.sys.", ""] {
            let body = format!(
                "st.global.u32 [%rd1], {old}; mov.b32 %r2, {operand};\n\
                 atom.{space}{operation} %r3, [%rd1], %r2; st.global.u32 [%rd1+4], %r3;"
            );
            assert_eq!(run(&body, 1, 2), [new, old], "{space}{operation}");
            let red = format!(
                "st.global.u32 [%rd1], {old}; mov.b32 %r2, {operand};\n\
                 red.{space}{operation} [%rd1], %r2;"
            );
            assert!(operation == "exch.b32" || run(&red, 1, 1) == [new], "red {operation}");
        }
    }
    let cas = "st.global.u32 [%rd1], 7; atom.global.cas.b32 %r2, [%rd1], 7, 9;\n\
        atom.global.cas.b32 %r3, [%rd1], 7, 5; st.global.v2.u32 [%rd1+8], {%r2, %r3};";
    assert_eq!(run(cas, 1, 4), [9, 0, 7, 9]);
    let wide = "mov.u64 %rd3, 0x100000000; atom.global.add.u64 %rd4, [%rd1], %rd3;\n\
        atom.global.exch.b64 %rd5, [%rd1+8], %rd3; atom.global.cas.b64 %rd6, [%rd1], %rd3, 6;";
    assert_eq!(run(wide, 1, 4), [6, 0, 0, 1]);
}

#[test]
fn only_the_spaces_of_global_memory_are_logged() {
    let body = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n\
        .shared .u32 s[4]; .local .u32 l[4];\n\
        st.shared.u32 [s], 1; ld.shared.u32 %r1, [s]; st.local.u32 [l], 2; ld.local.u32 %r2, [l];\n\
        ld.u16 %h1, [%rd1+6]; ld.global.nc.v2.u32 {%r3, _}, [%rd1+8]; st.u8 [%rd2+3], %r1;\n\
        red.global.add.u64 [%rd2+8], 1; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd2+4], 1;";
    let bench = Bench::new(&kernel(".param .u64 p, .param .u64 q", body));
    let (a, b) = (bench.allocate(64), bench.allocate(64));
    let log = bench.launch("k", [1, 1, 1], [1, 1, 1], &[Arg::U64(a), Arg::U64(b)]).unwrap();
    assert_eq!(log.weak.reads.ranges(), [span(a + 6, 10)]);
    assert_eq!(log.weak.writes.ranges(), [span(b + 3, 1)]);
    assert_eq!(log.weak.atomics.ranges(), [span(b + 8, 8)]);
}

#[test]
fn asynchronous_copy_fills_what_is_not_valid_with_zeros() {
    let body = ".shared .align 16 .b8 s[16];\n\
        st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1}; st.global.v2.u32 [%rd1], {5, 6};\n\
        cp.async.cg.shared.global [s], [%rd1], 16, 4; cp.async.commit_group;\n\
        cp.async.wait_group 0; ld.shared.v2.u32 {%r3, %r4}, [s];\n\
        st.global.v2.u32 [%rd1+8], {%r3, %r4};";
    assert_eq!(run(body, 1, 4), [5, 6, 5, 0]);
}

#[test]
fn branch_table_and_scoped_labels_find_their_targets() {
    let body = "T: .branchtargets A, B, C;\n brx.idx %r1, T;\n\
        A: { .reg .pred q; mov.u32 %r2, 1; setp.eq.u32 q, %r2, 1; @q bra L; mov.u32 %r2, 9; L: }\n\
        bra END;\n B: { mov.u32 %r2, 2; bra L; mov.u32 %r2, 9; L: }\n bra END;\n\
        C: mov.u32 %r2, 3;\n END: st.global.u32 [%rd2], %r2;";
    assert_eq!(run(body, 3, 3), [1, 2, 3]);
}

#[test]
fn clocks_advance_and_sleep_counts() {
    let body = "mov.u64 %rd3, %globaltimer; mov.u64 %rd4, %clock64; mov.u32 %r6, %clock;\n\
        nanosleep.u32 1000; mov.u64 %rd5, %globaltimer; mov.u64 %rd6, %clock64;\n\
        sub.u64 %rd5, %rd5, %rd3; setp.ge.u64 %p1, %rd5, 1000; setp.gt.u64 %p2, %rd6, %rd4;\n\
        selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2; st.global.v2.u32 [%rd1], {%r2, %r3};";
    assert_eq!(run(body, 1, 2), [1, 1]);
}

#[test]
fn special_registers_tell_the_place_in_the_grid() {
    let body = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y;\n\
        mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, %ntid.x;\n\
        mov.u32 %r6, %ntid.y; mul.lo.u32 %r7, %r5, %r6; mov.u32 %r8, %tid.y; mov.u32 %r9, %tid.x;\n\
        mad.lo.u32 %r8, %r8, %r5, %r9; mad.lo.u32 %r4, %r4, %r7, %r8; mul.wide.u32 %rd2, %r4, 4;\n\
        add.u64 %rd1, %rd1, %rd2; mov.u32 %r10, %warpid; mov.u32 %r11, %laneid;\n\
        mad.lo.u32 %r10, %r10, 32, %r11; st.global.u32 [%rd1], %r10;";
    let bench = Bench::new(&kernel(".param .u64 p", body));
    let out = bench.allocate(4 * 6 * 40);
    bench.launch("k", [3, 2, 1], [8, 5, 1], &[Arg::U64(out)]).unwrap();
    let expected: Vec<u32> = (0..240).map(|i| i % 40).collect();
    assert_eq!(bench.read_words(out, 240), expected);
}

#[test]
fn approximate_functions_are_close() {
    type Reference = fn(f64) -> f64;
    let cases: [(&str, Reference); 9] = [
        ("sqrt.approx.f32", f64::sqrt),
        ("rcp.approx.ftz.f32", f64::recip),
        ("rsqrt.approx.f32", |x| 1.0 / x.sqrt()),
        ("ex2.approx.f32", f64::exp2),
        ("lg2.approx.f32", f64::log2),
        ("sin.approx.f32", f64::sin),
        ("cos.approx.ftz.f32", f64::cos),
        ("tanh.approx.f32", f64::tanh),
        ("ex2.approx.ftz.f32", f64::exp2),
    ];
    for (instruction, reference) in cases {
        for x in [0.1f32, 0.75, 1.0, 2.5, 7.25] {
            let body = format!(
                "mov.f32 %f1, 0f{:08X}; {instruction} %f2, %f1; st.global.f32 [%rd1], %f2;",
                x.to_bits()
            );
            let got = f64::from(f32::from_bits(run(&body, 1, 1)[0]));
            let expected = reference(f64::from(x));
            assert!((got - expected).abs() <= 1e-6 * expected.abs().max(1e-2), "{instruction} {x}");
        }
    }
    let divisions = "mov.f32 %f1, 0f40E00000; mov.f32 %f2, 0f40000000; div.full.f32 %f3, %f1, %f2;\n\
        div.approx.ftz.f32 %f4, %f1, %f2; st.global.v2.f32 [%rd1], {%f3, %f4};";
    assert_eq!(run(divisions, 1, 2), [3.5f32.to_bits(); 2]);
}
