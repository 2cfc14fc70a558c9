//! Running a disassembler: its arguments, its failures, and what it refuses. A script stands for
//! it where the machine may have none; the real one is run by the tests of machine code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use streamsan_kernels::Directory;
use streamsan_kernels::disassembler::{Disassembler, DisassemblyError};
use streamsan_kernels::toolkit::{Origin, Tool};

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn scratch(&self) -> PathBuf {
        self.0.path().join("cache/scratch")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.0.path().join("log")).unwrap_or_default()
    }

    /// Each script begins by writing its arguments but the last, the file, into a log.
    fn disassembler(&self, script: &str, timeout: Duration) -> Disassembler {
        let path = self.0.path().join("nvdisasm");
        let log = self.0.path().join("log");
        let script = format!("#!/bin/sh\necho $1 $2 $3 $4 >> '{}'\n{script}\n", log.display());
        // By another process: a file that is written here is open in whatever other tests start at
        // that moment, and cannot be executed as long as it is (ETXTBSY).
        let text = self.0.path().join("text");
        fs::write(&text, script).expect("written");
        let installed = Command::new("install").args(["-m", "755"]).args([&text, &path]).status();
        assert!(installed.expect("it starts").success());
        let tool = Tool { path, origin: Origin::Variable };
        let scratch = Directory::open(&self.0.path().join("cache"), "scratch").expect("made");
        Disassembler::new(tool, scratch, timeout)
    }

    fn run(&self, script: &str, code: &[u8]) -> Result<Vec<(usize, String)>, DisassemblyError> {
        let printed = self.disassembler(script, Duration::from_secs(60)).print("SM90a", code)?;
        let left = fs::read_dir(self.scratch()).expect("there").count();
        assert_eq!(left, 0, "nothing stays");
        Ok(printed.instructions().map(|(at, text)| (at, text.to_owned())).collect())
    }
}

#[test]
fn instructions_are_told_by_their_number() {
    let bench = Bench::new();
    let script = "printf '\\t.headerflags\\n /*0000*/  NOP ;\\n /*0020*/ @P0 BRA 0x30;\\n/* no */'";
    let instructions = bench.run(script, &[0; 48]).expect("runs");
    assert_eq!(instructions, [(0, "NOP ;".to_owned()), (2, "@P0 BRA 0x30;".to_owned())]);
    assert_eq!(bench.log(), "--binary SM90a --print-raw --no-dataflow\n");
    let mode = fs::metadata(bench.scratch()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn it_is_in_a_process_group_of_its_own() {
    let bench = Bench::new();
    // Process, name, state, parent, group: the name has no space here.
    let script = "set -- $(cat /proc/$$/stat); printf ' /*0000*/  %s ;\\n' \"$(($5 - $$))\"";
    let instructions = bench.run(script, &[0; 16]).expect("runs");
    assert_eq!(instructions, [(0, "0 ;".to_owned())]);
}

#[test]
fn what_is_refused_is_left_out() {
    // The second instruction is refused as long as it is not a NOP, and then the third.
    let script = "
        second=$(od -An -tx1 -j16 -N2 \"$5\" | tr -d ' '); third=$(od -An -tx1 -j32 -N2 \"$5\" | tr -d ' ')
        if [ $second = 0000 ]; then echo 'error : Bad at address 0x00000010' >&2; exit 1; fi
        if [ $third = 0000 ]; then echo 'error : Bad at address 0x20: why' >&2; exit 1; fi
        printf '/*0000*/ A ;\\n/*0010*/ NOP ;\\n/*0020*/ NOP ;\\n/*0030*/ B ;\\n'";
    let bench = Bench::new();
    let instructions = bench.run(script, &[0; 64]).expect("runs");
    assert_eq!(instructions, [(0, "A ;".to_owned()), (3, "B ;".to_owned())]);
    assert_eq!(bench.log().lines().count(), 3);
}

#[test]
fn failures_are_told() {
    for (script, expected) in [
        ("echo 'nvdisasm fatal : no' >&2; echo more >&2; exit 1", "nvdisasm fatal : no"),
        ("exit 0", "it says nothing"),
        ("echo \"Value 'SM90a' is not defined for option 'binary'\" >&2; exit 1", "know SM90a"),
        // It finds fault with the same place however often that is left out.
        ("echo 'Bad at address 0x10' >&2; exit 1", "Bad at address 0x10"),
        ("n=$(wc -l < log); echo \"Bad at address 0x${n}0\" >&2; exit 1", "refuses more than"),
    ] {
        let bench = Bench::new();
        let script = format!("cd '{}'; {script}", bench.0.path().display());
        let text = bench.run(&script, &[0; 256]).expect_err("fails").to_string();
        assert!(text.contains(expected) && !text.contains("more\n"), "{script}: {text}");
    }
}

#[test]
fn programs_that_do_not_end_are_stopped() {
    let bench = Bench::new();
    let impatient = bench.disassembler("exec sleep 1000", Duration::from_millis(50));
    let error = impatient.print("SM90a", &[0; 16]);
    assert!(matches!(error, Err(DisassemblyError::TimedOut(_))), "{error:?}");
    assert_eq!(fs::read_dir(bench.scratch()).expect("there").count(), 0);
}
