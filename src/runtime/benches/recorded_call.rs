//! What a recorded call costs the program: the same driver function called straight and through
//! the hook, in a process under the runtime whose records are read while it runs.
//!
//! The driver is the tests' recording one, whose functions cost a few nanoseconds; the difference
//! between `straight` and `hooked` is what the runtime adds.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use streamsan_wire::{RUN_DIR_VARIABLE, RingOptions, RunDirectory};

#[path = "../tests/injected/fake.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "shared with the tests")]
mod fake;

/// Calls in a sample: their records fit a ring.
const SAMPLE: u32 = 500;

const CHILD: &str = "STREAMSAN_BENCH_CHILD";

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return divan::main();
    }
    let drivers = tempfile::tempdir().expect("a directory for the driver");
    fake::build(drivers.path());
    let options = RingOptions { ring_bytes: 1 << 20, ..RingOptions::default() };
    let mut directory = RunDirectory::create(options).expect("a run directory");
    let mut child = command(drivers.path(), directory.path()).spawn().expect("the bench starts");
    let status = loop {
        let ended = child.try_wait().expect("a child");
        let count = directory.drain(usize::MAX, &mut |_| {}).expect("readable rings");
        directory.release();
        match ended {
            Some(status) if count == 0 => break status,
            _ if count == 0 => std::thread::sleep(std::time::Duration::from_micros(200)),
            _ => {}
        }
    };
    let dropped: u64 = directory.processes().iter().map(|process| process.dropped).sum();
    println!("dropped records: {dropped}");
    std::process::exit(status.code().unwrap_or(1));
}

fn command(drivers: &Path, run: &Path) -> Command {
    let bench = std::env::current_exe().expect("own path");
    let mut command = Command::new(&bench);
    command
        .args(std::env::args_os().skip(1))
        .env(CHILD, "1")
        .env("LD_PRELOAD", bench.with_file_name("libstreamsan_runtime.so"))
        .env("LD_LIBRARY_PATH", drivers)
        .env(RUN_DIR_VARIABLE, run);
    command
}

fn driver() -> usize {
    static DRIVER: OnceLock<usize> = OnceLock::new();
    *DRIVER.get_or_init(|| {
        // SAFETY: a NUL-terminated name of the tests' driver.
        let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!driver.is_null(), "the tests' driver is found");
        driver as usize
    })
}

fn lookup(name: &str) -> *mut c_void {
    let name = CString::new(name).expect("a name without NUL");
    // SAFETY: a valid handle and a NUL-terminated name.
    let found = unsafe { libc::dlsym(driver() as *mut c_void, name.as_ptr()) };
    assert!(!found.is_null());
    found
}

/// The driver's own function.
fn straight(name: &str) -> *mut c_void {
    let name = CString::new(name).expect("a name without NUL");
    // SAFETY: a function of the tests' driver with this signature.
    unsafe {
        let find: extern "C" fn(*const c_char) -> *mut c_void =
            std::mem::transmute(lookup("fake_find"));
        find(name.as_ptr())
    }
}

/// Lets the collector empty the ring before each sample: what is measured is a call, not a reader
/// that competes for the machine.
fn pause() -> impl FnMut() {
    let mut call = 0;
    move || {
        if call % SAMPLE == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        call += 1;
    }
}

type Copy = unsafe extern "C" fn(u64, *const c_void, u64, u64) -> i32;
type Launch = unsafe extern "C" fn(
    u64,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u64,
    *const *const c_void,
    *const c_void,
) -> i32;
type Query = unsafe extern "C" fn(*mut i32) -> i32;

fn copies(bencher: divan::Bencher<'_, '_>, function: *mut c_void) {
    // SAFETY: the function has this signature.
    let copy: Copy = unsafe { std::mem::transmute(function) };
    // SAFETY: the tests' driver reads nothing through the pointers.
    bencher
        .with_inputs(pause())
        .bench_local_values(|()| unsafe { copy(0x1000, std::ptr::null(), 4096, 0x77) });
}

fn launches(bencher: divan::Bencher<'_, '_>, function: *mut c_void) {
    // SAFETY: the function has this signature.
    let launch: Launch = unsafe { std::mem::transmute(function) };
    let words = [1u64, 2, 3];
    let params = words.each_ref().map(|word| std::ptr::from_ref(word).cast::<c_void>());
    // SAFETY: the kernel of handle 0x4003 has three parameters of at most 8 bytes.
    bencher.with_inputs(pause()).bench_local_values(|()| unsafe {
        launch(0x4003, 1, 1, 1, 32, 1, 1, 0, 0x77, params.as_ptr(), std::ptr::null())
    });
}

fn queries(bencher: divan::Bencher<'_, '_>, function: *mut c_void) {
    // SAFETY: the function has this signature.
    let query: Query = unsafe { std::mem::transmute(function) };
    let mut version = 0;
    // SAFETY: a writable result.
    bencher.with_inputs(pause()).bench_local_values(|()| unsafe { query(&mut version) });
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn copy_straight(bencher: divan::Bencher<'_, '_>) {
    copies(bencher, straight("cuMemcpyHtoDAsync_v2"));
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn copy_hooked(bencher: divan::Bencher<'_, '_>) {
    copies(bencher, lookup("cuMemcpyHtoDAsync_v2"));
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn launch_straight(bencher: divan::Bencher<'_, '_>) {
    launches(bencher, straight("cuLaunchKernel"));
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn launch_hooked(bencher: divan::Bencher<'_, '_>) {
    launches(bencher, lookup("cuLaunchKernel"));
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn counted_straight(bencher: divan::Bencher<'_, '_>) {
    queries(bencher, straight("cuDriverGetVersion"));
}

#[divan::bench(sample_size = 500, sample_count = 1000)]
fn counted_hooked(bencher: divan::Bencher<'_, '_>) {
    queries(bencher, lookup("cuDriverGetVersion"));
}
