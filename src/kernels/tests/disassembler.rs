//! Running a disassembler: its arguments, its failures, and what is kept. A script stands for it
//! where the machine may have none; the real one is run by the tests of compiled images.

#[path = "image/builder.rs"]
#[expect(dead_code, reason = "the other tests of images use the rest")]
mod builder;

use builder::{Cubin, saxpy_info};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use streamsan_kernels::disassembler::{Disassembler, DisassemblyError};
use streamsan_kernels::toolkit::{Origin, Tool};

struct Bench {
    folder: tempfile::TempDir,
    cubin: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let kernels = vec![("first", saxpy_info()), ("second", saxpy_info())];
        let functions = vec!["helper"];
        let cubin = Cubin { functions, ..Cubin::new(90, kernels) }.build();
        Self { folder: tempfile::tempdir().expect("a temporary directory"), cubin }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache/sass")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Each script begins by writing its arguments but the last, the file, into a log.
    fn disassembler(&self, script: &str) -> Disassembler {
        let path = self.folder.path().join("nvdisasm");
        let log = self.folder.path().join("log");
        let script = format!("#!/bin/sh\necho $1 $2 $3 >> '{}'\n{script}\n", log.display());
        // A new file each time: a program that runs cannot be written to.
        let _ = fs::remove_file(&path);
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        let tool = Tool { path, origin: Origin::Variable };
        Disassembler::new(tool, self.cache(), Duration::from_secs(60))
    }

    fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).expect("there");
        entries.map(|entry| entry.expect("readable").path()).collect()
    }
}

#[test]
fn kernel_and_functions_are_asked_for_once() {
    let bench = Bench::new();
    let disassembler = bench.disassembler("cmp \"$4\" \"$4\" && echo listing of $3");
    for _ in 0..2 {
        let listing = disassembler.listing(&bench.cubin, "first").expect("runs");
        assert_eq!(listing, "listing of 2,1\n");
    }
    let listing = disassembler.listing(&bench.cubin, "second").expect("runs");
    assert_eq!(listing, "listing of 3,1\n");
    let asked = "--print-code --cuda-function-index";
    assert_eq!(bench.log(), format!("{asked} 2,1\n{asked} 3,1\n"));
    assert_eq!(bench.kept().len(), 2, "only listings stay: {:?}", bench.kept());
    let mode = fs::metadata(bench.cache()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn another_program_or_cubin_is_asked_again() {
    let mut bench = Bench::new();
    let listing = bench.disassembler("echo old").listing(&bench.cubin, "first").expect("runs");
    assert_eq!(listing, "old\n");
    let newer = bench.disassembler("echo newer");
    assert_eq!(newer.listing(&bench.cubin, "first").expect("runs"), "newer\n");
    bench.cubin.push(0);
    newer.listing(&bench.cubin, "first").expect("runs");
    assert_eq!(bench.log().lines().count(), 3);
}

#[test]
fn damaged_listings_are_made_again() {
    let bench = Bench::new();
    let disassembler = bench.disassembler("echo listing");
    disassembler.listing(&bench.cubin, "first").expect("runs");
    let [kept] = bench.kept().try_into().expect("one file");
    for damage in [&b""[..], b"12345678", &[0xff; 40], b"\xff\xff\xff\x07\0\0\0\0abc"] {
        fs::write(&kept, damage).expect("written");
        assert_eq!(disassembler.listing(&bench.cubin, "first").expect("runs"), "listing\n");
    }
    assert_eq!(bench.log().lines().count(), 5);
}

#[test]
fn failures_are_told_and_not_kept() {
    let bench = Bench::new();
    let failing = bench.disassembler("echo 'nvdisasm fatal : no' >&2; echo more >&2; exit 1");
    let error = failing.listing(&bench.cubin, "first").expect_err("fails");
    let text = error.to_string();
    assert!(text.contains("nvdisasm fatal : no") && !text.contains("more"), "{text}");
    let silent = bench.disassembler("exit 0").listing(&bench.cubin, "first");
    assert!(matches!(silent, Err(DisassemblyError::Failed { .. })), "{silent:?}");
    let missing = bench.disassembler("").listing(&bench.cubin, "third");
    assert!(matches!(missing, Err(DisassemblyError::NoKernel(_))), "{missing:?}");
    let damaged = bench.disassembler("").listing(b"text", "first");
    assert!(matches!(damaged, Err(DisassemblyError::Image(_))), "{damaged:?}");
    assert!(bench.kept().is_empty(), "{:?}", bench.kept());
}

#[test]
fn programs_that_do_not_end_are_stopped() {
    let bench = Bench::new();
    let path = bench.disassembler("exec sleep 1000");
    drop(path);
    let tool = Tool { path: bench.folder.path().join("nvdisasm"), origin: Origin::Variable };
    let impatient = Disassembler::new(tool, bench.cache(), Duration::from_millis(50));
    let error = impatient.listing(&bench.cubin, "first");
    assert!(matches!(error, Err(DisassemblyError::TimedOut(_))), "{error:?}");
    assert!(bench.kept().is_empty());
}
