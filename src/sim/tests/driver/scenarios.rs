//! The steps of each scenario. Words are set by memsets and copied to pinned memory, whose final
//! value tells which operations had run.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::raw::*;
use crate::refusals;

mod captures;
mod graphs;
mod kernels;
mod memory;
mod order;
mod parts;
mod process;
mod progress;
mod spaces;

/// Runs one scenario in this process.
pub(crate) fn run(name: &str) {
    let scenario: fn() = match name {
        "missing_wait" => missing_wait,
        "event_orders_two_streams" => event_orders_two_streams,
        "wait_keeps_the_record_it_was_made_with" => || wait_keeps_its_record(false),
        "wait_outlives_its_event" => || wait_keeps_its_record(true),
        "wait_on_an_event_never_recorded_waits_for_nothing" => wait_before_record,
        "legacy_stream_waits_for_blocking_streams_only" => legacy_waits,
        "blocking_streams_wait_for_the_legacy_stream" => blocking_waits,
        "per_thread_stream_is_not_the_legacy_stream" => per_thread,
        "pinned_source_is_read_late_pageable_at_the_call" => late_sources,
        "early_read_of_a_download" => early_read,
        "synchronous_copies_wait_where_the_manual_says" => synchronous_copies,
        "context_synchronize_reaches_every_stream" => context_synchronize,
        "context_event_holds_every_stream" => context_event,
        "destroyed_stream_completes" => destroyed_stream,
        "two_threads_share_a_stream" => two_threads,
        "sync_memops" => sync_memops,
        "work_of_ended_threads_completes" => ended_threads,
        "queue_is_bounded" => queue_is_bounded,
        "unordered_writes" => unordered_writes,
        "refusals" => refusals::run,
        other => memory::find(other)
            .or_else(|| kernels::find(other))
            .or_else(|| captures::find(other))
            .or_else(|| graphs::find(other))
            .or_else(|| order::find(other))
            .or_else(|| spaces::find(other))
            .or_else(|| parts::find(other))
            .or_else(|| progress::find(other))
            .or_else(|| process::find(other))
            .expect("a known scenario"),
    };
    scenario();
}

fn missing_wait() {
    start();
    let (upload, download) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (source, result, word) = (pinned(1), pinned(0), device(4));
    ok("cuMemcpyHtoDAsync_v2", &[word, source, 4, upload]);
    fetch(result, word, download);
    ok("cuStreamSynchronize", &[download]);
    println!("{}", if read(result) == 1 { "new" } else { "old" });
}

fn event_orders_two_streams() {
    start();
    let (upload, download) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (source, result, word, done) = (pinned(1), pinned(0), device(4), event());
    ok("cuMemcpyHtoDAsync_v2", &[word, source, 4, upload]);
    ok("cuEventRecord", &[done, upload]);
    ok("cuStreamWaitEvent", &[download, done, 0]);
    fetch(result, word, download);
    ok("cuStreamSynchronize", &[download]);
    println!("{}", if read(result) == 1 { "new" } else { "old" });
}

fn wait_keeps_its_record(destroy: bool) {
    start();
    let (writer, reader) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (result, word, done) = (pinned(0), device(4), event());
    fill(word, 1, writer);
    ok("cuEventRecord", &[done, writer]);
    ok("cuStreamWaitEvent", &[reader, done, 0]);
    fill(word, 2, writer);
    ok("cuEventRecord", &[done, writer]);
    if destroy {
        ok("cuEventDestroy_v2", &[done]);
    }
    fetch(result, word, reader);
    ok("cuStreamSynchronize", &[reader]);
    println!("{}", read(result));
}

fn wait_before_record() {
    start();
    let (writer, reader) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (result, word, done) = (pinned(0), device(4), event());
    ok("cuEventQuery", &[done]);
    fill(word, 1, writer);
    ok("cuStreamWaitEvent", &[reader, done, 0]);
    ok("cuEventRecord", &[done, writer]);
    fetch(result, word, reader);
    ok("cuStreamSynchronize", &[reader]);
    println!("{}", read(result));
}

/// One word of the device and where it is copied to.
fn cell() -> (u64, u64) {
    (device(4), pinned(0))
}

fn legacy_waits() {
    start();
    let (blocking, free) = (stream(0), stream(NON_BLOCKING));
    let (a, b, c) = (cell(), cell(), cell());
    fill(a.0, 1, blocking);
    fill(b.0, 1, free);
    ok("cuMemsetD32Async_ptsz", &[c.0, 1, 1, 0]);
    for (word, result) in [a, b, c] {
        fetch(result, word, 0);
    }
    ok("cuStreamSynchronize", &[0]);
    println!("{} {} {}", read(a.1), read(b.1), read(c.1));
}

fn blocking_waits() {
    start();
    let (blocking, free) = (stream(0), stream(NON_BLOCKING));
    let (a, b) = (cell(), cell());
    fill(a.0, 1, 0);
    fill(b.0, 1, 0);
    fetch(b.1, b.0, free);
    ok("cuStreamSynchronize", &[free]);
    fetch(a.1, a.0, blocking);
    ok("cuStreamSynchronize", &[blocking]);
    println!("{} {}", read(a.1), read(b.1));
}

fn per_thread() {
    start();
    let (free, a, b) = (stream(NON_BLOCKING), cell(), cell());
    // Handle 2 and the twin's 0 are one stream, which a non-blocking one does not wait for.
    fill(a.0, 1, 2);
    fetch(a.1, a.0, free);
    ok("cuStreamSynchronize", &[free]);
    let early = read(a.1);
    ok("cuMemsetD32Async_ptsz", &[b.0, 1, 1, 0]);
    fetch(b.1, b.0, 2);
    ok("cuStreamSynchronize_ptsz", &[0]);
    println!("{early} {}", read(b.1));
}

fn late_sources() {
    start();
    let (upload, a, b) = (stream(NON_BLOCKING), cell(), cell());
    let reused = pinned(1);
    let mut pageable = Box::new(1u32);
    ok("cuMemcpyHtoDAsync_v2", &[a.0, reused, 4, upload]);
    ok("cuMemcpyHtoDAsync_v2", &[b.0, &raw const *pageable as u64, 4, upload]);
    write(reused, 2);
    *pageable = 2;
    fetch(a.1, a.0, upload);
    fetch(b.1, b.0, upload);
    ok("cuStreamSynchronize", &[upload]);
    println!("{} {}", read(a.1), read(b.1));
}

fn early_read() {
    start();
    let (download, (word, result)) = (stream(NON_BLOCKING), cell());
    fill(word, 1, download);
    fetch(result, word, download);
    let early = read(result);
    ok("cuStreamSynchronize", &[download]);
    println!("{early} {}", read(result));
}

fn synchronous_copies() {
    start();
    let watch = stream(NON_BLOCKING);
    let (pinned_source, pageable) = (pinned(1), 1u32);
    let (a, b, c, target) = (device(4), device(4), device(4), pinned(0));
    ok("cuMemcpyHtoD_v2", &[a, pinned_source, 4]);
    let from_pinned = peek(a, watch);
    // The source has been read; the copy from the staging buffer is still to come.
    ok("cuMemcpyHtoD_v2", &[b, &raw const pageable as u64, 4]);
    let from_pageable = peek(b, watch);
    let mut back = 0u32;
    ok("cuMemcpyDtoD_v2", &[c, a, 4]);
    ok("cuMemcpyDtoH_v2", &[&raw mut back as u64, c, 4]);
    ok("cuMemsetD32_v2", &[target, 1, 1]);
    println!("{from_pinned} {from_pageable} {back} {}", read(target));
}

/// The content of a word of the device, without waiting for anything else.
fn peek(word: u64, watch: u64) -> u32 {
    let result = pinned(0);
    fetch(result, word, watch);
    ok("cuStreamSynchronize", &[watch]);
    read(result)
}

fn sync_memops() {
    start();
    let (word, on, value) = (device(4), 1u32, 1u32);
    ok("cuPointerSetAttribute", &[&raw const on as u64, 6, word]);
    ok("cuMemsetD32_v2", &[word, 1, 1]);
    let by_pointer = peek(word, stream(NON_BLOCKING));
    make("cuCtxCreate_v2", &[0x80, 0]);
    let (set, copied, watch) = (device(4), device(4), stream(NON_BLOCKING));
    ok("cuMemsetD32_v2", &[set, 1, 1]);
    let by_context = peek(set, watch);
    ok("cuMemcpyHtoD_v2", &[copied, &raw const value as u64, 4]);
    println!("{by_pointer} {by_context} {}", peek(copied, watch));
}

fn ended_threads() {
    const THREADS: u32 = 400;
    start();
    let context = make("cuCtxGetCurrent", &[]);
    let (word, result) = cell();
    for step in 1..=THREADS {
        thread::spawn(move || {
            ok("cuCtxSetCurrent", &[context]);
            ok("cuMemsetD32Async_ptsz", &[word, step.into(), 1, 0]);
            // The legacy stream orders this thread's work before the next thread's.
            ok("cuMemsetD8Async", &[word, 0, 0, 0]);
            ok("cuStreamSynchronize_ptsz", &[0]);
        })
        .join()
        .unwrap();
    }
    fetch(result, word, 0);
    ok("cuStreamSynchronize", &[0]);
    println!("{}", read(result));
}

fn context_synchronize() {
    start();
    let (a, b) = (cell(), cell());
    for ((word, result), stream) in [(a, stream(0)), (b, stream(NON_BLOCKING))] {
        fill(word, 1, stream);
        fetch(result, word, stream);
    }
    ok("cuCtxSynchronize", &[]);
    println!("{} {}", read(a.1), read(b.1));
}

fn context_event() {
    start();
    let context = make("cuCtxGetCurrent", &[]);
    let (first, second, done) = (stream(NON_BLOCKING), stream(NON_BLOCKING), event());
    let (a, b) = (cell(), cell());
    fill(a.0, 1, first);
    ok("cuCtxRecordEvent", &[context, done]);
    fetch(a.1, a.0, second);
    ok("cuEventSynchronize", &[done]);
    fetch(a.1, a.0, second);
    fill(b.0, 1, first);
    ok("cuEventRecord", &[done, first]);
    ok("cuCtxWaitEvent", &[context, done]);
    fetch(b.1, b.0, second);
    ok("cuStreamSynchronize", &[second]);
    println!("{} {}", read(a.1), read(b.1));
}

fn destroyed_stream() {
    start();
    let (gone, (word, result)) = (stream(0), cell());
    fill(word, 1, gone);
    fetch(result, word, gone);
    ok("cuStreamDestroy_v2", &[gone]);
    assert_eq!(cu("cuStreamSynchronize", &[gone]), 400);
    ok("cuStreamSynchronize", &[0]);
    println!("{}", read(result));
}

fn two_threads() {
    const EACH: u32 = 400;
    start();
    let context = make("cuCtxGetCurrent", &[]);
    let (shared, word) = (stream(0), device(4));
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                ok("cuCtxSetCurrent", &[context]);
                barrier.wait();
                let result = pinned(0);
                let mut copies = 0;
                for step in 0..EACH {
                    fill(word, step, shared);
                    fetch(result, word, shared);
                    copies += 1;
                    if step % 64 == 0 {
                        ok("cuStreamSynchronize", &[shared]);
                    }
                }
                copies
            })
        })
        .collect();
    let copies: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    ok("cuCtxSynchronize", &[]);
    println!("{copies}");
}

fn queue_is_bounded() {
    start();
    let (stream, (word, result)) = (stream(0), cell());
    for step in 0..40_000 {
        fill(word, step, stream);
    }
    fetch(result, word, stream);
    ok("cuStreamSynchronize", &[stream]);
    assert_eq!(read(result), 39_999);
    println!("ok");
}

fn unordered_writes() {
    start();
    let streams: Vec<u64> = (0..6).map(|_| stream(NON_BLOCKING)).collect();
    let (word, result) = cell();
    for (value, stream) in streams.iter().enumerate() {
        fill(word, value as u32 + 1, *stream);
    }
    ok("cuCtxSynchronize", &[]);
    fetch(result, word, 0);
    ok("cuCtxSynchronize", &[]);
    println!("{}", read(result));
}
