//! Questions left open by a run, and two runs as one report.

use crate::fixture::{self, side};
use std::path::Path;
use streamsan_model::{
    AllocationId, Basis, ByteRange, Confidence, ConflictKind, Entities, Finding, Fingerprint,
    IncompleteReason, Mode, RaceClass, Severity, Threshold, Verdict,
};
use streamsan_report::{
    Coverage, Input, Measured, MeasuredKernel, Open, Report, Settled, TextOptions,
};

const KERNEL: &str = "_Z7scatterPfPi";

/// A race of two launches; the bases are those of the two sides.
fn race(id: &str, confidence: Confidence, bases: [Basis; 2], kernel: &str) -> Finding {
    let range = ByteRange::with_len(fixture::KV_CACHE, 64);
    let mut sides = [(18_000, 7), (18_001, 3)].map(|(op, stream)| {
        side(op, Some(stream), ("cuLaunchKernel", Some(kernel)), Mode::Write, range)
    });
    for (side, basis) in sides.iter_mut().zip(bases) {
        side.access.basis = basis;
    }
    let [first, second] = sides;
    Finding {
        fingerprint: Fingerprint::of([id]),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind: ConflictKind::WriteAfterWrite,
        confidence,
        allocation: AllocationId(41),
        overlap: range,
        first,
        second,
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    }
}

fn possible(id: &str) -> Finding {
    race(id, Confidence::Possible, [Basis::Anchored, Basis::Exact], KERNEL)
}

fn measured(id: &str) -> Finding {
    race(id, Confidence::Certain, [Basis::Measured, Basis::Exact], KERNEL)
}

fn pointers(launches: u64) -> IncompleteReason {
    IncompleteReason::PointersInMemory { kernel: "table".to_owned(), launches }
}

fn report<'a>(
    entities: &'a Entities,
    findings: Vec<Finding>,
    reasons: Vec<IncompleteReason>,
    threshold: Threshold,
) -> Report<'a> {
    let coverage = Coverage { calls: 9, ..Coverage::default() };
    covered(entities, findings, reasons, threshold, coverage)
}

fn covered<'a>(
    entities: &'a Entities,
    findings: Vec<Finding>,
    reasons: Vec<IncompleteReason>,
    threshold: Threshold,
    coverage: Coverage,
) -> Report<'a> {
    let input = Input {
        findings: findings.into_iter().collect(),
        entities,
        threshold,
        reasons,
        coverage: Some(coverage),
        upstream: None,
        trace: Some("a.db".to_owned()),
    };
    Report::new(input, fixture::operation)
}

/// The second run measured launches of [`KERNEL`]: whole, and not at all.
fn settle_measuring(
    first: (Vec<Finding>, Vec<IncompleteReason>),
    second: (Vec<Finding>, Vec<IncompleteReason>),
    [whole, not_measured]: [u64; 2],
) -> (Verdict, String) {
    let entities = fixture::entities();
    let first = report(&entities, first.0, first.1, Threshold::Likely);
    let open = first.open([]);
    let kernel =
        MeasuredKernel { name: KERNEL.to_owned(), whole, not_measured, ..Default::default() };
    let measured = Measured { kernels: vec![kernel], ..Measured::default() };
    let coverage = Coverage { calls: 9, measured: Some(measured), ..Coverage::default() };
    let second = covered(&entities, second.0, second.1, Threshold::Likely, coverage);
    let both = Report::settled(first, second, &open).expect("two reports");
    let text = both.render_text(&TextOptions::default());
    let line = text.lines().find_map(|line| line.strip_prefix("settled: "));
    (both.verdict().clone(), line.expect("it is told").to_owned())
}

fn settle(
    first: (Vec<Finding>, Vec<IncompleteReason>),
    second: (Vec<Finding>, Vec<IncompleteReason>),
) -> (Verdict, String) {
    settle_measuring(first, second, [2, 0])
}

#[test]
fn kernels_of_bounded_sides_and_of_reasons_are_open() {
    let entities = fixture::entities();
    let by_order = race("order", Confidence::Possible, [Basis::Exact, Basis::Inferred], KERNEL);
    let of_nccl =
        race("nccl", Confidence::Possible, [Basis::Assumed; 2], "ncclDevKernel_AllReduce");
    let sure = race("sure", Confidence::Likely, [Basis::Inferred; 2], "sure");
    let findings = vec![possible("a"), by_order, of_nccl, sure];
    let dropped = IncompleteReason::DroppedRecords(1);
    let first = report(&entities, findings, vec![pointers(4), dropped], Threshold::Likely);
    let open = first.open(["unread", "ncclKernel_x"]);
    assert_eq!(open.kernels().collect::<Vec<_>>(), [KERNEL, "table", "unread"]);
    let words = "1 finding is open, 1 reason keeps the run incomplete; 3 kernels decide";
    assert_eq!(open.in_words(), words);
}

/// The side whose bytes are known may be bounded in another occurrence of the finding.
#[test]
fn the_kernel_on_the_other_side_of_an_open_finding_is_measured_too() {
    let entities = fixture::entities();
    let mut finding = possible("a");
    finding.second.kernel = Some("known_here".into());
    let report = report(&entities, vec![finding], vec![], Threshold::Likely);
    assert_eq!(report.open([]).kernels().collect::<Vec<_>>(), [KERNEL, "known_here"]);
}

#[test]
fn what_rests_on_known_bytes_is_not_open() {
    let entities = fixture::entities();
    let inferred = race("a", Confidence::Likely, [Basis::Inferred; 2], KERNEL);
    for finding in [inferred, measured("a")] {
        let report = report(&entities, vec![finding], vec![], Threshold::Likely);
        let open = report.open([]);
        assert_eq!(open, Open::default());
        assert!(open.is_empty() && report.is_racy_without(&open));
    }
}

/// Two launches with one pointer fail, and may still work on interleaved rows.
#[test]
fn failing_findings_on_bounded_bytes_give_way_to_measured_bytes_only() {
    let likely = race("a", Confidence::Likely, [Basis::Anchored; 2], KERNEL);
    let entities = fixture::entities();
    for (finding, threshold) in
        [(likely.clone(), Threshold::Likely), (possible("a"), Threshold::Possible)]
    {
        let report = report(&entities, vec![finding], vec![], threshold);
        let open = report.open([]);
        assert_eq!(open.kernels().collect::<Vec<_>>(), [KERNEL]);
        assert!(!report.is_racy_without(&open));
    }
    for (second, measured_launches, verdict, told) in [
        (vec![], [2, 0], Verdict::Clean, "0 confirmed, 1 dismissed"),
        // Nothing shows that the bytes do not overlap.
        (vec![], [1, 1], Verdict::Racy, "1 left"),
        (vec![], [0, 0], Verdict::Racy, "1 left"),
        (vec![likely.clone()], [1, 1], Verdict::Racy, "1 left"),
        (vec![measured("a")], [2, 0], Verdict::Racy, "1 confirmed, 0 dismissed"),
    ] {
        let first = (vec![likely.clone()], vec![]);
        let (found, line) = settle_measuring(first, (second, vec![]), measured_launches);
        assert_eq!(found, verdict, "{line}");
        assert!(line.starts_with("1 finding was open: ") && line.contains(told), "{line}");
    }
}

#[test]
fn findings_are_confirmed_dismissed_or_left() {
    let first = (vec![possible("a"), possible("b"), possible("c")], vec![pointers(4)]);
    let (verdict, line) =
        settle(first.clone(), (vec![measured("a"), possible("c")], vec![pointers(1)]));
    assert_eq!(verdict, Verdict::Racy);
    let told = "3 findings were open: 1 confirmed, 1 dismissed (the measured bytes do not \
                overlap), 1 left; 1 reason kept the first run incomplete, 1 left";
    assert_eq!(line, told);
    let (verdict, line) = settle(first, (vec![], vec![]));
    assert_eq!(verdict, Verdict::Clean);
    assert!(line.contains("0 confirmed, 3 dismissed") && line.ends_with("incomplete, 0 left"));
}

/// The kernel may write by what was concluded; measured, it only reads.
#[test]
fn a_race_of_another_kind_at_the_same_calls_confirms() {
    let read = || {
        let mut found = measured("read");
        found.kind = ConflictKind::WriteAfterRead;
        found.first.access.mode = Mode::Read;
        found
    };
    let (verdict, line) = settle((vec![possible("a")], vec![]), (vec![read()], vec![]));
    assert_eq!(verdict, Verdict::Racy);
    assert!(line.contains("1 confirmed, 0 dismissed"), "{line}");
    // At other calls it confirms nothing.
    let mut elsewhere = read();
    elsewhere.first.kernel = Some("other".to_owned());
    let (verdict, line) = settle((vec![possible("a")], vec![]), (vec![elsewhere], vec![]));
    assert_eq!(verdict, Verdict::Racy);
    assert!(line.contains("0 confirmed, 1 dismissed"), "{line}");
}

#[test]
fn reasons_of_other_kinds_and_failing_findings_stay() {
    let dropped = IncompleteReason::DroppedRecords(1);
    let (verdict, _) = settle((vec![], vec![pointers(4), dropped.clone()]), (vec![], vec![]));
    assert_eq!(verdict, Verdict::Incomplete(vec![dropped]));
    let sure = race("sure", Confidence::Likely, [Basis::Inferred; 2], KERNEL);
    let (verdict, _) = settle((vec![sure, possible("a")], vec![]), (vec![], vec![]));
    assert_eq!(verdict, Verdict::Racy);
    let (verdict, _) = settle((vec![possible("a")], vec![]), (vec![], vec![pointers(1)]));
    assert_eq!(verdict, Verdict::Incomplete(vec![pointers(1)]));
}

#[test]
fn what_is_possible_by_order_is_told() {
    let settled = Settled { open: 1, dismissed: 1, by_order: 2, ..Settled::default() };
    let told = "1 finding was open: 0 confirmed, 1 dismissed (the measured bytes do not \
                overlap), 0 left; 2 more are possible for reasons of order, which measuring does \
                not tell";
    assert_eq!(settled.in_words(), told);
}

/// Both numbers stand beside a reason that stays, and the JSON form keeps to its schema.
#[test]
fn launches_that_were_not_measured_are_counted() {
    let entities = fixture::entities();
    let kernel = MeasuredKernel {
        name: "table".to_owned(),
        whole: 3_997,
        not_measured: 3,
        follows_pointers: 3_997,
        ..MeasuredKernel::default()
    };
    let wrong =
        MeasuredKernel { name: "gather".to_owned(), outside: 2, ..MeasuredKernel::default() };
    let measured = Measured {
        kernels: vec![kernel, wrong],
        reasons: vec![("no log was free".to_owned(), 3)],
        off: vec![("another tool".to_owned(), 1)],
    };
    let coverage = Coverage { calls: 9, measured: Some(measured), ..Coverage::default() };
    let of = |findings: Vec<Finding>, coverage| {
        let input = Input {
            findings: findings.into_iter().collect(),
            entities: &entities,
            threshold: Threshold::Likely,
            reasons: vec![pointers(3)],
            coverage: Some(coverage),
            upstream: None,
            trace: None,
        };
        Report::new(input, fixture::operation)
    };
    let first = of(vec![possible("a")], Coverage { calls: 9, ..Coverage::default() });
    let open = first.open([]);
    let both = Report::settled(first, of(vec![], coverage), &open).expect("two reports");
    let text = both.render_text(&TextOptions::default());
    for line in [
        "measured: 1 kernel was measured in this run; 1 of them touches what its data says; 4,000 \
         launches, 3 not measured",
        "measured: 2 launches of gather touched bytes that the kernel's code was read not to touch: an \
         access out of bounds, or an error of streamsan, which its authors want to know of",
        "measured: 3 launches not measured: no log was free",
        "measured: nothing was measured in 1 process: another tool",
        ": 3 of 4,000 launches not measured",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).expect("the schema"));
    let document = serde_json::from_str(&both.render_json()).expect("it is JSON");
    jsonschema::validate(&schema.expect("it is JSON"), &document).expect("it keeps to the schema");
    assert_eq!(document["coverage"]["measured"]["launches"], 4_000);
    assert_eq!(document["settled"]["left"], 1);
}
