//! The corpus of kernels in `tests/access`: PTX, and machine code by hand in `machine`, each with
//! what is concluded from it in the `.expected` file beside it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use streamsan_kernels::access::KernelAccess;
use streamsan_model::Trigger;
use streamsan_testing::golden;

/// The files of a folder of this package that end so.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|other| other == extension))
        .collect();
    files.sort();
    files
}

/// Compares what is concluded from the text of each file with what is kept beside it.
pub(crate) fn check(files: &[PathBuf], concluded: impl Fn(&str) -> Vec<KernelAccess>) {
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(path).expect("a file of the corpus");
        let found: String = concluded(&text).iter().map(rendered).collect();
        wrong.extend(golden::compare(&path.with_extension("expected"), &found).err());
    }
    assert!(wrong.is_empty(), "other conclusions than expected:\n{}", wrong.join("\n"));
}

fn rendered(kernel: &KernelAccess) -> String {
    let mut text = format!("{}\n", kernel.name);
    for word in &kernel.pointers {
        let table = if word.table { ", table" } else { "" };
        let (at, mode) = (word.block_offset, word.mode.description());
        let _ = writeln!(text, "  param {} at {at}: {mode}{table}", word.param);
    }
    for global in &kernel.globals {
        let _ = writeln!(text, "  {}: {}", global.name, global.mode.description());
    }
    let mut accesses: Vec<String> =
        kernel.accesses.iter().map(|access| kernel.describe(access)).collect();
    accesses.sort();
    for access in accesses {
        let _ = writeln!(text, "    {access}");
    }
    if kernel.waits_on_primary {
        text.push_str("  waits on the primary\n");
    }
    if kernel.trigger != Trigger::AtEnd {
        let _ = writeln!(text, "  triggers: {}", kernel.trigger.description());
    }
    for reason in &kernel.unknown {
        let _ = writeln!(text, "  anything: {reason}");
    }
    text
}
