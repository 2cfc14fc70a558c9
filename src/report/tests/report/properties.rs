//! Properties that hold for any input.

use crate::fixture;
use streamsan_model::{Confidence, Finding, OpSeq, Severity, Threshold, Verdict};
use streamsan_report::{Input, KnownUpstream, Report, TextOptions};

fn with_report<T>(findings: &[Finding], look: impl FnOnce(&Report<'_>) -> T) -> T {
    let entities = fixture::entities();
    let input = Input {
        findings: findings.iter().cloned().collect(),
        entities: &entities,
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: None,
        upstream: Some(KnownUpstream::shipped()),
        trace: None,
    };
    look(&Report::new(input, fixture::operation))
}

fn mixed() -> Vec<Finding> {
    let mut findings = fixture::every_class();
    findings.extend((0..5).map(fixture::stale_wait));
    findings.extend((0..5).map(fixture::possible));
    findings.push(fixture::latent());
    findings
}

#[test]
fn order_of_the_findings_does_not_matter() {
    let render =
        |report: &Report<'_>| (report.render_text(&TextOptions::default()), report.render_json());
    let mut findings = mixed();
    let expected = with_report(&findings, render);
    for shift in 1..findings.len() {
        findings.rotate_left(shift);
        assert_eq!(with_report(&findings, render), expected);
        findings.reverse();
        assert_eq!(with_report(&findings, render), expected);
    }
}

#[test]
fn color_only_adds_escape_sequences() {
    let findings = mixed();
    let (plain, color) = with_report(&findings, |report| {
        let color = TextOptions { color: true, ..TextOptions::default() };
        (report.render_text(&TextOptions::default()), report.render_text(&color))
    });
    let mut stripped = String::new();
    let mut rest = color.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped += before;
        rest = after.split_once('m').unwrap().1;
    }
    stripped += rest;
    assert_ne!(plain, color);
    assert_eq!(plain, stripped);
    assert!(!plain.contains('\u{1b}'));
}

#[test]
fn occurrences_fold_into_the_strongest_and_earliest() {
    let mut weak = fixture::stale_wait(0);
    weak.confidence = Confidence::Likely;
    let findings = vec![fixture::stale_wait(5), weak, fixture::stale_wait(3)];
    with_report(&findings, |report| {
        let [group] = report.groups() else { panic!("one mistake") };
        assert_eq!(group.count, 3);
        assert_eq!(group.finding, fixture::stale_wait(3));
        assert_eq!((group.first, group.last), (OpSeq(18_240), OpSeq(18_740)));
        assert!(group.fails);
    });
}

#[test]
fn latent_and_real_occurrences_of_one_mistake_stay_apart() {
    let real = fixture::stale_wait(0);
    let latent = Finding { severity: Severity::Latent, ..fixture::stale_wait(1) };
    with_report(&[latent, real], |report| {
        assert_eq!(report.groups().len(), 2);
        assert!(report.groups()[0].fails && !report.groups()[1].fails);
        assert_eq!(*report.verdict(), Verdict::Racy);
    });
}

#[test]
fn json_says_what_the_text_says() {
    let findings = mixed();
    with_report(&findings, |report| {
        let json: serde_json::Value = serde_json::from_str(&report.render_json()).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["verdict"], "RACY");
        let listed = json["findings"].as_array().unwrap();
        assert_eq!(listed.len(), report.groups().len());
        let text = report.render_text(&TextOptions::default());
        for finding in listed {
            assert!(text.contains(&format!("id {}", finding["id"].as_str().unwrap())));
            assert!(finding.get("verified").is_none());
        }
        let total: u64 = listed.iter().map(|f| f["count"].as_u64().unwrap()).sum();
        assert_eq!(total as usize, findings.len());
    });
}
