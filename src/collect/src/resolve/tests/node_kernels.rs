//! Kernels of nodes, which the driver tells by other handles than programs launch.

use super::bench::{Bench, CONTEXT};
use crate::call::LoadedImage;
use crate::kernel_code::{Answer, Question};
use crate::read_back::{NodeContents, ReadBack, ReadGraph, ReadNode};
use std::sync::Arc;
use streamsan_kernels::access::analyse_kernel;
use streamsan_kernels::ptx;
use streamsan_kernels::reader::CodeForm as Read;
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Entity, Extent, Graph, KernelId, Mode,
    NodeAction, Operation,
};
use streamsan_wire::node_kind::KERNEL as KERNEL_NODE;
use streamsan_wire::{Api, ImageOrigin};

const LIBRARY: u64 = 0xd0;
const OTHER_LIBRARY: u64 = 0xd8;
/// The kernel of the library, and the function that it is in the context.
const KERNEL: u64 = 0xf00;
const FUNCTION: u64 = 0xf80;
/// The module that the library is in the context; no call names it.
const MODULE: u64 = 0xe8;
const A: u64 = 0x10_0000;
const BYTES: u64 = 0x1000;
const STREAM: u64 = 0x500;
const GRAPH: u64 = 0x900;
const EXEC: u64 = 0xe00;
const NODE: u64 = 0x100;
const LAYOUT: &[(u32, u32)] = &[(0, 8)];
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry kernel(.param .u64 to)\n{\n.reg .b32 %i;\n.reg .b64 %a, %o;\n\
    ld.param.u64 %a, [to];\nmov.u32 %i, %tid.x;\nmul.wide.u32 %o, %i, 4;\nadd.s64 %a, %a, %o;\n\
    st.global.u32 [%a], 1;\nret;\n}\n";

/// A buffer, and a library whose kernel was looked up and read.
fn prepared() -> Bench {
    let mut bench = asked();
    let question = bench.questions().pop().expect("the kernel is asked for when it is looked up");
    bench.learn(answer(&question));
    bench
}

fn answer(question: &Question) -> Answer {
    let module = ptx::parse(TEXT).expect("the text is PTX");
    let access =
        analyse_kernel(&module, "kernel").expect("it holds the kernel").expect("it is small");
    let outcome = Ok((Arc::new(access), Read::Ptx));
    Answer { code: question.code, image: Some(0), outcome }
}

/// A buffer, and a library whose kernel was looked up.
fn asked() -> Bench {
    let mut bench = Bench::without_exact_accesses();
    bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 0], &[CONTEXT, 1 | 9 << 8]);
    bench.alloc(A, BYTES);
    bench.call(Api::cuStreamCreate, &[0x10, 1], &[STREAM, 7]);
    load(&mut bench, LIBRARY, 7);
    look_up(&mut bench, LIBRARY, KERNEL);
    bench
}

fn load(bench: &mut Bench, library: u64, hash: u64) {
    bench.full(Api::cuLibraryLoadData, &[0x10, 0x20], &[library], 0, |call| {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        call.images = vec![LoadedImage { origin, hash, offset: 0, size: 100, path }];
    });
}

fn look_up(bench: &mut Bench, library: u64, kernel: u64) {
    let name: Box<[u8]> = b"kernel".as_slice().into();
    bench.reads(Api::cuLibraryGetKernel, &[0x10, library, 0x20], &[kernel], name);
}

fn bytes(words: &[u64]) -> Box<[u8]> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` of one block of 32 threads.
fn params(function: u64, kernel: u64) -> Box<[u8]> {
    let one = 1 | 1 << 32;
    bytes(&[function, one, 1 | 32 << 32, one, 0, 0, 0, kernel, CONTEXT])
}

fn node(handle: u64, params: Box<[u8]>, to: u64) -> ReadNode {
    let kernel_params = Some(bytes(&[to]));
    let contents = NodeContents { params, kernel_params, ..NodeContents::default() };
    let (kind, bodies) = (KERNEL_NODE, Vec::new());
    ReadNode { index: 0, kind, readable: true, updatable: false, handle, contents, bodies }
}

fn of_one(node: ReadNode) -> ReadBack {
    let graph = ReadGraph { nodes: vec![node], edges: Vec::new(), end: Some((1, 0, true)) };
    ReadBack { graphs: [(0, graph)].into(), ..ReadBack::default() }
}

fn instantiate(bench: &mut Bench, node: ReadNode) -> Operation {
    let (api, read) = (Api::cuGraphInstantiateWithFlags, of_one(node));
    bench.full(api, &[0x10, GRAPH, 0], &[EXEC], 0, |call| call.read_back = Some(Box::new(read)))
}

/// The kernel of the node that a launch runs now, and what it touches.
fn launched(bench: &mut Bench) -> (KernelId, Vec<Access>) {
    let launch = bench.call(Api::cuGraphLaunch, &[EXEC, STREAM], &[]);
    let Action::GraphLaunch { graph, .. } = launch.action else { panic!("{launch:?}") };
    let graph = graphs(bench).into_iter().find(|g| g.id == graph).expect("declared before");
    let NodeAction::Kernel { kernel, .. } = graph.nodes[0].action else { panic!("{graph:?}") };
    (kernel, graph.nodes[0].accesses.clone())
}

fn graphs(bench: &Bench) -> Vec<Arc<Graph>> {
    let graphs = bench.entities.iter().filter_map(|entity| match entity {
        Entity::Graph(graph) => Some(graph.clone()),
        _ => None,
    });
    graphs.collect()
}

/// How many kernels were declared, and of how many the code.
fn declared(bench: &Bench) -> (usize, usize) {
    let count = |wanted: fn(&Entity) -> bool| bench.entities.iter().filter(|e| wanted(e)).count();
    (
        count(|entity| matches!(entity, Entity::Kernel(_))),
        count(|entity| matches!(entity, Entity::KernelCode(_))),
    )
}

/// The writes of one block of the kernel.
fn written(to: u64) -> Vec<Access> {
    let extent = Extent::Range(ByteRange::with_len(to, 128));
    let allocation = AllocationId(0);
    vec![Access { allocation, extent, mode: Mode::Write, basis: Basis::Inferred }]
}

/// The accesses assumed of a kernel that is not known.
fn assumed() -> Vec<Access> {
    let extent = Extent::Range(ByteRange::with_len(A, BYTES));
    let (allocation, basis) = (AllocationId(0), Basis::Assumed);
    vec![Access { allocation, extent, mode: Mode::MayWrite, basis }]
}

fn capture_launch(bench: &mut Bench, handle: u64, node: u64) {
    let args = [handle, 1, 1, 1, 32, 1, 1, 0, STREAM, 0x10, 0];
    let operation = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.read_back = Some(Box::new(ReadBack { captured: Some(node), ..ReadBack::default() }));
    });
    assert!(matches!(operation.action, Action::Captured { .. }));
}

#[test]
fn kernel_that_is_told_beside_the_function_is_the_one_that_was_looked_up() {
    let mut bench = prepared();
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    capture_launch(&mut bench, KERNEL, NODE);
    // Nothing was launched outside of the capture.
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A + 16));
    assert_eq!(launched(&mut bench).1, written(A + 16));
    assert_eq!(declared(&bench), (1, 1));
}

#[test]
fn launch_and_node_are_of_one_kernel() {
    let mut bench = prepared();
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    let args = [KERNEL, 1, 1, 1, 32, 1, 1, 0, STREAM, 0x10, 0];
    let launch = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(bytes(&[A]));
    });
    let Action::Launch { kernel, .. } = launch.action else { panic!("{launch:?}") };
    assert_eq!(launch.accesses, written(A));
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A + 256));
    assert_eq!(launched(&mut bench), (kernel, written(A + 256)));
    assert_eq!(declared(&bench), (1, 1));
}

#[test]
fn function_that_was_told_with_its_kernel_is_known_alone() {
    let mut bench = prepared();
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A));
    let (kernel, _) = launched(&mut bench);
    // The parameters were asked for, changed and set again, without the kernel beside them.
    bench.kernel_from(MODULE, FUNCTION, "kernel", Some(LAYOUT));
    let read = of_one(node(0, params(FUNCTION, 0), A + 512));
    let api = Api::cuGraphExecKernelNodeSetParams_v2;
    bench.full(api, &[EXEC, NODE, 0x30], &[], 0, |call| call.read_back = Some(Box::new(read)));
    assert_eq!(launched(&mut bench), (kernel, written(A + 512)));
    assert_eq!(declared(&bench), (1, 1));
}

#[test]
fn kernel_that_nobody_looked_up_is_the_function_that_was() {
    let mut bench = prepared();
    // The function was looked up in the library's module. The driver is older than
    // `cuKernelGetLibrary`.
    let of_library = 0xf10;
    bench.kernel(of_library, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(KERNEL, of_library), A));
    assert_eq!(launched(&mut bench).1, written(A));
    assert_eq!(declared(&bench), (1, 1));
}

#[test]
fn function_alone_is_the_kernel_whose_captured_launch_made_the_node() {
    let mut bench = prepared();
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    capture_launch(&mut bench, KERNEL, NODE);
    bench.kernel_from(MODULE, FUNCTION, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(FUNCTION, 0), A + 16));
    assert_eq!(launched(&mut bench).1, written(A + 16));
    assert_eq!(declared(&bench), (1, 1));
}

#[test]
fn new_arguments_count_although_the_code_is_read_later() {
    let mut bench = asked();
    let question = bench.questions().pop().expect("asked for");
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A));
    assert_eq!(launched(&mut bench).1, assumed());
    let read = of_one(node(0, params(0, KERNEL), A + 512));
    let api = Api::cuGraphExecKernelNodeSetParams_v2;
    bench.full(api, &[EXEC, NODE, 0x30], &[], 0, |call| call.read_back = Some(Box::new(read)));
    assert_eq!(launched(&mut bench).1, assumed());
    bench.learn(answer(&question));
    let last =
        graphs(&bench).into_iter().rev().take(2).map(|graph| graph.nodes[0].accesses.clone());
    assert_eq!(last.collect::<Vec<_>>(), [written(A + 512), written(A)]);
}

#[test]
fn function_of_another_name_or_of_nobody_stays_unknown() {
    for (name, handle) in [("another", NODE), ("kernel", NODE + 8)] {
        let mut bench = prepared();
        bench.kernel(KERNEL, "kernel", Some(LAYOUT));
        capture_launch(&mut bench, KERNEL, NODE);
        bench.kernel_from(MODULE, FUNCTION, name, Some(LAYOUT));
        instantiate(&mut bench, node(handle, params(FUNCTION, 0), A + 16));
        assert_eq!(launched(&mut bench).1, assumed(), "{name}");
        assert_eq!(declared(&bench), (1, 0), "{name}");
    }
}

#[test]
fn what_was_tied_ends_with_its_library() {
    let mut bench = prepared();
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A));
    assert_eq!(launched(&mut bench).1, written(A));
    bench.call(Api::cuLibraryUnload, &[LIBRARY], &[]);
    // Its handles are used again for a kernel of that name in other code.
    load(&mut bench, OTHER_LIBRARY, 8);
    look_up(&mut bench, OTHER_LIBRARY, KERNEL);
    bench.kernel(KERNEL, "kernel", Some(LAYOUT));
    bench.kernel_from(MODULE, FUNCTION, "kernel", Some(LAYOUT));
    instantiate(&mut bench, node(NODE, params(FUNCTION, 0), A));
    assert_eq!(launched(&mut bench).1, assumed());
    instantiate(&mut bench, node(NODE, params(FUNCTION, KERNEL), A));
    // Its code is still being read.
    assert_eq!(launched(&mut bench).1, assumed());
    assert_eq!(bench.questions().len(), 1);
}
