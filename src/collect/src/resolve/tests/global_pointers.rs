//! Kernels that load pointers from variables of their module, which the program wrote there.

use super::bench::{Bench, CONTEXT};
use crate::call::LoadedImage;
use crate::kernel_code::{Answer, Question};
use std::sync::Arc;
use streamsan_kernels::access::analyse_kernel;
use streamsan_kernels::ptx;
use streamsan_kernels::reader::{CodeForm, Unread};
use streamsan_model::{
    Access, AllocationId, Basis, ByteRange, Extent, IncompleteReason, Mode, Operation,
};
use streamsan_wire::{Api, ImageOrigin};

const MODULE: u64 = 0xd0;
const FUNCTION: u64 = 0xf00;
const OTHER: u64 = 0xf10;
const VARIABLE: u64 = 0x50_0000;
const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const BYTES: u64 = 0x1000;

/// `use` writes through the pointer, `point` writes the variable, `look` only reads it.
const TEXT: &str = "
    .version 8.0
    .target sm_90
    .address_size 64
    .global .align 8 .u64 held[2];
    .visible .entry use()
    {
        .reg .b64 %a<3>;
        .reg .b32 %i;
        ld.global.u64 %a0, [held+8];
        mov.u32 %i, %tid.x;
        mul.wide.u32 %a1, %i, 4;
        add.s64 %a2, %a0, %a1;
        st.global.u32 [%a2], 1;
        ret;
    }
    .visible .entry point()
    {
        .reg .b64 %a;
        mov.b64 %a, 0;
        st.global.u64 [held], %a;
        ret;
    }
    .visible .entry look()
    {
        .reg .b64 %a;
        ld.global.u64 %a, [held];
        ret;
    }
";

fn answer(question: &Question) -> Answer {
    let module = ptx::parse(TEXT).expect("the text is PTX");
    let access = analyse_kernel(&module, &question.kernel)
        .expect("it holds the kernel")
        .expect("it is small");
    let outcome = Ok((Arc::new(access), CodeForm::Ptx));
    Answer { code: question.code, image: Some(0), outcome }
}

fn name(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

/// A kernel is looked up under a handle; its code is not read yet.
fn look_up(bench: &mut Bench, kernel: &str, function: u64) -> Question {
    bench.reads(Api::cuModuleGetFunction, &[0x10, MODULE, 0x20], &[function], name(kernel));
    bench.kernel(function, kernel, Some(&[]));
    bench.questions().pop().expect("a question")
}

/// A module whose kernel `use` was read, its variable, and two buffers, A and B.
fn prepared() -> (Bench, Question) {
    let mut bench = Bench::without_exact_accesses();
    bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 0], &[CONTEXT, 1 | 9 << 8]);
    bench.alloc(A, BYTES);
    bench.alloc(B, BYTES);
    bench.full(Api::cuModuleLoadData, &[0x10, 0x20], &[MODULE], 0, |call| {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        call.images = vec![LoadedImage { origin, hash: 7, offset: 0, size: 100, path }];
    });
    let question = look_up(&mut bench, "use", FUNCTION);
    let (args, outs) = ([0x10, 0x18, MODULE, 0x20], [VARIABLE, 16]);
    bench.reads(Api::cuModuleGetGlobal_v2, &args, &outs, name("held"));
    (bench, question)
}

fn read() -> Bench {
    let (mut bench, question) = prepared();
    bench.learn(answer(&question));
    bench
}

/// A synchronous copy of words into the variable, behind its start.
fn write(bench: &mut Bench, offset: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let args = [VARIABLE + offset, 0x7000, bytes.len() as u64];
    bench.reads(Api::cuMemcpyHtoD_v2, &args, &[], bytes.into());
}

fn launch(bench: &mut Bench, function: u64) -> Operation {
    let args = [function, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| call.kernel_params = Some([].into()))
}

fn access(allocation: u32, start: u64, len: u64, basis: Basis) -> Access {
    let extent = Extent::Range(ByteRange::with_len(start, len));
    Access { allocation: AllocationId(allocation), extent, mode: Mode::Write, basis }
}

/// The kernel's writes through the pointer.
fn through(launched: &Operation) -> Vec<Access> {
    let buffers = [AllocationId(0), AllocationId(1)];
    let found = launched.accesses.iter().filter(|access| buffers.contains(&access.allocation));
    found.cloned().collect()
}

fn follows(launches: u64) -> Vec<IncompleteReason> {
    vec![IncompleteReason::PointersInMemory { kernel: "use".to_owned(), launches }]
}

#[test]
fn pointer_that_was_copied_there_is_known() {
    let mut bench = read();
    write(&mut bench, 0, &[B, A + 16]);
    let launched = launch(&mut bench, FUNCTION);
    assert_eq!(through(&launched), [access(0, A + 16, 128, Basis::Anchored)]);
    assert_eq!(bench.reasons(), []);
}

#[test]
fn null_touches_nothing() {
    let mut bench = read();
    write(&mut bench, 8, &[0]);
    assert_eq!(through(&launch(&mut bench, FUNCTION)), []);
    assert_eq!(bench.reasons(), []);
}

#[test]
fn all_values_so_far_count_but_not_too_many() {
    let mut bench = read();
    write(&mut bench, 8, &[A]);
    write(&mut bench, 8, &[A]);
    write(&mut bench, 8, &[B]);
    let both = [access(0, A, 128, Basis::Assumed), access(1, B, 128, Basis::Assumed)];
    assert_eq!(through(&launch(&mut bench, FUNCTION)), both);
    assert_eq!(bench.reasons(), []);
    (0..7).for_each(|at| write(&mut bench, 8, &[A + 8 * at]));
    launch(&mut bench, FUNCTION);
    assert_eq!(bench.reasons(), []);
    write(&mut bench, 8, &[A + 64]);
    assert_eq!(through(&launch(&mut bench, FUNCTION)), []);
    assert_eq!(bench.reasons(), follows(1));
}

#[test]
fn what_was_never_written_is_not_known() {
    let mut bench = read();
    launch(&mut bench, FUNCTION);
    // Another word of it.
    write(&mut bench, 0, &[A]);
    launch(&mut bench, FUNCTION);
    assert_eq!(bench.reasons(), follows(2));
}

#[test]
fn asynchronous_copies_count_where_their_source_is_pageable() {
    for (pinned, reasons) in [(false, vec![]), (true, follows(1))] {
        let mut bench = read();
        bench.call(Api::cuMemAllocHost_v2, &[0x10, 64], &[0x9000]);
        let source = if pinned { 0x9000 } else { 0x7000 };
        let args = [VARIABLE + 8, source, 8, 0];
        bench.reads(Api::cuMemcpyHtoDAsync_v2, &args, &[], A.to_le_bytes().into());
        launch(&mut bench, FUNCTION);
        assert_eq!(bench.reasons(), reasons, "pinned: {pinned}");
    }
}

#[test]
fn a_write_that_was_not_seen_makes_it_unknown_for_good() {
    type Writing = fn(&mut Bench);
    let writings: [(&str, Writing); 6] = [
        ("memset", |bench| drop(bench.call(Api::cuMemsetD8_v2, &[VARIABLE, 0, 16], &[]))),
        ("a copy on the device", |bench| {
            bench.call(Api::cuMemcpyDtoD_v2, &[VARIABLE + 8, B, 8], &[]);
        }),
        ("a copy without content", |bench| {
            bench.call(Api::cuMemcpyHtoD_v2, &[VARIABLE + 8, 0x7000, 8], &[]);
        }),
        ("a part of a word", |bench| {
            let args = [VARIABLE + 8, 0x7000, 4];
            bench.reads(Api::cuMemcpyHtoD_v2, &args, &[], [0; 4].into());
        }),
        ("a kernel", |bench| {
            let question = look_up(bench, "point", OTHER);
            bench.learn(answer(&question));
            launch(bench, OTHER);
        }),
        ("a kernel that nobody can read", |bench| {
            let question = look_up(bench, "closed", OTHER);
            let outcome = Err(Unread::NoKernel);
            bench.learn(Answer { code: question.code, image: None, outcome });
            launch(bench, OTHER);
        }),
    ];
    for (what, writing) in writings {
        let mut bench = read();
        write(&mut bench, 8, &[A]);
        launch(&mut bench, FUNCTION);
        assert_eq!(bench.reasons(), [], "{what}");
        writing(&mut bench);
        write(&mut bench, 8, &[A]);
        assert_eq!(through(&launch(&mut bench, FUNCTION)), [], "{what}");
        assert_eq!(bench.reasons(), follows(1), "{what}");
    }
}

#[test]
fn a_kernel_that_reads_the_variable_changes_nothing() {
    let mut bench = read();
    write(&mut bench, 8, &[A]);
    let question = look_up(&mut bench, "look", OTHER);
    bench.learn(answer(&question));
    launch(&mut bench, OTHER);
    assert_eq!(through(&launch(&mut bench, FUNCTION)), [access(0, A, 128, Basis::Anchored)]);
    assert_eq!(bench.reasons(), []);
}

#[test]
fn a_launch_that_is_looked_at_again_has_what_stood_there_then() {
    let (mut bench, question) = prepared();
    write(&mut bench, 8, &[A]);
    launch(&mut bench, FUNCTION);
    write(&mut bench, 8, &[B]);
    bench.call(Api::cuMemsetD8_v2, &[VARIABLE, 0, 16], &[]);
    let learnt = bench.learn(answer(&question)).pop().and_then(|learnt| learnt.accesses);
    let found: Vec<Access> = learnt.expect("replaced");
    assert!(found.contains(&access(0, A, 128, Basis::Anchored)), "{found:?}");
    assert!(found.iter().all(|access| access.allocation != AllocationId(1)), "{found:?}");
    assert_eq!(bench.reasons(), []);
}

#[test]
fn a_launch_that_is_looked_at_again_after_its_module_is_gone_has_what_stood_there() {
    let (mut bench, question) = prepared();
    write(&mut bench, 8, &[A]);
    launch(&mut bench, FUNCTION);
    bench.call(Api::cuModuleUnload, &[MODULE], &[]);
    load_again(&mut bench);
    let learnt = bench.learn(answer(&question)).pop().and_then(|learnt| learnt.accesses);
    let found: Vec<Access> = learnt.expect("replaced");
    assert!(found.contains(&access(0, A, 128, Basis::Anchored)), "{found:?}");
    assert_eq!(bench.reasons(), []);
}

#[test]
fn a_write_that_becomes_known_late_counts_for_launches_behind_it() {
    let mut bench = read();
    write(&mut bench, 8, &[A]);
    let question = look_up(&mut bench, "point", OTHER);
    launch(&mut bench, FUNCTION);
    launch(&mut bench, OTHER);
    launch(&mut bench, FUNCTION);
    assert_eq!(bench.reasons(), []);
    bench.learn(answer(&question));
    assert_eq!(bench.reasons(), follows(1));
}

/// Loads the same images once more, under another handle.
fn load_again(bench: &mut Bench) {
    bench.full(Api::cuModuleLoadData, &[0x10, 0x20], &[MODULE + 1], 0, |call| {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        call.images = vec![LoadedImage { origin, hash: 7, offset: 0, size: 100, path }];
    });
}

#[test]
fn each_module_of_the_same_images_has_a_variable_of_its_own() {
    let mut bench = read();
    write(&mut bench, 8, &[A]);
    load_again(&mut bench);
    launch(&mut bench, FUNCTION);
    let (args, outs) = ([0x10, 0x18, MODULE + 1, 0x20], [VARIABLE + 64, 16]);
    bench.reads(Api::cuModuleGetGlobal_v2, &args, &outs, name("held"));
    launch(&mut bench, FUNCTION);
    assert_eq!(bench.reasons(), follows(2));
    write(&mut bench, 64 + 8, &[B]);
    let both = [access(0, A, 128, Basis::Assumed), access(1, B, 128, Basis::Assumed)];
    assert_eq!(through(&launch(&mut bench, FUNCTION)), both);
    bench.call(Api::cuModuleUnload, &[MODULE + 1], &[]);
    assert_eq!(bench.reasons(), follows(2));
}

#[test]
fn a_module_that_is_loaded_anew_starts_without_values() {
    let mut bench = read();
    write(&mut bench, 8, &[A]);
    bench.call(Api::cuModuleUnload, &[MODULE], &[]);
    bench.full(Api::cuModuleLoadData, &[0x10, 0x20], &[MODULE], 0, |call| {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        call.images = vec![LoadedImage { origin, hash: 7, offset: 0, size: 100, path }];
    });
    bench.reads(Api::cuModuleGetFunction, &[0x10, MODULE, 0x20], &[FUNCTION], name("use"));
    bench.kernel(FUNCTION, "use", Some(&[]));
    let (args, outs) = ([0x10, 0x18, MODULE, 0x20], [VARIABLE, 16]);
    bench.reads(Api::cuModuleGetGlobal_v2, &args, &outs, name("held"));
    launch(&mut bench, FUNCTION);
    assert_eq!(bench.reasons(), follows(1));
}
