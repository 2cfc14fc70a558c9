//! The cost of the Python frames of a stack: following the chain of frames on the hot path, and
//! their description, which a stack takes the first time only.
//!
//! Once on the main thread and once on another, neither of which holds the global interpreter lock.
//!
//! Each libpython found (pyenv's, and those named in `STREAMSAN_BENCH_LIBPYTHON`, apart by `:`)
//! runs in a process of its own, where 20 Python frames call the benchmark.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

// Modules of the runtime by their files: its crate would bring the hooks into this program.
#[path = "../src/elf.rs"]
#[expect(dead_code, unused_imports, reason = "the runtime's module, used in part")]
mod elf;
#[path = "../src/stacks/python/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the runtime's module, used in part")]
mod python;

use python::PythonFrame;

const CHILD: &str = "STREAMSAN_BENCH_CHILD";
const THREAD: &str = "STREAMSAN_BENCH_THREAD";

/// Frames when the benchmarks run.
const FRAMES: usize = 20;

fn main() {
    match std::env::var(CHILD) {
        Ok(library) if library.is_empty() => divan::main(),
        Ok(library) => embed(&library),
        Err(_) => {
            run("no interpreter", Path::new(""), false);
            for library in libraries() {
                run(&format!("{}, main thread", library.display()), &library, false);
                run(&format!("{}, another thread", library.display()), &library, true);
            }
        }
    }
}

fn run(title: &str, library: &Path, in_thread: bool) {
    println!("\n{title}");
    let bench = std::env::current_exe().expect("own path");
    let mut command = Command::new(bench);
    command.args(std::env::args_os().skip(1)).env(CHILD, library);
    if in_thread {
        command.env(THREAD, "1");
    }
    if let Some(prefix) = library.parent().and_then(Path::parent) {
        command.env("PYTHONHOME", prefix);
    }
    let status = command.status().expect("the bench starts");
    assert!(status.success(), "{title}: {status}");
}

fn libraries() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::env::var_os("STREAMSAN_BENCH_LIBPYTHON")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    let home = std::env::var_os("HOME").unwrap_or_default();
    for minor in 9..=14 {
        let versions = Path::new(&home).join(".pyenv/versions");
        for version in versions.read_dir().into_iter().flatten().flatten() {
            let library = version.path().join(format!("lib/libpython3.{minor}.so.1.0"));
            found.extend(library.exists().then_some(library));
        }
    }
    found
}

/// Runs the benchmarks below 20 Python frames of this interpreter.
fn embed(library: &str) {
    // Gives up the lock meanwhile, as most of what calls the driver.
    extern "C" fn benchmarks(save: usize, restore: usize) {
        // SAFETY: the interpreter's functions for this, called on a thread that holds the lock.
        unsafe {
            let save: unsafe extern "C" fn() -> *mut c_void = core::mem::transmute(save);
            let restore: unsafe extern "C" fn(*mut c_void) = core::mem::transmute(restore);
            let state = save();
            let mut frames = [PythonFrame::default(); 64];
            let walk = python::walk(&mut frames);
            assert_eq!((walk.count, python::refusal()), (FRAMES, None), "the frames are seen");
            divan::main();
            restore(state);
        }
    }
    let name = CString::new(library).expect("no NUL");
    // SAFETY: the interpreter's functions of these names have these signatures.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!handle.is_null(), "the library loads");
        let find = |name: &core::ffi::CStr| {
            let found: *mut c_void = libc::dlsym(handle, name.as_ptr());
            assert!(!found.is_null());
            found
        };
        let start: unsafe extern "C" fn(c_int) = core::mem::transmute(find(c"Py_InitializeEx"));
        let run: unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int =
            core::mem::transmute(find(c"PyRun_SimpleStringFlags"));
        let (save, restore) = (find(c"PyEval_SaveThread"), find(c"PyEval_RestoreThread"));
        // Frames of 20 functions; the first of them is called by C.
        let mut program = format!(
            "import ctypes, _thread\n\
             call = ctypes.PYFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)({})\n\
             f0 = lambda: call({}, {})\n",
            benchmarks as *const () as usize, save as usize, restore as usize
        );
        for depth in 1..FRAMES - 1 {
            program.push_str(&format!("def f{depth}(): f{}()\n", depth - 1));
        }
        program.push_str(&match std::env::var_os(THREAD) {
            None => format!("f{}()\n", FRAMES - 2),
            Some(_) => format!(
                "done = _thread.allocate_lock()\ndone.acquire()\n\
                 def last():\n    f{}()\n    done.release()\n\
                 _thread.start_new_thread(last, ())\ndone.acquire()\n",
                FRAMES - 2
            ),
        });
        let program = CString::new(program).expect("no NUL");
        start(0);
        assert_eq!(run(program.as_ptr(), std::ptr::null_mut()), 0, "the program runs");
    }
}

#[divan::bench(args = [1, 5, 20], sample_size = 1000)]
fn walk(bencher: divan::Bencher<'_, '_>, limit: usize) {
    let mut frames = [PythonFrame::default(); FRAMES];
    bencher.bench_local(|| python::walk(divan::black_box(&mut frames[..limit])));
}

/// After other work on so much memory, in MiB, that the processor's caches (some of them) hold
/// nothing of the frames.
#[divan::bench(args = [4, 64], sample_size = 1, sample_count = 200)]
fn walk_20_after_work(bencher: divan::Bencher<'_, '_>, memory: usize) {
    let mut frames = [PythonFrame::default(); FRAMES];
    let mut other = vec![1u8; memory << 20];
    bencher
        .with_inputs(|| other.iter_mut().step_by(64).for_each(|byte| *byte ^= 1))
        .bench_local_values(|()| python::walk(divan::black_box(&mut frames)));
}

#[divan::bench(sample_size = 100)]
fn describe_20(bencher: divan::Bencher<'_, '_>) {
    let mut frames = [PythonFrame::default(); FRAMES];
    let count = python::walk(&mut frames).count;
    bencher.bench_local(|| {
        for frame in &frames[..count] {
            python::describe(frame, &mut |frame| {
                divan::black_box(frame);
            });
        }
    });
}
