//! Expectations against findings.

use std::path::Path;
use streamsan_model::{
    Access, AllocationId, Basis, ByteRange, Confidence, ConflictKind, Extent, Finding,
    FindingAccess, Fingerprint, Lint, Mode, OpSeq, RaceClass, Severity,
};
use streamsan_text::{TextTrace, compare, parse, wrong_directory};

fn finding(line: u64, kind: ConflictKind, first: u64, allocation: u32) -> Finding {
    let range = ByteRange::new(0, 8);
    let side = |op| FindingAccess {
        op: OpSeq(op),
        stream: None,
        api: String::new(),
        kernel: None,
        access: Access {
            allocation: AllocationId(allocation),
            extent: Extent::Range(range),
            mode: Mode::Write,
            basis: Basis::Exact,
        },
        stack: None,
    };
    Finding {
        fingerprint: Fingerprint(0),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind,
        confidence: Confidence::Certain,
        allocation: AllocationId(allocation),
        overlap: range,
        first: side(first),
        second: side(line),
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    }
}

/// Two writers of A and B; the expectations are put on line 2.
fn trace(expectations: &str) -> TextTrace {
    parse(&format!("launch s1 k w:A w:B\nlaunch s2 k w:A w:B {expectations}")).expect("parses")
}

fn mismatches(trace: &TextTrace, findings: &[Finding]) -> Vec<String> {
    compare(trace, findings, &[]).iter().map(ToString::to_string).collect()
}

const WAW: ConflictKind = ConflictKind::WriteAfterWrite;

#[test]
fn all_met() {
    let both = [finding(2, WAW, 1, 0), finding(2, WAW, 1, 1)];
    for expectations in [
        "#~ race WAW 1; race WAW 1",
        "#~ race WAW 1 in=A; race WAW 1 in=B",
        // The unspecific one must not take what only the specific one's finding is.
        "#~ race WAW 1; race WAW 1 in=A class=missing-wait confidence=certain # why",
    ] {
        assert_eq!(mismatches(&trace(expectations), &both), Vec::<String>::new(), "{expectations}");
    }
}

#[test]
fn differences_name_line_expectation_and_finding() {
    let one = [finding(2, WAW, 1, 0)];
    let found = "race WAW 1 class=missing-wait confidence=certain in=A";
    assert_eq!(mismatches(&trace(""), &one), [format!("line 2: expected nothing, found {found}")]);
    assert_eq!(
        mismatches(&trace("#~ race RAW 1"), &one),
        [format!("line 2: expected race RAW 1, found {found}")]
    );
    assert_eq!(
        mismatches(&trace("#~ race WAW 1 confidence=likely"), &one),
        [format!("line 2: expected race WAW 1 confidence=likely, found {found}")]
    );
    assert_eq!(
        mismatches(&trace("#~ race WAW 1; race WAW 1"), &one),
        ["line 2: expected race WAW 1, found nothing"]
    );
    assert_eq!(
        mismatches(&trace("#~ latent WAW 1"), &one),
        [format!("line 2: expected latent WAW 1, found {found}")]
    );
}

#[test]
fn lints_count_only_where_one_is_expected() {
    let mut lint = finding(2, WAW, 1, 0);
    lint.severity = Severity::Lint;
    lint.class = RaceClass::WaitBeforeRecord;
    let findings = [lint];
    assert!(mismatches(&trace(""), &findings).is_empty());
    assert!(mismatches(&trace("#~ lint wait-before-record"), &findings).is_empty());
    assert_eq!(
        mismatches(&trace("#~ lint memop-only-order"), &findings),
        ["line 2: expected lint memop-only-order, found lint wait-before-record 1"]
    );
}

/// The expectation of the trace, the class and the other line of the lint on line 2, the
/// mismatches.
const LINTS: &[(&str, RaceClass, Option<u64>, &[&str])] = &[
    ("", RaceClass::MemopOnlyOrder, Some(1), &[]),
    ("#~ lint memop-only-order", RaceClass::MemopOnlyOrder, Some(1), &[]),
    ("#~ lint memop-only-order", RaceClass::MemopOnlyOrder, None, &[]),
    ("#~ lint memop-only-order 1", RaceClass::MemopOnlyOrder, Some(1), &[]),
    (
        "#~ lint memop-only-order 1",
        RaceClass::MemopOnlyOrder,
        None,
        &["line 2: expected lint memop-only-order 1, found lint memop-only-order"],
    ),
    (
        "#~ lint wait-before-record",
        RaceClass::MemopOnlyOrder,
        Some(1),
        &["line 2: expected lint wait-before-record, found lint memop-only-order 1"],
    ),
];

#[test]
fn lints_may_name_the_other_call() {
    for &(expectations, class, related, expected) in LINTS {
        let lint = Lint {
            fingerprint: Fingerprint(0),
            class,
            op: OpSeq(2),
            api: "cuStreamWaitValue32_v2".into(),
            stream: None,
            event: None,
            related: related.map(OpSeq),
            stack: None,
            related_stack: None,
        };
        let found: Vec<String> =
            compare(&trace(expectations), &[], &[lint]).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{expectations}");
    }
}

#[test]
fn directories_say_what_a_trace_must_hold() {
    let (clean, racy) = (trace(""), trace("#~ race WAW 1"));
    assert!(wrong_directory(Path::new("traces/fail/a.trace"), &clean).is_some());
    assert!(wrong_directory(Path::new("traces/fail/events/a.trace"), &racy).is_none());
    assert!(wrong_directory(Path::new("traces/pass/events/a.trace"), &racy).is_some());
    assert!(wrong_directory(Path::new("traces/pass/a.trace"), &clean).is_none());
    assert!(wrong_directory(Path::new("a.trace"), &clean).is_none());
}
