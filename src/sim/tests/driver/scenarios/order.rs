//! Ways of ordering work besides streams and events: words in memory, batches, and launches that
//! overlap the one before them.

use std::ffi::CString;
use std::thread;
use std::time::Duration;

use super::graphs::{graph, instantiate, run};
use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "value_words" => words,
        "value_word_written_by_the_program" => written_by_the_program,
        "value_words_refused" => words_refused,
        "value_words_in_a_graph" => words_in_a_graph,
        "batch_of_copies" => batch_of_copies,
        "batch_entries_are_not_ordered" => batch_entries,
        "batch_sources" => batch_sources,
        "programmatic_launch" => programmatic_launch,
        "programmatic_events" => programmatic_events,
        "programmatic_edge" => programmatic_edge,
        "programmatic_event_captured" => programmatic_event_captured,
        _ => return None,
    })
}

const REACHED: u64 = 0;
const EQUAL: u64 = 1;
const AND: u64 = 2;

fn words() {
    start();
    let (first, second, third) = (stream(NON_BLOCKING), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (flag, wide, word) = (device(4), device(8), device(4));
    let results = [pinned(0), pinned(0), pinned(0)];
    // Each wait is submitted before the write that it waits for.
    ok("cuStreamWaitValue32_v2", &[second, flag, 2, REACHED]);
    fetch(results[0], word, second);
    fill(word, 5, second);
    ok("cuStreamWriteValue64_v2", &[second, wide, 1 << 40, 0]);
    ok("cuStreamWaitValue64_v2", &[third, wide, 1 << 40, AND]);
    fetch(results[1], word, third);
    fill(word, 3, first);
    ok("cuStreamWriteValue32_v2", &[first, flag, 3, 0]);
    // As entries of a batch: in order among themselves.
    let entries = [[2, flag, 9, 0, 0, 0], [1, flag, 9, EQUAL, 0, 0], [6, 0, 0, 0, 0, 0u64]];
    ok("cuStreamBatchMemOp_v2", &[third, 3, entries.as_ptr() as u64, 0]);
    fetch(results[2], flag, third);
    ok("cuStreamSynchronize", &[third]);
    println!("{} {} {}", read(results[0]), read(results[1]), read(results[2]));
}

fn written_by_the_program() {
    start();
    let (stream, flag, result) = (stream(NON_BLOCKING), pinned(0), pinned(0));
    let word = device(4);
    ok("cuStreamWaitValue32_v2", &[stream, flag, 1, EQUAL]);
    fill(word, 1, stream);
    fetch(result, word, stream);
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        write(flag, 1);
    });
    ok("cuStreamSynchronize", &[stream]);
    writer.join().unwrap();
    println!("{}", read(result));
}

/// The statuses are those of driver 580.159 on an H200.
fn words_refused() {
    start();
    let (stream, word, managed) =
        (stream(NON_BLOCKING), device(8), make("cuMemAllocManaged", &[8, 1]));
    let pageable = Box::new(0u64);
    let rows: &[(&str, &[u64], u32)] = &[
        ("cuStreamWriteValue32_v2", &[stream, word + 2, 1, 0], 1),
        ("cuStreamWriteValue64_v2", &[stream, word + 4, 1, 0], 1),
        ("cuStreamWriteValue32_v2", &[stream, &raw const *pageable as u64, 1, 0], 1),
        ("cuStreamWriteValue32_v2", &[stream, managed, 1, 0], 1),
        ("cuStreamWriteValue32_v2", &[stream, word, 1, 2], 1),
        ("cuStreamWaitValue32_v2", &[stream, word, 0, 0], 0),
        ("cuStreamWaitValue32_v2", &[stream, word, 0, 4], 1),
        ("cuStreamBatchMemOp_v2", &[stream, 0, 0, 0], 0),
        ("cuStreamBatchMemOp_v2", &[stream, 1, 0, 0], 1),
    ];
    for (name, arguments, expected) in rows {
        assert_eq!(cu(name, arguments), *expected, "{name}{arguments:x?}");
    }
    ok("cuStreamSynchronize", &[stream]);
    println!("ok");
}

fn words_in_a_graph() {
    start();
    let (stream, word, result) = (stream(NON_BLOCKING), device(4), pinned(0));
    ok("cuStreamBeginCapture_v2", &[stream, 0]);
    ok("cuStreamWriteValue32_v2", &[stream, word, 7, 0]);
    ok("cuStreamWaitValue32_v2", &[stream, word, 7, EQUAL]);
    fetch(result, word, stream);
    let captured = make_graph(stream);
    let (mut node, mut count, mut kind) = (0u64, 1u64, 0u32);
    ok("cuGraphGetNodes", &[captured, &raw mut node as u64, &raw mut count as u64]);
    ok("cuGraphNodeGetType", &[node, &raw mut kind as u64]);
    let mut params = [0u64; 4];
    ok("cuGraphBatchMemOpNodeGetParams", &[node, params.as_mut_ptr() as u64]);
    // SAFETY: the node's own list of one entry of six words.
    let entry = unsafe { (params[2] as *const [u64; 6]).read() };
    assert_eq!((params[1] as u32, entry[..4].to_vec()), (1, vec![2, word, 7, 0]));
    run(instantiate(captured), stream);
    println!("{} {kind}", read(result));
}

fn make_graph(stream: u64) -> u64 {
    let mut graph = 0u64;
    ok("cuStreamEndCapture", &[stream, &raw mut graph as u64]);
    graph
}

/// CUmemcpyAttributes with the given order of the source's access.
fn attributes(order: u32) -> [u32; 6] {
    [order, 0, 0, 0, 0, 0]
}

const IN_STREAM: u32 = 1;
const DURING_CALL: u32 = 2;
const ANY: u32 = 3;

/// Copies of one word each, with one order for all.
fn batch(pairs: &[(u64, u64)], order: u32, stream: u64) {
    let to: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    let from: Vec<u64> = pairs.iter().map(|pair| pair.1).collect();
    let sizes = vec![4u64; pairs.len()];
    let (attributes, start, mut failed) = (attributes(order), 0u64, 99u64);
    let arguments = [
        to.as_ptr() as u64,
        from.as_ptr() as u64,
        sizes.as_ptr() as u64,
        pairs.len() as u64,
        attributes.as_ptr() as u64,
        &raw const start as u64,
        1,
        &raw mut failed as u64,
        stream,
    ];
    ok("cuMemcpyBatchAsync", &arguments);
    assert_eq!(failed, u64::MAX, "none");
}

fn batch_of_copies() {
    start();
    let (stream, a, b) = (stream(NON_BLOCKING), device(4), device(4));
    let (first, second) = (pinned(0), pinned(0));
    fill(a, 1, stream);
    fill(b, 2, stream);
    batch(&[(first, a), (second, b)], IN_STREAM, stream);
    ok("cuStreamSynchronize", &[stream]);
    println!("{} {}", read(first), read(second));
}

fn batch_entries() {
    start();
    let (stream, source, middle, result) = (stream(NON_BLOCKING), pinned(1), device(4), pinned(0));
    batch(&[(middle, source), (result, middle)], IN_STREAM, stream);
    ok("cuStreamSynchronize", &[stream]);
    println!("{}", read(result));
}

fn batch_sources() {
    start();
    let stream = stream(NON_BLOCKING);
    let results: Vec<u32> = [IN_STREAM, DURING_CALL, ANY]
        .map(|order| {
            let (source, word, result) = (pinned(1), device(4), pinned(0));
            let attributes = attributes(order);
            let arguments = [word, source, 4, attributes.as_ptr() as u64, stream];
            ok("cuMemcpyWithAttributesAsync", &arguments);
            write(source, 2);
            fetch(result, word, stream);
            ok("cuStreamSynchronize", &[stream]);
            read(result)
        })
        .to_vec();
    let list = attributes(IN_STREAM);
    // The legacy stream takes no batches.
    let refused = [device(4), pinned(0), 4, list.as_ptr() as u64, 0];
    assert_eq!(cu("cuMemcpyWithAttributesAsync", &refused), 1);
    println!("{} {} {}", results[0], results[1], results[2]);
}

/// Kernels that copy a word, one of them behind its primary.
const KERNELS: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry overlap(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd1], %r1;
    griddepcontrol.launch_dependents;
    ret;
}

.visible .entry behind(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    griddepcontrol.wait;
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd1], %r1;
    ret;
}
";

fn kernels() -> (u64, u64) {
    let text = CString::new(KERNELS).unwrap();
    let module = make("cuModuleLoadData", &[text.as_ptr() as u64]);
    (function(module, "overlap"), function(module, "behind"))
}

/// Launches one thread with one attribute: its number, and its value as a word.
fn launch_with(function: u64, stream: u64, parameters: [u64; 2], attribute: (u32, u64)) {
    let pointers = parameters.each_ref().map(|word| word as *const u64 as u64);
    let mut words = [0u64; 9];
    words[0] = attribute.0.into();
    words[1] = attribute.1;
    let one = 1 | 1 << 32;
    let config = [one, one, one, 0, stream, words.as_ptr() as u64, 1];
    let list = pointers.as_ptr() as u64;
    ok("cuLaunchKernelEx", &[config.as_ptr() as u64, function, list, 0]);
}

const PROGRAMMATIC: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;

fn programmatic_launch() {
    start();
    let (overlap, behind) = kernels();
    let stream = stream(NON_BLOCKING);
    let result = pinned(0);
    let chain = |secondary: u64, attribute: (u32, u64)| {
        let (source, middle, end) = (device(4), device(4), device(4));
        fill(source, 1, stream);
        fill(middle, 0, stream);
        ok("cuStreamSynchronize", &[stream]);
        assert_eq!(launch(overlap, 1, 1, stream, &[middle, source]), 0);
        launch_with(secondary, stream, [end, middle], attribute);
        fetch(result, end, stream);
        ok("cuStreamSynchronize", &[stream]);
        read(result)
    };
    let (early, waited) = (chain(overlap, (PROGRAMMATIC, 1)), chain(behind, (PROGRAMMATIC, 1)));
    // An ordinary operation is behind both kernels.
    let (word, two) = (device(4), device(4));
    fill(two, 2, stream);
    assert_eq!(launch(overlap, 1, 1, stream, &[word, two]), 0);
    launch_with(overlap, stream, [device(4), two], (PROGRAMMATIC, 1));
    fetch(result, word, stream);
    ok("cuStreamSynchronize", &[stream]);
    println!("{early} {waited} {}", read(result));
}

fn programmatic_events() {
    start();
    let (overlap, _) = kernels();
    let (first, second) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (source, word, fired) = (device(4), device(4), make("cuEventCreate", &[2]));
    let (early, late) = (pinned(9), pinned(9));
    fill(source, 1, first);
    fill(word, 0, first);
    launch_with(overlap, first, [word, source], (PROGRAMMATIC_EVENT, fired));
    ok("cuStreamWaitEvent", &[second, fired, 0]);
    fetch(early, word, second);
    fetch(late, source, second);
    ok("cuStreamSynchronize", &[second]);
    // The work before the kernel is done, the kernel is not.
    println!("{} {}", read(early), read(late));
}

fn programmatic_edge() {
    start();
    let (overlap, _) = kernels();
    let stream = stream(NON_BLOCKING);
    let (source, middle, end, result) = (device(4), device(4), device(4), pinned(9));
    fill(source, 1, stream);
    fill(middle, 0, stream);
    ok("cuStreamSynchronize", &[stream]);
    ok("cuStreamBeginCapture_v2", &[stream, 0]);
    assert_eq!(launch(overlap, 1, 1, stream, &[middle, source]), 0);
    launch_with(overlap, stream, [end, middle], (PROGRAMMATIC, 1));
    let captured = make_graph(stream);
    let (mut from, mut to, mut data, mut count) = (0u64, 0u64, [0u8; 8], 1u64);
    let [from_at, to_at] = [&raw mut from as u64, &raw mut to as u64];
    let [data_at, count_at] = [data.as_mut_ptr() as u64, &raw mut count as u64];
    assert_eq!(cu("cuGraphGetEdges", &[captured, from_at, to_at, count_at]), 402);
    ok("cuGraphGetEdges_v2", &[captured, from_at, to_at, data_at, count_at]);
    run(instantiate(captured), stream);
    fetch(result, end, stream);
    ok("cuStreamSynchronize", &[stream]);
    // The same edge between nodes of another graph, added by hand, is refused there.
    let other = graph();
    assert_eq!(cu("cuGraphAddDependencies_v2", &[other, from_at, to_at, data_at, 1]), 1);
    println!("{} {} {}", read(result), data[0], data[2]);
}

/// A captured wait for a programmatic event becomes an edge from the trigger of the kernel.
fn programmatic_event_captured() {
    start();
    let (overlap, behind) = kernels();
    let (first, second) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (source, middle, result) = (device(4), device(4), pinned(9));
    let (early, late) = (device(4), device(4));
    let [fired, joined] = [(); 2].map(|()| make("cuEventCreate", &[2]));
    fill(source, 1, first);
    fill(middle, 0, first);
    ok("cuStreamSynchronize", &[first]);
    for (secondary, end) in [(overlap, early), (behind, late)] {
        ok("cuStreamBeginCapture_v2", &[first, 0]);
        launch_with(overlap, first, [middle, source], (PROGRAMMATIC_EVENT, fired));
        ok("cuStreamWaitEvent", &[second, fired, 0]);
        assert_eq!(launch(secondary, 1, 1, second, &[end, middle]), 0);
        ok("cuEventRecord", &[joined, second]);
        ok("cuStreamWaitEvent", &[first, joined, 0]);
        let captured = make_graph(first);
        let (mut from, mut to, mut data, mut count) = (0u64, 0u64, [0u8; 8], 1u64);
        let [from_at, to_at] = [&raw mut from as u64, &raw mut to as u64];
        let [data_at, count_at] = [data.as_mut_ptr() as u64, &raw mut count as u64];
        ok("cuGraphGetEdges_v2", &[captured, from_at, to_at, data_at, count_at]);
        print!("{} {} ", data[0], data[2]);
        fill(middle, 0, first);
        run(instantiate(captured), first);
        fetch(result, end, first);
        ok("cuStreamSynchronize", &[first]);
        print!("{} ", read(result));
    }
    println!();
}
