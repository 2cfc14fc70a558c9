//! The cost of a recorded call to the program: the same driver function called straight and through
//! the hook, in a process under the runtime whose records are read while it runs.
//!
//! Likewise what a load of instrumented code costs: through the stub library, in memory that nobody
//! knows, and in memory that the driver knows, where it is recorded.
//!
//! The driver is the tests' recording one, whose functions cost a few nanoseconds; the difference
//! between `straight` and `hooked` is what the runtime adds.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use streamsan_testing::fake_driver;
use streamsan_wire::{RUN_DIR_VARIABLE, RingOptions, RunDirectory};

/// Calls in a sample: their records fit a ring.
const SAMPLE: u32 = 500;

const CHILD: &str = "STREAMSAN_BENCH_CHILD";

/// Instrumented code is measured in a process of its own: where it runs, calls cost more.
const PARTS: [(&str, &[&str]); 2] =
    [("calls", &["--skip", "instrumented"]), ("instrumented", &["instrumented"])];

fn main() {
    if let Some(part) = std::env::var_os(CHILD) {
        if part == PARTS[1].0 {
            // Before the first call, as in programs: memory that is known already is not looked
            // for.
            instrumented_load();
        }
        return divan::main();
    }
    let drivers = tempfile::tempdir().expect("a directory for the driver");
    fake_driver::build(drivers.path());
    let codes = PARTS.map(|(part, filter)| run(drivers.path(), part, filter));
    std::process::exit(codes.into_iter().max().unwrap_or(1));
}

fn run(drivers: &Path, part: &str, filter: &[&str]) -> i32 {
    let mut directory = RunDirectory::create(RingOptions::default()).expect("a run directory");
    let mut command = command(drivers, directory.path());
    let mut child = command.args(filter).env(CHILD, part).spawn().expect("the bench starts");
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
    status.code().unwrap_or(1)
}

fn command(drivers: &Path, run: &Path) -> Command {
    let bench = std::env::current_exe().expect("own path");
    let mut command = Command::new(&bench);
    command
        .args(std::env::args_os().skip(1))
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

/// Copies of so little that their source would be recorded, were a variable where they go.
fn short_copies(bencher: divan::Bencher<'_, '_>, function: *mut c_void) {
    // SAFETY: the function has this signature.
    let copy: Copy = unsafe { std::mem::transmute(function) };
    let source = [1u64; 8];
    // SAFETY: the source is 64 bytes long.
    bencher
        .with_inputs(pause())
        .bench_local_values(|()| unsafe { copy(0x1000, source.as_ptr().cast(), 64, 0x77) });
}

/// Copies with work on 256 KiB of other memory before each, as a driver does: the first caches hold
/// nothing of the hook's, and the reader takes the ring's lines meanwhile. The clock's own cost, some
/// 20 ns, is in `straight` too.
fn copies_after_work(bencher: divan::Bencher<'_, '_>, function: *mut c_void) {
    // SAFETY: the function has this signature.
    let copy: Copy = unsafe { std::mem::transmute(function) };
    let mut other = vec![1u8; 256 << 10];
    // SAFETY: the tests' driver reads nothing through the pointers.
    bencher
        .with_inputs(|| other.iter_mut().step_by(64).for_each(|byte| *byte ^= 1))
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
fn copy_64_bytes_hooked(bencher: divan::Bencher<'_, '_>) {
    short_copies(bencher, lookup("cuMemcpyHtoDAsync_v2"));
}

#[divan::bench(sample_size = 1, sample_count = 50_000)]
fn copy_after_work_straight(bencher: divan::Bencher<'_, '_>) {
    copies_after_work(bencher, straight("cuMemcpyHtoDAsync_v2"));
}

#[divan::bench(sample_size = 1, sample_count = 50_000)]
fn copy_after_work_hooked(bencher: divan::Bencher<'_, '_>) {
    copies_after_work(bencher, lookup("cuMemcpyHtoDAsync_v2"));
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

/// Loads in a round of the benchmarks of instrumented code.
const LOADS: usize = 1000;

type Load = unsafe extern "C" fn(usize);

/// The stub's function for a load of 8 bytes, once the runtime knows the stub.
fn instrumented_load() -> Load {
    static LOAD: OnceLock<Load> = OnceLock::new();
    *LOAD.get_or_init(|| {
        let bench = std::env::current_exe().expect("own path");
        let path = bench.with_file_name("libstreamsan_tsan.so");
        let path = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
        // SAFETY: a NUL-terminated path of the stub, whose functions have these signatures.
        unsafe {
            let stub = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            assert!(!stub.is_null(), "the stub is found");
            let init: extern "C" fn() =
                std::mem::transmute(libc::dlsym(stub, c"__tsan_init".as_ptr()));
            init();
            std::mem::transmute(libc::dlsym(stub, c"__tsan_read8".as_ptr()))
        }
    })
}

fn loads(bencher: divan::Bencher<'_, '_>, known: bool) {
    let load = instrumented_load();
    // Pages of their own.
    let memory = vec![0u64; 3 * LOADS];
    if known {
        type Register = unsafe extern "C" fn(*const c_void, usize, u32) -> i32;
        // SAFETY: the function of this name has this signature; the tests' driver reads nothing.
        unsafe {
            let register: Register = std::mem::transmute(lookup("cuMemHostRegister_v2"));
            register(memory.as_ptr().cast(), size_of_val(&memory[..]), 0);
        }
    }
    let start = memory.as_ptr() as usize;
    bencher.counter(divan::counter::ItemsCount::new(LOADS)).bench_local(|| {
        for index in 0..LOADS {
            // SAFETY: the stub looks at the address only.
            unsafe { load(start + 8 * index) };
        }
    });
}

#[divan::bench(sample_count = 1000)]
fn instrumented_1000_loads_elsewhere(bencher: divan::Bencher<'_, '_>) {
    loads(bencher, false);
}

#[divan::bench(sample_count = 1000)]
fn instrumented_1000_loads_known(bencher: divan::Bencher<'_, '_>) {
    loads(bencher, true);
}
