//! C programs that are linked with the library, as compilers link them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::{check, simulated};

/// Program and what it prints.
const TABLE: &[(&str, &str)] = &[
    ("linked", "0 12080"),
    ("accesses", "op 11: read 8+4 write 0+4\nop 12: read 0+8 write 0+4 atomic\nop 13: none"),
];

pub(crate) fn trials(layout: &Path) -> Vec<Trial> {
    TABLE
        .iter()
        .map(|(program, expected)| {
            let layout = layout.to_owned();
            Trial::test(format!("C program {program}"), move || run(&layout, program, expected))
        })
        .collect()
}

fn run(layout: &Path, program: &str, expected: &str) -> Result<(), Failed> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/c");
    let binary: PathBuf = layout.join(program);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    // Its own functions are exported, so that the driver finds them as it would find a runtime's.
    let compiled = Command::new(compiler)
        .args(["-rdynamic", "-Wall", "-Werror", "-o"])
        .arg(&binary)
        .arg(source.join(format!("{program}.c")))
        .arg(layout.join("libcuda.so"))
        .output()?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned().into());
    }
    let ptx = fs::read_to_string(source.join("accesses.ptx"))?;
    let output = simulated(&binary, layout, "lazy").arg(ptx).output()?;
    check(&output, expected)
}
