//! Names of kernels in what the command prints: readable for people, both forms for programs.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const MULTIPLY: &str = "at::native::vectorized_elementwise_kernel<4, AUnaryFunctor<float, float, \
                        float, MulFunctor<float>>, array<char*, 2>>";

/// A race of two kernels with mangled names.
const RACY: &str = "alloc data 4096\nlaunch s1 _Z4fillIfEvPT_i w:data\nlaunch s2 \
                    _ZN4demo3sum17h05af221e174051e9E r:data\n";

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/recorded").join(name)
}

fn run(directory: &Path, arguments: &[&str], code: i32) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
    command.args(arguments).current_dir(directory).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    output
}

fn printed(directory: &Path, arguments: &[&str], code: i32) -> String {
    String::from_utf8(run(directory, arguments, code).stdout).expect("output in UTF-8")
}

fn said(directory: &Path, arguments: &[&str], code: i32) -> String {
    String::from_utf8(run(directory, arguments, code).stderr).expect("messages in UTF-8")
}

fn workplace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("racy.trace"), RACY).expect("written");
    let ordered = RACY.replace("launch s2", "launch s1");
    fs::write(directory.path().join("clean.trace"), ordered).expect("written");
    directory
}

#[test]
fn a_race_of_pytorch_is_told_by_readable_names() {
    let here = workplace();
    let trace = recorded("racy/torch_unordered.db");
    let trace = trace.to_str().expect("a path in UTF-8");
    for arguments in [&["check", trace][..], &["explain", trace, "1"]] {
        let text = printed(here.path(), arguments, if arguments[0] == "check" { 1 } else { 0 });
        // Lines end in names as in other words.
        let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(MULTIPLY) && !text.contains("_ZN"), "{text}");
    }
    // The id is that of the mangled names.
    assert!(printed(here.path(), &["check", trace], 1).contains("id f11n7qj4"));
    let document = printed(here.path(), &["export", trace, "--format", "json"], 0);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let access = &document["findings"][0]["accesses"][0];
    assert!(access["kernel"].as_str().is_some_and(|name| name.starts_with("_ZN2at6native")));
    let whole = access["kernel_demangled"].as_str().expect("a readable name");
    assert!(whole.starts_with("void at::native::vectorized_elementwise_kernel<4, at::native::"));
}

#[test]
fn statistics_have_readable_names() {
    let here = workplace();
    for name in ["pytorch.db", "torch_graph.db", "jax.db", "nvcc_static_cudart.db"] {
        let trace = recorded(name);
        let trace = trace.to_str().expect("a path in UTF-8");
        let text = printed(here.path(), &["stats", trace], 0);
        assert!(text.contains("\nlaunches by kernel\n") && !text.contains("_Z"), "{text}");
        let document = printed(here.path(), &["stats", "--json", trace], 0);
        let document: Value = serde_json::from_str(&document).expect("JSON");
        let kernels = [&document["launches_by_kernel"], &document["kernel_modes"]["kernels"]];
        let kernels = kernels.into_iter().flat_map(|list| list.as_array().expect("a list"));
        let mut mangled = 0;
        for kernel in kernels {
            let is_mangled = kernel["kernel"].as_str().is_some_and(|name| name.starts_with("_Z"));
            assert_eq!(kernel["kernel_demangled"].is_string(), is_mangled, "{kernel}");
            mangled += usize::from(is_mangled);
        }
        assert!(mangled > 0, "{name}");
    }
}

#[test]
fn what_came_and_went_is_told_by_both_accesses() {
    let here = workplace();
    let came = printed(here.path(), &["diff", "clean.trace", "racy.trace"], 1);
    assert!(came.contains("\n    (1) write by fill<float> on stream"), "{came}");
    assert!(came.contains("\n    (2) read by demo::sum on stream"), "{came}");
    let gone = printed(here.path(), &["diff", "racy.trace", "clean.trace"], 0);
    assert!(gone.starts_with("- error[") && gone.contains("(1) write by fill<float>"), "{gone}");
}

#[test]
fn a_suppression_takes_the_name_that_was_read() {
    let here = workplace();
    for name in ["fill<float>", "_Z4fillIfEvPT_i", "void fill<float>(float*, int)"] {
        let line = format!("race[*]: kernel:\"{name}\" & kernel:demo::sum reason=x\n");
        fs::write(here.path().join("accepted"), line).expect("written");
        printed(here.path(), &["check", "racy.trace", "--suppressions", "accepted"], 0);
    }
    let line = "race[*]: kernel:\"fill<double>\" & * reason=x\n";
    fs::write(here.path().join("accepted"), line).expect("written");
    printed(here.path(), &["check", "racy.trace", "--suppressions", "accepted"], 1);
}

#[test]
fn nothing_to_explain_or_to_suppress_is_said() {
    let here = workplace();
    for command in ["explain", "suppress"] {
        let told = said(here.path(), &[command, "clean.trace"], 0);
        assert_eq!(told, "streamsan: clean.trace has no findings\n");
        assert_eq!(said(here.path(), &[command, "racy.trace"], 0), "");
    }
}
