//! Reports as they are printed, kept in `tests/golden`. `BLESS=1` writes them again.

use crate::fixture;
use std::path::Path;
use streamsan_model::{
    EventId, Finding, Fingerprint, HostAccesses, IncompleteReason, Lint, OpSeq, RaceClass,
    StreamId, Threshold,
};
use streamsan_report::{
    Coverage, Detail, Folded, Input, KnownUpstream, Report, TextOptions, UnreadKernels,
};
use streamsan_testing::golden;

struct Case {
    findings: Vec<Finding>,
    lints: Vec<Lint>,
    threshold: Threshold,
    reasons: Vec<IncompleteReason>,
    coverage: Option<Coverage>,
    trace: Option<String>,
    options: TextOptions,
}

fn case(findings: Vec<Finding>) -> Case {
    Case {
        findings,
        lints: vec![],
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: Some(Coverage { calls: 1_204_331, ..Coverage::default() }),
        trace: Some("serve.db".to_owned()),
        options: TextOptions::default(),
    }
}

#[track_caller]
fn compare(name: &str, text: &str) {
    golden::check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), text);
}

#[track_caller]
fn check(name: &str, case: Case) {
    let entities = fixture::entities();
    let mut findings: Folded = case.findings.into_iter().collect();
    case.lints.into_iter().for_each(|lint| findings.add_lint(lint));
    let input = Input {
        findings,
        entities: &entities,
        threshold: case.threshold,
        reasons: case.reasons,
        coverage: case.coverage,
        upstream: Some(KnownUpstream::shipped()),
        trace: case.trace,
    };
    let report = Report::new(input, fixture::operation);
    let text = report.render_text(&case.options);
    assert!(text.lines().last().unwrap().contains("verdict: "));
    compare(&format!("{name}.txt"), &text);
    let in_full = case.options.detail == Detail::Full && case.options.max_findings.is_none();
    if !case.options.color && in_full {
        compare(&format!("{name}.json"), &report.render_json());
    }
}

fn everything_unseen() -> (Vec<IncompleteReason>, Option<Coverage>) {
    use IncompleteReason as R;
    let reasons = vec![
        R::NotAttached,
        R::DroppedRecords(12),
        R::NotUnderstood { api: "cuGraphLaunch".to_owned(), calls: 12 },
        R::UnknownKernelParameters { kernel: "flash_fwd".to_owned(), launches: 3 },
        R::PointersInMemory { kernel: "grouped_gemm".to_owned(), launches: 9 },
        R::TruncatedTrace,
        R::TraceLimit(5000),
        R::TraceNotWritten("database or disk is full".to_owned()),
        R::FindingsNotFoundAgain { findings: 3, version: "0.1.0".to_owned() },
    ];
    let not_understood = vec![("cuGraphLaunch".to_owned(), 12), ("cuMemMap".to_owned(), 1)];
    let unread = Some(UnreadKernels { kernels: 7, package: "nvidia-cuda-nvdisasm".to_owned() });
    let host_accesses = Some(HostAccesses::off());
    (
        reasons,
        Some(Coverage {
            calls: 1,
            dropped: 12,
            not_understood,
            unread,
            host_accesses,
            measured: None,
        }),
    )
}

#[test]
fn one_race_seen_often() {
    check("stale_wait", case((0..812).map(fixture::stale_wait).collect()));
}

fn waits_before_record() -> Vec<Lint> {
    let lint = |op| Lint {
        fingerprint: Fingerprint(77),
        class: RaceClass::WaitBeforeRecord,
        op: OpSeq(op),
        api: "cuStreamWaitEvent".into(),
        stream: Some(StreamId(3)),
        event: Some(EventId(1)),
        related: None,
        stack: None,
        related_stack: None,
    };
    let beside = Lint {
        fingerprint: Fingerprint(78),
        class: RaceClass::LegacyBesideNonblocking,
        related: Some(OpSeq(18_121)),
        ..lint(18_300)
    };
    vec![lint(18_500), lint(18_121), beside]
}

#[test]
fn lints_below_the_threshold() {
    check("lints", Case { lints: waits_before_record(), ..case(vec![]) });
}

#[test]
fn lints_that_fail_the_build() {
    let case = Case { threshold: Threshold::Lint, ..case(vec![]) };
    check("lints_failing", Case { lints: waits_before_record(), ..case });
}

/// A lint that explains a race is told with the race only.
#[test]
fn lint_folded_into_a_race() {
    let mut race = fixture::stale_wait(0);
    race.class = RaceClass::WaitBeforeRecord;
    race.nearest = Some(OpSeq(18_121));
    let lints = waits_before_record();
    check("lint_and_race", Case { lints, ..case(vec![race]) });
}

#[test]
fn every_class_in_its_own_words() {
    let threshold = Threshold::Lint;
    check("every_class", Case { threshold, ..case(fixture::every_class()) });
}

#[test]
fn latent_race_that_fails_the_build() {
    let threshold = Threshold::Latent;
    check("latent", Case { threshold, ..case(vec![fixture::latent(), fixture::stale_wait(1)]) });
}

#[test]
fn one_stream_that_does_not_order() {
    let findings = vec![fixture::programmatic(), fixture::pageable_source()];
    check("one_stream", case(findings));
}

#[test]
fn findings_below_the_threshold_are_short() {
    let mut findings: Vec<Finding> = (0..3).map(fixture::possible).collect();
    findings.push(fixture::latent());
    let is_lint = |finding: &Finding| finding.class == RaceClass::PooledStreamAlias;
    findings.extend(fixture::every_class().into_iter().find(is_lint));
    check("below_threshold", case(findings));
}

#[test]
fn limit_on_printed_findings() {
    let mut findings = fixture::every_class();
    findings.extend((0..3).map(fixture::possible));
    let options = TextOptions { max_findings: Some(1), ..TextOptions::default() };
    check("limited", Case { options, ..case(findings) });
}

/// Findings of every kind, some of them seen often.
fn many(detail: Detail) -> Case {
    let mut findings = fixture::every_class();
    findings.extend((0..3).map(fixture::possible));
    findings.extend((0..812).map(fixture::stale_wait));
    findings.push(fixture::latent());
    let options = TextOptions { detail, ..TextOptions::default() };
    Case { lints: waits_before_record(), options, ..case(findings) }
}

#[test]
fn a_line_for_each_finding() {
    check("concise", many(Detail::Concise));
}

#[test]
fn findings_counted_by_what_they_have_in_common() {
    check("statistics", many(Detail::Counted));
    let mut limited = many(Detail::Counted);
    limited.options.max_findings = Some(2);
    check("statistics_limited", limited);
}

#[test]
fn color_repeats_the_words() {
    let options = TextOptions { color: true, ..TextOptions::default() };
    let findings = vec![fixture::stale_wait(0), fixture::possible(1)];
    let (reasons, coverage) = everything_unseen();
    check("color", Case { options, reasons, coverage, ..case(findings) });
}

#[test]
fn clean() {
    check("clean", case(vec![]));
}

/// A text trace: no coverage, no file of its own.
#[test]
fn clean_without_coverage() {
    check("clean_text_trace", Case { coverage: None, trace: None, ..case(vec![]) });
}

#[test]
fn incomplete_for_every_reason() {
    let (reasons, coverage) = everything_unseen();
    check("incomplete", Case { reasons, coverage, ..case(vec![fixture::possible(0)]) });
}

#[test]
fn racy_and_incomplete() {
    let (reasons, coverage) = everything_unseen();
    check("racy_and_incomplete", Case { reasons, coverage, ..case(vec![fixture::stale_wait(0)]) });
}

/// A trace whose entities are unknown still gives a report.
#[test]
fn nothing_is_known_of_the_entities() {
    let entities = streamsan_model::Entities::default();
    let findings = vec![fixture::stale_wait(0), fixture::latent()];
    let input = Input {
        findings: findings.into_iter().collect(),
        entities: &entities,
        threshold: Threshold::Latent,
        reasons: vec![],
        coverage: None,
        upstream: Some(KnownUpstream::shipped()),
        trace: None,
    };
    let report = Report::new(input, |_| None);
    compare("unknown_entities.txt", &report.render_text(&TextOptions::default()));
}
