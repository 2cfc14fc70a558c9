//! Graphs that are built node by node.

use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "graph_with_edges" => || writes_and_reads(true),
        "graph_without_an_edge" => || writes_and_reads(false),
        "graph_launches_are_in_order" => launches_in_order,
        "graph_is_behind_its_stream_and_before_what_follows" => between,
        "graph_queries" => queries,
        "graph_node_parameters" => node_parameters,
        "graph_kernels_of_libraries" => kernels_of_libraries,
        "graph_update" => update,
        "graph_child_and_clone" => child_and_clone,
        "graph_conditions" => conditions,
        "graph_events" => events,
        "graph_memory" => memory,
        "graph_memory_twice" => memory_twice,
        "graph_refusals" => refusals,
        _ => return None,
    })
}

pub(super) fn graph() -> u64 {
    make("cuGraphCreate", &[0])
}

fn after(nodes: &[u64]) -> [u64; 2] {
    [nodes.as_ptr() as u64, nodes.len() as u64]
}

/// A node that sets one word.
pub(super) fn fill_node(graph: u64, nodes: &[u64], word: u64, value: u32) -> u64 {
    let [list, count] = after(nodes);
    let params = fill_params(word, value);
    make("cuGraphAddMemsetNode", &[graph, list, count, params.as_ptr() as u64, 0])
}

/// CUDA_MEMSET_NODE_PARAMS of one word.
fn fill_params(word: u64, value: u32) -> [u64; 5] {
    [word, 0, u64::from(value) | 4 << 32, 1, 1]
}

/// CUDA_MEMCPY3D of one word from the device to the host.
fn fetch_params(to: u64, from: u64) -> [u64; 25] {
    let mut params = [0; 25];
    params[4] = 2;
    params[6] = from;
    params[15] = 1;
    params[16] = to;
    params[22..].copy_from_slice(&[4, 1, 1]);
    params
}

/// A node that copies one word to the host.
pub(super) fn fetch_node(graph: u64, nodes: &[u64], to: u64, from: u64) -> u64 {
    let [list, count] = after(nodes);
    let params = fetch_params(to, from);
    make("cuGraphAddMemcpyNode", &[graph, list, count, params.as_ptr() as u64, 0])
}

/// A node that runs `put(value, out)`.
fn put_node(graph: u64, nodes: &[u64], put: u64, value: u32, out: u64) -> u64 {
    let [list, count] = after(nodes);
    let pointers = [&raw const value as u64, &raw const out as u64];
    let params = kernel_params(put, &pointers);
    make("cuGraphAddKernelNode_v2", &[graph, list, count, params.as_ptr() as u64])
}

/// CUDA_KERNEL_NODE_PARAMS_v2 of one thread.
fn kernel_params(function: u64, pointers: &[u64]) -> [u64; 9] {
    let one = 1 | 1 << 32;
    [function, one, one, one, 0, pointers.as_ptr() as u64, 0, 0, 0]
}

pub(super) fn instantiate(graph: u64) -> u64 {
    make("cuGraphInstantiateWithFlags", &[graph, 0])
}

pub(super) fn run(exec: u64, stream: u64) {
    ok("cuGraphLaunch", &[exec, stream]);
    ok("cuStreamSynchronize", &[stream]);
}

fn writes_and_reads(edges: bool) {
    start();
    let put = function(module(), "put");
    let (graph, stream) = (graph(), stream(NON_BLOCKING));
    let (set, put_to) = (device(4), device(4));
    let (first, second) = (pinned(0), pinned(0));
    let filled = fill_node(graph, &[], set, 7);
    let written = put_node(graph, &[], put, 9, put_to);
    if edges {
        fetch_node(graph, &[filled, written], first, set);
        fetch_node(graph, &[filled, written], second, put_to);
        run(instantiate(graph), stream);
        println!("{} {}", read(first), read(second));
    } else {
        fetch_node(graph, &[written], first, set);
        run(instantiate(graph), stream);
        println!("{}", read(first));
    }
}

fn launches_in_order() {
    start();
    let (graph, first, second) = (graph(), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (word, result) = (device(4), pinned(0));
    fetch_node(graph, &[], result, word);
    let exec = instantiate(graph);
    fill(word, 1, first);
    ok("cuGraphLaunch", &[exec, first]);
    // Behind the launch before it, in whatever stream that was.
    run(exec, second);
    println!("{}", read(result));
}

fn between() {
    start();
    let (graph, stream, other) = (graph(), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (word, during, later, done) = (device(4), pinned(0), pinned(0), event());
    fetch_node(graph, &[], during, word);
    let filled = fill_node(graph, &[], device(4), 1);
    fill_node(graph, &[filled], device(4), 1);
    let exec = instantiate(graph);
    fill(word, 5, stream);
    ok("cuGraphLaunch", &[exec, stream]);
    ok("cuEventRecord", &[done, stream]);
    ok("cuStreamWaitEvent", &[other, done, 0]);
    fill(word, 8, other);
    fetch(later, word, other);
    ok("cuStreamSynchronize", &[other]);
    println!("{} {}", read(during), read(later));
}

/// Asks for a list by its length first.
fn list(name: &str, of: u64) -> Vec<u64> {
    let mut count = 0u64;
    ok(name, &[of, 0, &raw mut count as u64]);
    let mut nodes = vec![9; count as usize + 1];
    let mut room = count + 1;
    ok(name, &[of, nodes.as_mut_ptr() as u64, &raw mut room as u64]);
    assert_eq!((room, nodes.pop()), (count, Some(0)), "the room left is zeroed");
    nodes
}

fn queries() {
    start();
    let put = function(module(), "put");
    let (graph, word, host) = (graph(), device(4), pinned(0));
    let a = fill_node(graph, &[], word, 3);
    let b = put_node(graph, &[a], put, 6, word);
    let c = fetch_node(graph, &[b], host, word);
    let d = make("cuGraphAddEmptyNode", &[graph, 0, 0]);
    assert_eq!(list("cuGraphGetNodes", graph), [a, b, c, d]);
    assert_eq!(list("cuGraphGetRootNodes", graph), [a, d]);
    assert_eq!(list("cuGraphNodeGetDependencies", c), [b]);
    assert_eq!(list("cuGraphNodeGetDependentNodes", a), [b]);
    let kinds: Vec<u32> = [a, b, c, d]
        .iter()
        .map(|node| {
            let mut kind = 99u32;
            ok("cuGraphNodeGetType", &[*node, &raw mut kind as u64]);
            kind
        })
        .collect();
    assert_eq!(kinds, [2, 0, 1, 5]);

    let (mut from, mut to, mut count) = ([0u64; 4], [0u64; 4], 4u64);
    let [from_at, to_at] = [from.as_mut_ptr() as u64, to.as_mut_ptr() as u64];
    ok("cuGraphGetEdges", &[graph, from_at, to_at, &raw mut count as u64]);
    assert_eq!((count, from, to), (2, [a, b, 0, 0], [b, c, 0, 0]));
    let edge = [[c], [d]];
    let [c_at, d_at] = [edge[0].as_ptr() as u64, edge[1].as_ptr() as u64];
    ok("cuGraphAddDependencies", &[graph, c_at, d_at, 1]);
    assert_eq!(list("cuGraphGetRootNodes", graph), [a]);
    ok("cuGraphRemoveDependencies", &[graph, c_at, d_at, 1]);
    assert_eq!(list("cuGraphGetRootNodes", graph), [a, d]);

    let mut kernel = [0u64; 9];
    ok("cuGraphKernelNodeGetParams_v2", &[b, kernel.as_mut_ptr() as u64]);
    assert_eq!(kernel[..4], kernel_params(put, &[])[..4]);
    // SAFETY: the driver's own copies of the parameters, alive as long as the node.
    let (value, out) = unsafe {
        let list = kernel[5] as *const u64;
        (read(*list), (*list.add(1) as *const u64).read())
    };
    assert_eq!((value, out), (6, word));
    let mut copy = [0u64; 25];
    ok("cuGraphMemcpyNodeGetParams", &[c, copy.as_mut_ptr() as u64]);
    assert_eq!(copy, fetch_params(host, word));
    let mut set = [0u64; 5];
    ok("cuGraphMemsetNodeGetParams", &[a, set.as_mut_ptr() as u64]);
    assert_eq!(set, fill_params(word, 3));
    ok("cuGraphDestroyNode", &[b]);
    assert_eq!(list("cuGraphGetNodes", graph), [a, c, d]);
    assert_eq!(list("cuGraphNodeGetDependencies", c), [0u64; 0]);
    println!("ok");
}

/// Whatever a program gave, a node is told by the function of its context, and beside it by the
/// kernel of the library.
fn kernels_of_libraries() {
    start();
    let text = std::ffi::CString::new(include_str!("../../../testdata/driver.ptx")).unwrap();
    let library = make("cuLibraryLoadData", &[text.as_ptr() as u64, 0, 0, 0, 0, 0, 0]);
    let kernel = make("cuLibraryGetKernel", &[library, c"put".as_ptr() as u64]);
    let (graph, stream, word) = (graph(), stream(NON_BLOCKING), device(4));
    let value = 6u32;
    let pointers = [&raw const value as u64, &raw const word as u64];
    let arguments = pointers.as_ptr() as u64;
    let mut params = kernel_params(0, &pointers);
    params[7] = kernel;
    let by_hand = make("cuGraphAddKernelNode_v2", &[graph, 0, 0, params.as_ptr() as u64]);
    ok("cuStreamBeginCapture_v2", &[stream, 0]);
    ok("cuLaunchKernel", &[kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0]);
    let mut captured = 0u64;
    ok("cuStreamEndCapture", &[stream, &raw mut captured as u64]);
    let function = make("cuKernelGetFunction", &[kernel]);
    assert_ne!(function, kernel);
    let clone = make("cuGraphClone", &[graph]);
    let [captured_node, cloned] = [captured, clone].map(|graph| list("cuGraphGetNodes", graph)[0]);
    for node in [by_hand, captured_node, cloned] {
        let (mut first, mut second, mut any) = ([0u64; 7], [0u64; 9], [0u64; 32]);
        ok("cuGraphKernelNodeGetParams", &[node, first.as_mut_ptr() as u64]);
        ok("cuGraphKernelNodeGetParams_v2", &[node, second.as_mut_ptr() as u64]);
        ok("cuGraphNodeGetParams", &[node, any.as_mut_ptr() as u64]);
        assert_eq!((first[0], second[0], second[7]), (function, function, kernel));
        assert_eq!((any[2], any[9]), (function, kernel));
    }
    // A kernel is no function, and does not count beside one.
    params[..8].copy_from_slice(&kernel_params(kernel, &pointers)[..8]);
    let mut made = 0u64;
    let node = [&raw mut made as u64, graph, 0, 0, params.as_ptr() as u64];
    assert_eq!(cu("cuGraphAddKernelNode_v2", &node), 400);
    params[0] = function;
    params[7] = make("cuLibraryGetKernel", &[library, c"add".as_ptr() as u64]);
    ok("cuGraphKernelNodeSetParams_v2", &[by_hand, params.as_ptr() as u64]);
    ok("cuGraphKernelNodeGetParams_v2", &[by_hand, params.as_mut_ptr() as u64]);
    assert_eq!((params[0], params[7]), (function, kernel));
    // A function of a module is told alone.
    let of_module = put_node(graph, &[], self::function(module(), "put"), 1, word);
    let mut params = [0u64; 9];
    ok("cuGraphKernelNodeGetParams_v2", &[of_module, params.as_mut_ptr() as u64]);
    assert_eq!(params[7], 0);
    run(instantiate(captured), stream);
    let mut written = 0u32;
    ok("cuMemcpyDtoH_v2", &[&raw mut written as u64, word, 4]);
    println!("{written}");
}

/// A condition has its value at every launch; the bodies belong to the node.
fn conditions() {
    const ASSIGN_DEFAULT: u64 = 1;
    const CONDITIONAL: u64 = 13;
    const IF: u64 = 0;
    const WHILE: u64 = 1;
    const SWITCH: u64 = 2;
    start();
    let (graph, stream, word) = (graph(), stream(NON_BLOCKING), device(4));
    let condition =
        |value: u64| make("cuGraphConditionalHandleCreate", &[graph, 0, value, ASSIGN_DEFAULT]);
    let mut params = [0u64; 32];
    let mut add = |value: u64, kind: u64, size: u64, expected: u32| {
        params[..5].copy_from_slice(&[CONDITIONAL, 0, condition(value), kind | size << 32, 0]);
        let mut node = 0u64;
        let at = [&raw mut node as u64, graph, 0, 0, 0, params.as_mut_ptr() as u64];
        assert_eq!(cu("cuGraphAddNode_v2", &at), expected);
        if expected != 0 {
            return Vec::new();
        }
        let mut told = [0u64; 32];
        ok("cuGraphNodeGetParams", &[node, told.as_mut_ptr() as u64]);
        assert_eq!(told[2..5], params[2..5]);
        // SAFETY: the driver's list of the bodies.
        (0..size as usize)
            .map(|body| unsafe { (params[4] as *const u64).add(body).read() })
            .collect()
    };
    add(0, IF, 3, 1);
    add(1, WHILE, 1, 801);
    add(0, WHILE, 1, 0);
    // Else, then, and the last of three cases: each writes a word, the others do not run.
    let [no, yes, switched] = [add(0, IF, 2, 0), add(1, IF, 1, 0), add(2, SWITCH, 3, 0)];
    let words = [word, device(4), device(4)];
    fill_node(no[0], &[], words[0], 5);
    fill_node(no[1], &[], words[0], 6);
    fill_node(yes[0], &[], words[1], 7);
    fill_node(switched[0], &[], words[2], 8);
    fill_node(switched[2], &[], words[2], 9);
    let mut clone = 0u64;
    assert_eq!(cu("cuGraphClone", &[&raw mut clone as u64, graph]), 801);
    assert_eq!(cu("cuGraphDestroy", &[yes[0]]), 1, "it belongs to the node");
    run(instantiate(graph), stream);
    let written = words.map(|word| {
        let mut written = 0u32;
        ok("cuMemcpyDtoH_v2", &[&raw mut written as u64, word, 4]);
        written
    });
    ok("cuGraphDestroy", &[graph]);
    println!("{written:?}");
}

fn node_parameters() {
    start();
    let (graph, stream, word, result) = (graph(), stream(NON_BLOCKING), device(4), pinned(0));
    let set = fill_node(graph, &[], word, 1);
    fetch_node(graph, &[set], result, word);
    ok("cuGraphMemsetNodeSetParams", &[set, fill_params(word, 2).as_ptr() as u64]);
    let exec = instantiate(graph);
    run(exec, stream);
    let of_graph = read(result);
    ok("cuGraphExecMemsetNodeSetParams", &[exec, set, fill_params(word, 3).as_ptr() as u64, 0]);
    run(exec, stream);
    let of_exec = read(result);
    fill(word, 0, stream);
    ok("cuGraphNodeSetEnabled", &[exec, set, 0]);
    run(exec, stream);
    let disabled = read(result);
    let mut enabled = 9u32;
    ok("cuGraphNodeGetEnabled", &[exec, set, &raw mut enabled as u64]);
    assert_eq!(enabled, 0);
    ok("cuGraphNodeSetEnabled", &[exec, set, 1]);
    run(exec, stream);
    println!("{of_graph} {of_exec} {disabled} {}", read(result));
}

fn update() {
    start();
    let (stream, word, result) = (stream(NON_BLOCKING), device(4), pinned(0));
    let build = |value: u32, edge: bool| {
        let graph = graph();
        let set = fill_node(graph, &[], word, value);
        fetch_node(graph, if edge { std::slice::from_ref(&set) } else { &[] }, result, word);
        graph
    };
    let exec = instantiate(build(1, true));
    let mut info = [9u64; 3];
    let at = info.as_mut_ptr() as u64;
    ok("cuGraphExecUpdate_v2", &[exec, build(4, true), at]);
    run(exec, stream);
    let updated = read(result);
    let shape = cu("cuGraphExecUpdate_v2", &[exec, build(5, false), at]);
    let shape_why = info[0] as u32;
    let other = graph();
    let copied = fetch_node(other, &[], result, word);
    fill_node(other, &[copied], word, 1);
    let kind = cu("cuGraphExecUpdate_v2", &[exec, other, at]);
    println!("{updated} {shape} {shape_why} {kind} {}", info[0] as u32);
}

fn child_and_clone() {
    start();
    let (stream, word, result) = (stream(NON_BLOCKING), device(4), pinned(0));
    let (inner, outer) = (graph(), graph());
    let set = fill_node(inner, &[], word, 7);
    let child = make("cuGraphAddChildGraphNode", &[outer, 0, 0, inner]);
    fetch_node(outer, &[child], result, word);
    let mut own = 0u64;
    ok("cuGraphChildGraphNodeGetGraph", &[child, &raw mut own as u64]);
    assert_ne!(own, inner, "the node has a graph of its own");
    assert_eq!(cu("cuGraphDestroy", &[own]), 1);
    let clone = make("cuGraphClone", &[outer]);
    let found = make("cuGraphNodeFindInClone", &[child, clone]);
    assert_ne!(found, child);
    assert_eq!(cu("cuGraphNodeFindInClone", &[&raw mut own as u64, set, clone]), 1);
    ok("cuGraphDestroy", &[inner]);
    let exec = instantiate(clone);
    ok("cuGraphDestroy", &[outer]);
    ok("cuGraphDestroy", &[clone]);
    run(exec, stream);
    ok("cuGraphExecDestroy", &[exec]);
    println!("{} {}", read(result), cu("cuGraphLaunch", &[exec, stream]));
}

fn events() {
    start();
    let (graph, launched, other) = (graph(), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (early, late) = ((device(4), pinned(0)), (device(4), pinned(0)));
    let (done, awaited) = (event(), event());
    let (word, result) = (device(4), pinned(0));
    let set = fill_node(graph, &[], early.0, 1);
    let [list, count] = after(std::slice::from_ref(&set));
    make("cuGraphAddEventRecordNode", &[graph, list, count, done]);
    fill_node(graph, &[set], late.0, 1);
    let wait = make("cuGraphAddEventWaitNode", &[graph, 0, 0, awaited]);
    fetch_node(graph, &[wait], result, word);
    let exec = instantiate(graph);
    fill(word, 1, other);
    ok("cuEventRecord", &[awaited, other]);
    ok("cuGraphLaunch", &[exec, launched]);
    ok("cuStreamWaitEvent", &[other, done, 0]);
    fetch(early.1, early.0, other);
    fetch(late.1, late.0, other);
    ok("cuStreamSynchronize", &[other]);
    // The record holds what is before it in the graph, not the whole launch.
    let seen = (read(early.1), read(late.1));
    ok("cuStreamSynchronize", &[launched]);
    println!("{} {} {}", seen.0, seen.1, read(result));
}

/// CUDA_MEM_ALLOC_NODE_PARAMS of one word on device 0.
fn alloc_params() -> [u64; 15] {
    let mut params = [0; 15];
    params[..2].copy_from_slice(&[1, 1]);
    params[13] = 4;
    params
}

fn memory() {
    start();
    let (first, second, stream) = (graph(), graph(), stream(NON_BLOCKING));
    let result = pinned(0);
    let mut params = alloc_params();
    let alloc = make("cuGraphAddMemAllocNode", &[first, 0, 0, params.as_mut_ptr() as u64]);
    let word = params[14];
    let set = fill_node(first, &[alloc], word, 5);
    fetch_node(first, &[set], result, word);
    let [list, count] = [0, 0];
    let free = make("cuGraphAddMemFreeNode", &[second, list, count, word]);
    let mut freed = 0u64;
    ok("cuGraphMemFreeNodeGetParams", &[free, &raw mut freed as u64]);
    assert_eq!(freed, word);
    let (allocates, frees) = (instantiate(first), instantiate(second));
    run(allocates, stream);
    let value = read(result);
    // Live memory is not allocated again; free memory is not freed again.
    let again = cu("cuGraphLaunch", &[allocates, stream]);
    let free_once = cu("cuGraphLaunch", &[frees, stream]);
    let relaunched = cu("cuGraphLaunch", &[allocates, stream]);
    ok("cuMemFreeAsync", &[word, stream]);
    let free_twice = cu("cuGraphLaunch", &[frees, stream]);
    ok("cuGraphExecDestroy", &[allocates]);
    let auto = make("cuGraphInstantiateWithFlags", &[first, 1]);
    run(auto, stream);
    let repeated = cu("cuGraphLaunch", &[auto, stream]);
    ok("cuCtxSynchronize", &[]);
    println!("{value} {again} {free_once} {relaunched} {free_twice} {repeated}");
}

fn memory_twice() {
    start();
    let (graph, stream) = (graph(), stream(NON_BLOCKING));
    let results = [pinned(0), pinned(0)];
    let mut params = alloc_params();
    let at = params.as_mut_ptr() as u64;
    let alloc = |after: &[u64]| {
        let (list, count) = (after.as_ptr() as u64, after.len() as u64);
        make("cuGraphAddMemAllocNode", &[graph, list, count, at])
    };
    let free = |after: &[u64], word: u64| {
        let (list, count) = (after.as_ptr() as u64, after.len() as u64);
        let mut node = 0u64;
        let failed = cu("cuGraphAddMemFreeNode", &[&raw mut node as u64, graph, list, count, word]);
        (node, failed)
    };
    let made = alloc(&[]);
    let first = params[14];
    let set = fill_node(graph, &[made], first, 5);
    let read_back = fetch_node(graph, &[set], results[0], first);
    let (freed, _) = free(&[read_back], first);
    let (_, freed_twice) = free(&[freed], first);
    // Beside the free the address is taken; behind it, it is free again.
    let _ = alloc(&[read_back]);
    let beside = params[14];
    let made = alloc(&[freed]);
    let second = params[14];
    let set = fill_node(graph, &[made], second, 6);
    let read_back = fetch_node(graph, &[set], results[1], second);
    let (_, freed_again) = free(&[read_back], second);
    run(instantiate(graph), stream);
    let [one, two] = results.map(read);
    println!("{one} {two} {} {} {freed_twice} {freed_again}", first == second, first == beside);
}

fn refusals() {
    start();
    let (graph, word, host) = (graph(), device(4), pinned(0));
    let mut out = 0u64;
    let out = &raw mut out as u64;
    let a = fill_node(graph, &[], word, 1);
    let b = fetch_node(graph, &[a], host, word);
    let other = make("cuGraphCreate", &[0]);
    let twice = [a, a];
    let (a_list, b_list) = ([a], [b]);
    let [a_at, b_at] = [a_list.as_ptr() as u64, b_list.as_ptr() as u64];
    let fill = fill_params(word, 1);
    let unknown = fill_params(0x10, 1);
    let nothing = [0u64; 2];
    let copy = fetch_params(host, word);
    let exec = instantiate(graph);
    let rows: &[(&str, &[u64], u32)] = &[
        ("cuGraphCreate", &[out, 1], 1),
        ("cuGraphCreate", &[0, 0], 1),
        ("cuGraphDestroy", &[0], 1),
        ("cuGraphAddEmptyNode", &[out, graph, twice.as_ptr() as u64, 2], 1),
        ("cuGraphAddEmptyNode", &[out, other, a_at, 1], 1),
        ("cuGraphAddEmptyNode", &[out, graph, 0, 1], 1),
        ("cuGraphAddMemsetNode", &[out, graph, 0, 0, unknown.as_ptr() as u64, 0], 1),
        ("cuGraphAddHostNode", &[out, graph, 0, 0, nothing.as_ptr() as u64], 1),
        ("cuGraphAddEventRecordNode", &[out, graph, 0, 0, 0], 1),
        ("cuGraphAddMemFreeNode", &[out, graph, 0, 0, word], 1),
        ("cuGraphAddDependencies", &[graph, a_at, b_at, 1], 1),
        ("cuGraphAddDependencies", &[graph, a_at, a_at, 1], 1),
        ("cuGraphRemoveDependencies", &[graph, b_at, a_at, 1], 801),
        ("cuGraphKernelNodeGetParams", &[a, out], 1),
        ("cuGraphMemcpyNodeSetParams", &[a, copy.as_ptr() as u64], 1),
        ("cuGraphNodeGetType", &[0, out], 1),
        ("cuGraphInstantiateWithFlags", &[out, graph, 4], 801),
        ("cuGraphInstantiateWithFlags", &[out, graph, 16], 1),
        ("cuGraphLaunch", &[0, 0], 1),
        ("cuGraphLaunch", &[exec, 0x1234], 400),
        ("cuGraphExecMemsetNodeSetParams", &[exec, b, fill.as_ptr() as u64, 0], 1),
        ("cuGraphNodeSetEnabled", &[exec, 0x1234, 0], 1),
        // Dependencies that go round are found when the graph is instantiated.
        ("cuGraphAddDependencies", &[graph, b_at, a_at, 1], 0),
        ("cuGraphInstantiateWithFlags", &[out, graph, 0], 1),
    ];
    for (name, arguments, expected) in rows {
        assert_eq!(cu(name, arguments), *expected, "{name}{arguments:x?}");
    }
    println!("ok");
}
