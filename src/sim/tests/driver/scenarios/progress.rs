//! Host functions, and programs that wait without synchronising.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::cell;
use crate::raw::*;

const NOT_READY: u32 = 600;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "host_functions" => host_functions,
        "host_function_may_wait_for_the_submitting_thread" => host_function_waits,
        "spinning_on_pinned_memory_ends" => || spinning(0),
        "spinning_behind_a_long_queue_ends" => || spinning(5_000),
        "sleeping_until_a_host_function_wakes_ends" => sleeping,
        "polling_ends" => polling,
        "elapsed_time_is_of_the_device" => elapsed,
        _ => return None,
    })
}

static ORDER: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);
static STATUS: AtomicU32 = AtomicU32::new(u32::MAX);
static THREAD: AtomicU64 = AtomicU64::new(0);

fn this_thread() -> u64 {
    // SAFETY: takes nothing.
    unsafe { libc::pthread_self() }
}

extern "C" fn note(data: *mut c_void) {
    // A digit for each call, in the order of the calls.
    ORDER.store(ORDER.load(Ordering::SeqCst) * 10 + data as u64, Ordering::SeqCst);
    REFUSED.store(cu("cuCtxSynchronize", &[]), Ordering::SeqCst);
    THREAD.store(this_thread(), Ordering::SeqCst);
}

extern "C" fn note_status(_stream: u64, status: u32, data: *mut c_void) {
    STATUS.store(status, Ordering::SeqCst);
    note(data);
}

fn host_functions() {
    start();
    let (stream, other, done) = (stream(0), stream(NON_BLOCKING), event());
    ok("cuLaunchHostFunc", &[stream, note as *const () as u64, 1]);
    ok("cuStreamAddCallback", &[stream, note_status as *const () as u64, 2, 0]);
    ok("cuEventRecord", &[done, stream]);
    ok("cuStreamWaitEvent", &[other, done, 0]);
    ok("cuLaunchHostFunc", &[other, note as *const () as u64, 3]);
    ok("cuStreamSynchronize", &[other]);
    let order: Vec<String> =
        ORDER.load(Ordering::SeqCst).to_string().chars().map(String::from).collect();
    let thread = if THREAD.load(Ordering::SeqCst) == this_thread() { "same" } else { "other" };
    let (refused, status) = (REFUSED.load(Ordering::SeqCst), STATUS.load(Ordering::SeqCst));
    println!("order {} refused {refused} status {status} thread {thread}", order.join(" "));
}

static RELEASED: AtomicU32 = AtomicU32::new(0);

extern "C" fn wait_for_release(_data: *mut c_void) {
    while RELEASED.load(Ordering::SeqCst) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

fn host_function_waits() {
    start();
    let (stream, (word, result)) = (stream(0), cell());
    ok("cuLaunchHostFunc", &[stream, wait_for_release as *const () as u64, 0]);
    fill(word, 1, stream);
    fetch(result, word, stream);
    assert_eq!(cu("cuStreamQuery", &[stream]), NOT_READY);
    assert_eq!(read(result), 0, "the stream is held by its function");
    RELEASED.store(1, Ordering::SeqCst);
    ok("cuStreamSynchronize", &[stream]);
    println!("{}", read(result));
}

fn spinning(before: u32) {
    start();
    let (stream, (word, result)) = (stream(0), cell());
    for _ in 0..before {
        fill(word, 0, stream);
    }
    fill(word, 1, stream);
    fetch(result, word, stream);
    while read(result) == 0 {
        std::hint::spin_loop();
    }
    println!("{}", read(result));
}

extern "C" fn wake(data: *mut c_void) {
    // SAFETY: the sender outlives the stream's work, which the scenario waits for.
    let sender = unsafe { &*data.cast::<mpsc::Sender<u32>>() };
    sender.send(1).unwrap();
}

fn sleeping() {
    start();
    let (sender, receiver) = mpsc::channel::<u32>();
    let stream = stream(0);
    let data = &raw const sender as u64;
    ok("cuLaunchHostFunc", &[stream, wake as *const () as u64, data]);
    println!("{}", receiver.recv().unwrap());
    ok("cuStreamSynchronize", &[stream]);
}

fn polling() {
    start();
    let (stream, (word, result), done) = (stream(0), cell(), event());
    fill(word, 1, stream);
    fetch(result, word, stream);
    ok("cuEventRecord", &[done, stream]);
    let mut polls = 0;
    while cu("cuEventQuery", &[done]) == NOT_READY {
        polls += 1;
    }
    assert_eq!(read(result), 1);
    ok("cuStreamQuery", &[stream]);
    let policy = std::env::var("STREAMSAN_SIM_POLICY").unwrap();
    println!(
        "{}",
        match polls {
            _ if policy.starts_with("random") => "in-the-end",
            0 => "at-once",
            _ => "later",
        }
    );
}

fn elapsed() {
    start();
    let (stream, word, begin, end) = (stream(0), device(1 << 20), event(), event());
    ok("cuEventRecord", &[begin, stream]);
    ok("cuMemsetD8Async", &[word, 1, 1 << 20, stream]);
    ok("cuEventRecord", &[end, stream]);
    ok("cuEventSynchronize", &[end]);
    let mut time = 0f32;
    ok("cuEventElapsedTime", &[&raw mut time as u64, begin, end]);
    println!("{}", if time > 0.0 && time < 1000.0 { "positive" } else { "wrong" });
}
