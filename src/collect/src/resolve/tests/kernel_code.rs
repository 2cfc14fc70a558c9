//! Launches of kernels whose code is read: before it is known, when it becomes known, and after.

use super::bench::Bench;
use crate::call::LoadedImage;
use crate::kernel_code::{Answer, Question};
use crate::launch::KnownLaunch;
use std::sync::Arc;
use streamsan_kernels::access::analyse_kernel;
use streamsan_kernels::ptx;
use streamsan_kernels::reader::{CodeForm as Read, Unread};
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, CodeSource, Entity, Extent, GridControl,
    IncompleteReason, KernelGap, MemoryKind, Mode, Operation, Trigger,
};
use streamsan_wire::{Api, ImageOrigin};

const MODULE: u64 = 0xd0;
const FUNCTION: u64 = 0xf00;
const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const BYTES: u64 = 0x1000;
const LAYOUT: &[(u32, u32)] = &[(0, 8), (8, 8)];

/// Each of 32 threads copies a word.
const MOVE: &str = "
    ld.param.u64 %a, [first];
    ld.param.u64 %b, [second];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.s64 %a, %a, %o;
    add.s64 %b, %b, %o;
    ld.global.u32 %w, [%a];
    st.global.u32 [%b], %w;
";
/// The second parameter says where; what it says is not known.
const SCATTER: &str = "
    ld.param.u64 %a, [first];
    ld.param.u64 %b, [second];
    ld.global.u32 %w, [%a];
    mul.wide.u32 %o, %w, 4;
    add.s64 %b, %b, %o;
    st.global.u32 [%b], %w;
";
/// Each thread writes through the parameter that it counts to.
const FROM_TABLE: &str = "
    mov.b64 %a, first;
    mov.u32 %i, %tid.x;
    and.b32 %i, %i, 1;
    mul.wide.u32 %o, %i, 8;
    add.s64 %a, %a, %o;
    ld.param.u64 %b, [%a];
    st.global.u32 [%b], 1;
";
const THROUGH_TABLE: &str = "
    ld.param.u64 %a, [first];
    ld.global.u64 %b, [%a];
    st.global.u32 [%b], 1;
";
const COUNT: &str = "
    mov.u64 %a, counter;
    atom.global.add.u32 %w, [%a], 1;
";
const WAIT: &str = "
    griddepcontrol.wait;
    ld.param.u64 %a, [first];
    st.global.u32 [%a], 1;
";
/// The weights are read before the wait.
const WEIGHTS_FIRST: &str = "
    ld.param.u64 %a, [first];
    ld.param.u64 %b, [second];
    ld.global.u32 %w, [%b];
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    st.global.u32 [%a], %w;
";
const TRIGGER_ONLY: &str = "
    griddepcontrol.launch_dependents;
    ld.param.u64 %a, [first];
    st.global.u32 [%a], 1;
";
const NO_WAIT: &str = "
    ld.param.u64 %a, [first];
    st.global.u32 [%a], 1;
";

fn outcome(question: &Question, body: &str) -> Answer {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .u32 counter;\n\
         .visible .entry kernel(.param .u64 first, .param .u64 second)\n{{\n\
         .reg .b32 %w, %i;\n.reg .b64 %a, %b, %o;\n{body}\nret;\n}}\n"
    );
    let module = ptx::parse(&text).expect("the text is PTX");
    let access =
        analyse_kernel(&module, "kernel").expect("it holds the kernel").expect("it is small");
    assert_eq!(access.may_touch_anything(), body == THROUGH_TABLE, "{:?}", access.unknown);
    let outcome = Ok((Arc::new(access), Read::Ptx));
    Answer { code: question.code, image: Some(0), outcome }
}

/// Two buffers, a kernel that was looked up and is launched for the first time.
fn prepared() -> (Bench, Question) {
    let mut bench = Bench::without_exact_accesses();
    // A context on a device of compute capability 9.0.
    bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 0], &[super::bench::CONTEXT, 1 | 9 << 8]);
    bench.alloc(A, BYTES);
    bench.alloc(B, BYTES);
    bench.full(Api::cuModuleLoadData, &[0x10, 0x20], &[MODULE], 0, |call| {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        call.images = vec![LoadedImage { origin, hash: 7, offset: 0, size: 100, path }];
    });
    let name: Box<[u8]> = b"kernel".as_slice().into();
    bench.reads(Api::cuModuleGetFunction, &[0x10, MODULE, 0x20], &[FUNCTION], name);
    bench.kernel(FUNCTION, "kernel", Some(LAYOUT));
    let mut questions = bench.questions();
    let question = questions.pop().expect("the kernel is asked for when it is looked up");
    assert!(questions.is_empty());
    assert_eq!((&*question.kernel, question.device), ("kernel", (9, 0)));
    (bench, question)
}

fn launch(bench: &mut Bench, first: u64, second: u64) -> Operation {
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let params: Vec<u8> = [first, second].iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| call.kernel_params = Some(params.into()))
}

fn access(allocation: u32, start: u64, len: u64, mode: Mode, basis: Basis) -> Access {
    let extent = Extent::Range(ByteRange::with_len(start, len));
    Access { allocation: AllocationId(allocation), extent, mode, basis }
}

fn assumed(allocation: u32, start: u64) -> Access {
    access(allocation, start, BYTES, Mode::MayWrite, Basis::Assumed)
}

#[test]
fn launch_after_its_code_is_known_has_the_bytes_of_its_threads() {
    let (mut bench, question) = prepared();
    assert_eq!(bench.learn(outcome(&question, MOVE)), []);
    let launched = launch(&mut bench, A + 16, B);
    assert_eq!(
        launched.accesses,
        [
            access(0, A + 16, 128, Mode::Read, Basis::Inferred),
            access(1, B, 128, Mode::Write, Basis::Inferred),
        ]
    );
    let told = bench.entities.iter().filter_map(|entity| match entity {
        Entity::KernelCode(code) => Some((code.source, code.words.len())),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(CodeSource::Ptx, 2)]);
    assert!(bench.reasons().is_empty() && bench.gaps().is_empty());
    // The same again is looked up, not worked out.
    assert_eq!(launch(&mut bench, A + 16, B).accesses, launched.accesses);
}

#[test]
fn launch_before_that_is_handed_on_with_its_words_and_replaced() {
    let (mut bench, question) = prepared();
    let launched = launch(&mut bench, A, B);
    assert_eq!(launched.accesses, [assumed(0, A), assumed(1, B)]);
    // Meanwhile the addresses come to mean other memory.
    bench.call(Api::cuMemFree_v2, &[B], &[]);
    bench.alloc(B, BYTES);
    let accesses = vec![
        access(0, A, 128, Mode::Read, Basis::Inferred),
        access(1, B, 128, Mode::Write, Basis::Inferred),
    ];
    let expected = KnownLaunch { g: launched.g, accesses: Some(accesses), control: None };
    assert_eq!(bench.learn(outcome(&question, MOVE)), [expected]);
    let next = launch(&mut bench, A, B).accesses;
    assert_eq!(next[1], access(2, B, 128, Mode::Write, Basis::Inferred));
}

#[test]
fn launch_finds_its_memory_however_many_owners_the_address_has_had_since() {
    let (mut bench, question) = prepared();
    launch(&mut bench, A, B);
    for _ in 0..1000 {
        bench.call(Api::cuMemFree_v2, &[B], &[]);
        bench.alloc(B, BYTES);
    }
    let learnt = bench.learn(outcome(&question, MOVE));
    let accesses = learnt.into_iter().next().and_then(|learnt| learnt.accesses);
    assert_eq!(accesses.expect("replaced")[1], access(1, B, 128, Mode::Write, Basis::Inferred));
}

#[test]
fn launches_are_looked_at_again_a_few_at_a_time_in_their_order() {
    let (mut bench, question) = prepared();
    let launched: Vec<_> = (0..5).map(|_| launch(&mut bench, A, B).g).collect();
    bench.read(outcome(&question, MOVE));
    let mut learnt = Vec::new();
    for expected in [2, 2, 1, 0] {
        let some = bench.look_again(2);
        assert_eq!(some.len(), expected);
        learnt.extend(some.into_iter().map(|learnt| learnt.g));
    }
    assert_eq!(learnt, launched);
}

#[test]
fn address_that_escapes_is_anchored_from_its_pointer_on() {
    let (mut bench, question) = prepared();
    bench.learn(outcome(&question, SCATTER));
    assert_eq!(
        launch(&mut bench, A, B + 0x100).accesses,
        [
            access(0, A, 4, Mode::Read, Basis::Inferred),
            access(1, B, 0x100, Mode::Write, Basis::Assumed),
            access(1, B + 0x100, BYTES - 0x100, Mode::Write, Basis::Anchored),
        ]
    );
}

#[test]
fn words_of_a_table_may_be_of_no_use_any_more() {
    let (mut bench, question) = prepared();
    bench.learn(outcome(&question, FROM_TABLE));
    let one = |allocation, start| access(allocation, start, 4, Mode::Write, Basis::Assumed);
    assert_eq!(launch(&mut bench, A, B).accesses, [one(0, A), one(1, B)]);
    bench.call(Api::cuMemFree_v2, &[B], &[]);
    assert_eq!(launch(&mut bench, A, B).accesses, [one(0, A)]);
}

#[test]
fn ranges_stay_in_the_allocation_of_their_pointer() {
    let (mut bench, question) = prepared();
    bench.alloc(A + BYTES, BYTES);
    bench.learn(outcome(&question, MOVE));
    assert_eq!(
        launch(&mut bench, A + BYTES - 64, B).accesses[0],
        access(0, A + BYTES - 64, 64, Mode::Read, Basis::Inferred)
    );
}

#[test]
fn pointers_loaded_from_memory_are_never_taken_for_nothing() {
    let (mut bench, question) = prepared();
    bench.learn(outcome(&question, THROUGH_TABLE));
    let accesses = launch(&mut bench, A, B).accesses;
    assert!(accesses.contains(&assumed(0, A)) && accesses.contains(&assumed(1, B)));
    let reason = IncompleteReason::PointersInMemory { kernel: "kernel".to_owned(), launches: 1 };
    assert_eq!(bench.reasons(), [reason]);
}

#[test]
fn code_that_cannot_be_read_leaves_the_words_and_is_counted() {
    for (reason, gap) in [
        (Unread::NoDisassembler, KernelGap::NoDisassembler),
        (Unread::NoKernel, KernelGap::NotRead),
    ] {
        let (mut bench, question) = prepared();
        let early = launch(&mut bench, A, B);
        let answer = Answer { code: question.code, image: None, outcome: Err(reason) };
        assert_eq!(bench.learn(answer), []);
        assert_eq!(launch(&mut bench, A, B).accesses, early.accesses);
        let gaps = bench.gaps();
        assert_eq!((gaps.len(), gaps[0].gap, gaps[0].count), (1, gap, 2));
    }
}

#[test]
fn code_that_never_comes_is_counted_too() {
    let (mut bench, _) = prepared();
    launch(&mut bench, A, B);
    bench.give_up();
    let gaps = bench.gaps();
    assert_eq!((gaps.len(), gaps[0].gap, gaps[0].count), (1, KernelGap::NotLookedAtAgain, 1));
    let api = "(kernel kernel, whose code was not read to the end)".to_owned();
    assert_eq!(bench.reasons(), [IncompleteReason::NotUnderstood { api, calls: 1 }]);
}

#[test]
fn only_kernels_that_are_launched_are_waited_for() {
    let (mut bench, question) = prepared();
    assert_eq!(bench.unread(), 0, "it was only looked up");
    launch(&mut bench, A, B);
    launch(&mut bench, A, B);
    assert_eq!(bench.unread(), 1);
    bench.learn(outcome(&question, MOVE));
    assert_eq!(bench.unread(), 0);
}

#[test]
fn kernels_of_a_collective_operation_are_not_waited_for() {
    let (mut bench, _) = prepared();
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let params: Vec<u8> = [A, B].iter().flat_map(|word| word.to_le_bytes()).collect();
    let launched = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(params.into());
        call.of_library = true;
    });
    assert!(matches!(launched.action, Action::Launch { .. }));
    assert_eq!((launched.accesses, bench.unread()), (Vec::new(), 0));
    bench.give_up();
    assert!(bench.gaps().is_empty() && bench.reasons().is_empty());
}

/// NCCL looks up all of its kernels; they are read only if one is launched by the program itself,
/// as a graph does.
#[test]
fn kernels_of_nccl_are_not_read_when_they_are_looked_up() {
    let (mut bench, _) = prepared();
    let (module, function) = (MODULE + 1, FUNCTION + 1);
    bench.full(Api::cuModuleLoadData, &[0x10, 0x20], &[module], 0, |call| {
        let path = b"/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5".as_slice().into();
        let origin = ImageOrigin::File;
        call.images = vec![LoadedImage { origin, hash: 0, offset: 64, size: 100, path }];
    });
    let name: Box<[u8]> = b"ncclDevKernel".as_slice().into();
    bench.reads(Api::cuModuleGetFunction, &[0x10, module, 0x20], &[function], name);
    assert!(bench.questions().is_empty());
    bench.kernel(function, "ncclDevKernel", Some(LAYOUT));
    let args = [function, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(vec![0; 16].into());
    });
    assert_eq!((bench.questions().len(), bench.unread()), (1, 1));
}

#[test]
fn variable_has_made_up_addresses_until_somebody_asks() {
    let (mut bench, question) = prepared();
    bench.learn(outcome(&question, COUNT));
    let touched = launch(&mut bench, A, B).accesses;
    let [touched] = touched.as_slice() else { panic!("{touched:?}") };
    assert_eq!((touched.mode, touched.basis), (Mode::Atomic, Basis::Inferred));
    let made_up = bench.declared(touched.allocation).clone();
    assert_eq!((made_up.kind, made_up.name.as_deref()), (MemoryKind::Global, Some("counter")));
    let name: Box<[u8]> = b"counter".as_slice().into();
    let at = 0x30_0000;
    bench.reads(Api::cuModuleGetGlobal_v2, &[0x10, 0x18, MODULE, 0x20], &[at, 4], name);
    let found = launch(&mut bench, A, B).accesses[0].clone();
    assert_eq!(found.extent, Extent::Range(ByteRange::with_len(at, 4)));
    assert_eq!(bench.declared(found.allocation).backing, made_up.backing);
}

#[test]
fn kernel_that_overlaps_the_one_before_waits_as_its_code_says() {
    let early = Trigger::Early;
    let cases = [
        (WAIT, GridControl { waits: true, early: 0, trigger: Trigger::AtEnd }),
        (NO_WAIT, GridControl::default()),
        (WEIGHTS_FIRST, GridControl { waits: true, early: 1, trigger: Trigger::BehindWait }),
        (TRIGGER_ONLY, GridControl { waits: false, early: 0, trigger: early }),
    ];
    for (body, expected) in cases {
        for late in [false, true] {
            let (mut bench, question) = prepared();
            if !late {
                bench.learn(outcome(&question, body));
            }
            let config = super::bench::structure(
                56,
                &[(0, 1 | 1 << 32), (8, 1 | 32 << 32), (16, 1 | 1 << 32)],
            );
            let attribute = super::bench::structure(72, &[(0, 6), (8, 1)]);
            let params: Vec<u8> = [A, B].iter().flat_map(|word| word.to_le_bytes()).collect();
            let launched =
                bench.full(Api::cuLaunchKernelEx, &[0x10, FUNCTION, 0x20, 0], &[], 0, |call| {
                    call.pointee = Some(config);
                    call.launch_attributes = Some(attribute);
                    call.kernel_params = Some(params.into());
                });
            let Action::Launch { control, programmatic: true, .. } = launched.action else {
                panic!("{launched:?}")
            };
            if late {
                assert_eq!(control, GridControl::UNKNOWN, "nothing false is reported meanwhile");
                let learnt = bench.learn(outcome(&question, body));
                assert_eq!(learnt[0].control, Some(expected));
            } else {
                assert_eq!(control, expected);
            }
            assert!(bench.reasons().is_empty());
        }
    }
}
