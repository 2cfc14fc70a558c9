//! Races that were recorded on a real GPU: both calls and the allocation are told by their lines.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `check` or `explain` says of `traces/recorded/racy/NAME.db`, which has one race; without the
/// ends of lines.
fn told(name: &str, subcommand: &str, code: i32) -> String {
    let trace = root().join(format!("traces/recorded/racy/{name}.db"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
    command.arg(subcommand).arg(&trace).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().expect("the command runs");
    let text = String::from_utf8(output.stdout).expect("output in UTF-8");
    assert_eq!(output.status.code(), Some(code), "{text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn report(name: &str) -> String {
    told(name, "check", 1)
}

/// That the report says `place` behind `words`, and that the line is still what it was.
#[track_caller]
fn tells(report: &str, words: &str, source: &str, line: usize, function: &str, code: &str) {
    let place = format!("{words} /opt/s/tests/gpu/programs/{source}:{line} in {function} ");
    assert!(report.contains(&place), "{place}{report}");
    let file = root().join("tests/gpu/programs").join(source);
    let text = std::fs::read_to_string(file).expect("the program");
    assert_eq!(text.lines().nth(line - 1).map(str::trim), Some(code), "{source} was changed");
}

#[test]
fn lines_of_a_python_script() {
    let report = report("torch_unordered");
    let source = "torch_unordered.py";
    tells(&report, "at", source, 12, "produce", "data.mul_(2)  # the write");
    tells(&report, "at", source, 16, "consume", "return data + 1  # the read");
    tells(&told("torch_unordered", "explain", 0), "by", source, 19, "<module>", "produce()");
    let made = "data = torch.ones(1 << 20, device=\"cuda\")";
    tells(&report, "cudaMalloc at", source, 5, "<module>", made);
    // The fix is PyTorch's, and the stream without a name is told by its line.
    let fix = format!("{source}:16: torch.cuda.default_stream().wait_stream(stream_of_1) ");
    assert!(report.contains(&fix), "{report}");
    let stream = format!(", the 1st created at /opt/s/tests/gpu/programs/{source}:6 ");
    assert!(report.contains(&stream), "{report}");
}

/// `Produce` and `Consume` end with their calls, so they have left no frames: the lines are those
/// where they are called.
#[test]
fn lines_of_a_program_in_cuda() {
    let report = report("unordered_copy");
    let source = "unordered_copy.cu";
    tells(&report, "at", source, 27, "main", "Produce(data, count, first);");
    tells(&report, "at", source, 28, "main", "Consume(copy, data, count, second);");
    tells(
        &report,
        "cudaMalloc at",
        source,
        22,
        "main",
        "cudaMalloc(&data, count * sizeof(float));",
    );
    // The program called the runtime, which is linked into it.
    assert!(report.contains("(2) later READ cudaMemcpyAsync"), "{report}");
    for fix in
        ["27: cudaEventRecord(event, stream_of_1)", "28: cudaStreamWaitEvent(stream_of_2, event)"]
    {
        assert!(report.contains(&format!("{source}:{fix}")), "{report}");
    }
}
