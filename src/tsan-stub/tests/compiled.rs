//! Code compiled with `-fsanitize=thread` finds all its functions in the stub, and does the same as
//! without.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = include_str!("c/operations.c");

fn compile(folder: &Path, instrumented: bool) -> String {
    let (source, object) = (folder.join("operations.c"), folder.join("operations.o"));
    std::fs::write(&source, PROGRAM).expect("there is room for a program");
    let program = folder.join("operations");
    let mut compiler = Command::new("cc");
    // On other processors operations of 16 bytes need no option.
    let wide = cfg!(target_arch = "x86_64").then_some("-mcx16");
    compiler.args(["-std=gnu11", "-O1", "-c", "-o"]).arg(&object).arg(&source).args(wide);
    if instrumented {
        compiler.arg("-fsanitize=thread");
    }
    assert!(compiler.status().expect("a C compiler is needed").success());
    let mut linker = Command::new("cc");
    linker.args(["-pthread", "-o"]).arg(&program).arg(&object);
    if instrumented {
        let test = std::env::current_exe().expect("own path");
        linker.arg(test.with_file_name("libstreamsan_tsan.so"));
    } else {
        linker.arg("-latomic");
    }
    assert!(linker.status().expect("a C compiler is needed").success());
    let ended = Command::new(&program).output().expect("the program starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("its output is text")
}

#[test]
fn instrumented_programs_do_what_plain_ones_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = compile(folder.path(), false);
    assert_eq!(compile(folder.path(), true), plain);
    assert!(plain.contains("counted 400000"), "{plain}");
}
