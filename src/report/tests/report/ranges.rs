//! NVTX ranges of findings: what stands in the forms, and that nothing else depends on them.

use crate::stacks::{assert_valid, with_report_by};
use std::path::Path;
use streamsan_model::{HostTime, NvtxKind, NvtxRange, OpSeq, ProcessId, ThreadId, Threshold};
use streamsan_report::{Detail, Report, TextOptions};

const RACE: &str = "\
memset s1 A
memset s2 A
";

fn ranges(names: &[&str]) -> Vec<NvtxRange> {
    let range = |(at, name): (u64, &&str)| NvtxRange {
        begin: OpSeq(at),
        end: None,
        process: ProcessId(0),
        thread: ThreadId(0),
        kind: NvtxKind::Pushed,
        domain: (at == 1).then(|| "optimizer".into()),
        name: (*name).into(),
        time: HostTime { start_ns: 0, end_ns: 0 },
        depth: 0,
    };
    (0..).zip(names).map(range).collect()
}

/// A race whose later access has these ranges around it; the earlier one has those of a loader.
fn look<T>(names: &[&str], look: impl FnOnce(Report<'_>) -> T) -> T {
    with_report_by(RACE, Threshold::Likely, (None, None), |report, operations| {
        let last = operations.last().unwrap().g;
        look(report.in_ranges(|g| if g == last { ranges(names) } else { ranges(&["load"]) }))
    })
}

fn report_schema() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn lines_with_ranges(report: &Report<'_>, columns: usize) -> Vec<String> {
    let options = TextOptions { columns: Some(columns), ..TextOptions::default() };
    let text = report.render_text(&options);
    let lines = text.lines().filter(|line| line.starts_with("        in "));
    lines.map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn each_side_is_told_with_its_ranges() {
    look(&["train", "step 12", "forward"], |report| {
        assert_eq!(lines_with_ranges(&report, 80), ["in load", "in train/step 12/forward"]);
        let group = &report.groups()[0];
        let full = report.render_in_full(group, &TextOptions::default());
        assert!(full.contains("\n        in train/step 12/forward\n"), "{full}");
    });
    // A line of its own breaks like any other.
    look(&["train", "step 12", "a range with a very long name in it", "forward"], |report| {
        let text = report.render_text(&TextOptions { columns: Some(60), ..Default::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\n           it/forward\n"), "{text}");
    });
}

/// A race of two operators of PyTorch, the later one in the backward pass.
const OPERATORS: &str = "\
stack forward /v/torch/lib/libcudart.so.13+96:cudaLaunchKernel /v/torch/lib/libtorch_cpu.so+32:at::_ops::fill__Scalar::call /v/torch/lib/libtorch_cpu.so+64:at::_ops::ones::call py:step@/proj/train.py:3
stack backward /v/torch/lib/libcudart.so.13+96:cudaLaunchKernel /v/torch/lib/libtorch_cpu.so+48:at::_ops::mul_Tensor::call /v/torch/lib/libtorch_cpu.so+80:torch::autograd::generated::MulBackward0::apply
launch s1 fill w:A stack=forward
launch s2 mul r:A stack=backward
";

#[test]
fn an_operator_of_pytorch_stands_behind_the_ranges() {
    with_report_by(OPERATORS, Threshold::Likely, (None, None), |report, operations| {
        assert_eq!(lines_with_ranges(&report, 80), ["in aten::ones", "in MulBackward0"]);
        let first = operations[0].g;
        let in_ranges =
            report.in_ranges(|g| if g == first { ranges(&["train", "step 12"]) } else { vec![] });
        let around = ["in train/step 12, aten::ones", "in MulBackward0"];
        assert_eq!(lines_with_ranges(&in_ranges, 80), around);
        for form in [in_ranges.render_sarif("1"), in_ranges.render_junit()] {
            around.iter().for_each(|around| assert!(form.contains(around), "{form}"));
        }
        let text = in_ranges.render_json();
        assert_valid(&report_schema(), "a report with operators", &text);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let operators =
            [0, 1].map(|side| json["findings"][0]["accesses"][side]["operator"].clone());
        assert_eq!(operators, ["aten::ones", "MulBackward0"]);
    });
}

#[test]
fn only_the_innermost_are_named() {
    let names: Vec<String> = (0..40).map(|depth| format!("r{depth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    look(&names, |report| {
        assert_eq!(lines_with_ranges(&report, 80)[1], "in .../r36/r37/r38/r39");
        let document: serde_json::Value = serde_json::from_str(&report.render_json()).unwrap();
        let told = document["findings"][0]["accesses"][1]["ranges"].as_array().unwrap();
        assert_eq!((told.len(), &told[0]["name"]), (16, &"r24".into()));
    });
}

#[test]
fn names_hide_nothing() {
    let long = "x".repeat(300);
    look(&["a\nb", "\u{202e}evil\u{1b}[31m", "", &long], |report| {
        let line = lines_with_ranges(&report, 1000).swap_remove(1);
        assert!(line.ends_with(&format!("/(no name)/{}...", "x".repeat(64))), "{line}");
        assert!(!line.contains(['\u{202e}', '\u{1b}', '\n']), "{line:?}");
        let json = report.render_json();
        assert!(!json.contains('\u{202e}') && json.contains("\\u202e"), "{json}");
    });
}

#[test]
fn json_has_ranges_as_the_schema_says() {
    let schema = report_schema();
    look(&["train", "step 12"], |report| {
        let json = report.render_json();
        assert_valid(&schema, "ranges", &json);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        let accesses = &document["findings"][0]["accesses"];
        let expected = serde_json::json!([
            { "name": "train", "domain": null },
            { "name": "step 12", "domain": "optimizer" },
        ]);
        assert_eq!(accesses[1]["ranges"], expected);
    });
    look(&[], |report| {
        let document: serde_json::Value = serde_json::from_str(&report.render_json()).unwrap();
        let accesses = &document["findings"][0]["accesses"];
        assert_eq!(accesses[1].get("ranges"), None, "absent where there are none");
    });
}

/// One mistake is one finding, whatever the ranges around its occurrences are.
#[test]
fn nothing_else_depends_on_ranges() {
    let without = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("        in "));
        lines.map(str::to_owned).collect()
    };
    let told = [&["step 1"][..], &["step 2", "forward"], &[]].map(|names| {
        look(names, |report| {
            let concise = TextOptions { detail: Detail::Concise, ..TextOptions::default() };
            let text = without(&report.render_text(&TextOptions::default()));
            (text, report.render_text(&concise), report.groups()[0].finding.fingerprint)
        })
    });
    assert!(told[0] == told[1] && told[1] == told[2], "{told:#?}");
}
