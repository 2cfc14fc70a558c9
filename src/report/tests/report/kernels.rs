//! Kernels with mangled names: readable for people, both names for programs, and fingerprints,
//! suppressions and baselines as they were.

use crate::stacks::{assert_valid, with_report};
use serde_json::Value;
use std::path::Path;
use streamsan_model::{Entities, IncompleteReason, Threshold};
use streamsan_report::{
    Baseline, Folded, Gate, Input, Neighbourhood, PerfettoWriter, Report, Story, Suppressions,
    TextOptions,
};

/// A kernel of PyTorch's.
const MULTIPLY: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_";
const MULTIPLY_SHOWN: &str = "at::native::vectorized_elementwise_kernel<4, AUnaryFunctor<float, float, float, MulFunctor<float>>, array<char*, 2>>";
const MULTIPLY_WHOLE: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, (unsigned long)2> >(int, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, (unsigned long)2>)";
/// A kernel written in Rust.
const SUM: &str = "_ZN4demo6kernel3sum17h05af221e174051e9E";

/// A race of both.
fn trace() -> String {
    format!("alloc data 4096\nlaunch s1 {MULTIPLY} w:data\nlaunch s2 {SUM} r:data\n")
}

fn everything(report: &Report<'_>, operations: &[streamsan_model::Operation]) -> [String; 6] {
    let group = &report.groups()[0];
    let mut story = Story::new(report, group);
    let mut around = Neighbourhood::new(report, &group.finding, &[]);
    for operation in operations {
        story.operation(operation);
        around.operation(operation);
    }
    [
        report.render_text(&unbroken()),
        story.render(&unbroken(), &mut |_, _| None),
        Neighbourhood::render(&[around]),
        report.render_github(),
        report.render_github_summary(),
        report.render_junit(),
    ]
}

/// Names are told whole, and lines are not broken in them.
fn unbroken() -> TextOptions {
    TextOptions { columns: Some(usize::MAX), ..TextOptions::default() }
}

#[test]
fn people_read_names() {
    with_report(&trace(), |report, operations| {
        for text in everything(&report, operations) {
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            assert!(text.contains(MULTIPLY_SHOWN), "{text}");
            assert!(text.contains("demo::kernel::sum") && !text.contains(SUM), "{text}");
            assert!(!text.contains(MULTIPLY), "{text}");
        }
        let [text, explanation, ..] = everything(&report, operations);
        assert!(!text.contains(MULTIPLY_WHOLE), "{text}");
        let whole = format!("\nkernels in full\n  (1) {MULTIPLY_WHOLE}\n");
        assert!(explanation.ends_with(&whole), "{explanation}");
        // The other line is not moved by the long name.
        assert!(text.contains("(2) later  READ   demo::kernel::sum  #3  stream"), "{text}");
    });
}

#[test]
fn findings_in_a_line_have_readable_names() {
    with_report(&trace(), |mut report, _| {
        let line = "race[*]: * & * reason=x";
        let suppressions = Some(Suppressions::parse(line).unwrap());
        report.hold_against(&Gate { suppressions, ..Gate::default() });
        let text = report.render_text(&unbroken());
        assert!(text.contains(&format!("WRITE {MULTIPLY_SHOWN} on stream")), "{text}");
        assert!(!text.contains("_ZN"), "{text}");
    });
}

#[test]
fn programs_get_both_names() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    with_report(&trace(), |report, operations| {
        let document = report.render_json();
        assert_valid(&schema, "kernels", &document);
        let document: Value = serde_json::from_str(&document).unwrap();
        let [first, second] = [0, 1].map(|side| &document["findings"][0]["accesses"][side]);
        assert_eq!((&first["kernel"], &second["kernel"]), (&MULTIPLY.into(), &SUM.into()));
        assert_eq!(first["kernel_demangled"], MULTIPLY_WHOLE);
        assert_eq!(second["kernel_demangled"], "demo::kernel::sum");

        let sarif: Value = serde_json::from_str(&report.render_sarif("1.2.3")).unwrap();
        let result = &sarif["runs"][0]["results"][0];
        let related = &result["relatedLocations"][0]["logicalLocations"][0];
        assert_eq!(
            (&related["name"], &related["decoratedName"]),
            (&MULTIPLY_SHOWN.into(), &MULTIPLY.into())
        );
        let full = related["fullyQualifiedName"].as_str().unwrap();
        assert!(full.starts_with(MULTIPLY_WHOLE), "{full}");
        let message = result["message"]["text"].as_str().unwrap();
        assert!(message.contains(MULTIPLY_SHOWN) && !message.contains("_ZN"), "{message}");

        let mut perfetto = Vec::new();
        let mut writer = PerfettoWriter::new(&mut perfetto, &report, &[]).unwrap();
        operations.iter().for_each(|operation| writer.operation(operation).unwrap());
        writer.finish().unwrap();
        let perfetto = String::from_utf8_lossy(&perfetto);
        for name in [MULTIPLY, MULTIPLY_SHOWN, MULTIPLY_WHOLE, SUM, "demo::kernel::sum"] {
            assert!(perfetto.contains(name), "{name}");
        }
    });
}

#[test]
fn names_that_are_not_mangled_stay_alone() {
    let trace = "alloc data 4096\nlaunch s1 flash_fwd w:data\nlaunch s2 _Znot r:data\n";
    with_report(trace, |report, operations| {
        assert!(!report.render_json().contains("kernel_demangled"));
        assert!(!report.render_sarif("1.2.3").contains("decoratedName"));
        let [text, explanation, ..] = everything(&report, operations);
        assert!(text.contains("WRITE  flash_fwd") && text.contains("READ   _Znot"), "{text}");
        assert!(!explanation.contains("kernels in full"), "{explanation}");
    });
}

#[test]
fn suppressions_name_kernels_either_way() {
    for (pattern, accepts) in [
        (MULTIPLY, true),
        ("_ZN2at6native29vectorized_elementwise_kernel*", true),
        (MULTIPLY_SHOWN, true),
        (MULTIPLY_WHOLE, true),
        ("at::native::vectorized_elementwise_kernel<*", true),
        ("*MulFunctor<float>*", true),
        ("demo::kernel::sum", true),
        ("demo::*", true),
        ("vectorized_elementwise_kernel", false),
        ("*AddFunctor<float>*", false),
        ("sum", false),
    ] {
        for line in [
            format!("race[*]: kernel:\"{pattern}\" & * reason=x"),
            format!("race[*]: * & kernel:\"{pattern}\" reason=x"),
        ] {
            with_report(&trace(), |mut report, _| {
                let suppressions = Some(Suppressions::parse(&line).unwrap());
                report.hold_against(&Gate { suppressions, ..Gate::default() });
                let accepted = report.groups()[0].disposition.is_suppressed();
                assert_eq!(accepted, accepts, "{line}");
            });
        }
    }
}

/// Files written before names were readable still work: block, baseline and id are those of the
/// mangled names.
#[test]
fn suppressions_and_baselines_keep_mangled_names() {
    with_report(&trace(), |report, _| {
        let group = &report.groups()[0];
        let block = report.suppression_of(group);
        let (comments, entry) = block.split_once("\nrace[").unwrap();
        assert!(comments.contains(&format!("\n# (1) is {MULTIPLY_SHOWN}\n")), "{block}");
        assert!(comments.ends_with("\n# (2) is demo::kernel::sum"), "{block}");
        assert!(entry.contains(&format!("kernel:{MULTIPLY} ")), "{block}");
        assert!(entry.contains(&format!("kernel:{SUM} ")), "{block}");
        let entry = block.replace("reason=\"\"", "reason=x");
        let mut held = report.clone();
        let suppressions = Some(Suppressions::parse(&entry).unwrap());
        held.hold_against(&Gate { suppressions, ..Gate::default() });
        assert!(held.groups()[0].disposition.is_suppressed(), "{entry}");

        let baseline = Baseline::of(&report).render();
        assert!(baseline.contains(&format!("write {MULTIPLY} / read {SUM}")), "{baseline}");
        assert_eq!(group.finding.fingerprint.to_string(), "5zr6yd49");
    });
}

#[test]
fn what_was_not_seen_has_readable_names() {
    let entities = Entities::default();
    let kernel = MULTIPLY.to_owned();
    let reason = IncompleteReason::UnknownKernelParameters { kernel, launches: 3 };
    let input = Input {
        findings: Folded::default(),
        entities: &entities,
        threshold: Threshold::Possible,
        reasons: vec![reason],
        coverage: None,
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |_| None);
    let text = report.render_text(&unbroken());
    let line = format!("incomplete: parameters of kernel {MULTIPLY_SHOWN} unknown in 3 launches\n");
    assert!(text.contains(&line), "{text}");
    let document: Value = serde_json::from_str(&report.render_json()).unwrap();
    let told = document["reasons"][0]["text"].as_str().unwrap();
    assert!(told.contains(MULTIPLY), "{told}");
}

#[test]
#[ignore = "needs the schema of OASIS, which may not be copied; STREAMSAN_SARIF_SCHEMA names its file"]
fn sarif_with_both_names_follows_the_schema_of_oasis() {
    let schema = crate::formats::sarif_schema();
    with_report(&trace(), |report, _| {
        assert_valid(&schema, "kernels", &report.render_sarif("1.2.3"));
    });
}
