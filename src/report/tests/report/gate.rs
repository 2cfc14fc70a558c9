//! Suppressions and baselines: the findings that they accept, and the verdict then.

use crate::fixture;
use streamsan_model::{
    AllocationId, Entity, Fingerprint, IncompleteReason, Lint, OpSeq, RaceClass, StreamId,
    Threshold, Verdict,
};
use streamsan_report::{
    Baseline, Disposition, Folded, Gate, Input, Report, Suppressions, TextOptions,
};

const TODAY: &str = "2026-06-15";

fn lint() -> Lint {
    Lint {
        fingerprint: Fingerprint(77),
        class: RaceClass::WaitBeforeRecord,
        op: OpSeq(18_500),
        api: "cuStreamWaitEvent".into(),
        stream: Some(StreamId(3)),
        event: None,
        related: None,
        stack: None,
        related_stack: None,
    }
}

fn gate(suppressions: &str, baseline: Option<Baseline>) -> Gate {
    Gate {
        suppressions: Some(Suppressions::parse(suppressions).unwrap()),
        baseline,
        today: TODAY.parse().unwrap(),
    }
}

/// The report over one stale wait and one lint.
fn with_report<T>(
    gate: Option<&Gate>,
    reasons: Vec<IncompleteReason>,
    look: impl FnOnce(&Report<'_>) -> T,
) -> T {
    let entities = fixture::entities();
    let mut findings: Folded = (0..2).map(fixture::stale_wait).collect();
    findings.add_lint(lint());
    let (coverage, upstream, trace) = (None, None, None);
    let threshold = Threshold::Lint;
    let input =
        Input { findings, entities: &entities, threshold, reasons, coverage, upstream, trace };
    let mut report = Report::new(input, fixture::operation);
    if let Some(gate) = gate {
        report.hold_against(gate);
    }
    look(&report)
}

fn suppressed(line: &str) -> (bool, bool) {
    with_report(Some(&gate(line, None)), vec![], |report| {
        let race = report.groups()[0].disposition.is_suppressed();
        assert_eq!(report.groups()[0].fails, !race);
        (race, report.lints()[0].disposition.is_suppressed())
    })
}

#[test]
fn both_sides_must_match_in_either_order() {
    for (sides, matches) in [
        ("* & *", true),
        ("kernel:flash_* & api:cuMemcpyHtoDAsync*", true),
        ("api:cuMemcpyHtoDAsync* & kernel:flash_*", true),
        ("kernel:flash_* & kernel:flash_*", false),
        ("kernel:flash & *", false),
        ("kernel:flash_fwd stream:decode mode:read & stream:prefetch mode:write", true),
        ("kernel:flash_fwd stream:prefetch & *", false),
        ("stream:host & *", false),
        ("* & * memory:kv_*", true),
        ("* & * memory:\"device memory\" allocated-by:cuMemAlloc*", true),
        ("* & * memory:other", false),
    ] {
        for (class, of_class) in [("stale-wait", true), ("*", true), ("missing-wait", false)] {
            let line = format!("race[{class}]: {sides} reason=x");
            assert_eq!(suppressed(&line), (matches && of_class, false), "{line}");
        }
        let latent = format!("latent[*]: {sides} reason=x");
        assert_eq!(suppressed(&latent), (false, false), "{latent}");
    }
}

#[test]
fn lints_have_one_side() {
    assert_eq!(suppressed("lint[*]: * reason=x"), (false, true));
    assert_eq!(suppressed("lint[*]: api:cuStreamWait* stream:prefetch reason=x"), (false, true));
    assert_eq!(suppressed("lint[*]: api:cuEvent* reason=x"), (false, false));
}

#[test]
fn what_expired_counts_no_more() {
    for (day, counts) in [("2026-06-14", false), ("2026-06-15", true), ("2026-06-16", true)] {
        let line = format!("race[*]: * & * reason=x expires={day}");
        assert_eq!(suppressed(&line).0, counts, "{day}");
    }
}

#[test]
fn entries_that_do_nothing_are_told() {
    let file = "race[*]: * & * reason=x\nrace[*]: kernel:a & * reason=y\n\
                race[*]: * & * reason=z expires=2020-01-01\n";
    let gone = "# streamsan baseline, version 1\n00000000 race missing-wait\n";
    let gate = gate(file, Some(Baseline::parse(gone).unwrap()));
    with_report(Some(&gate), vec![], |report| {
        let told: Vec<String> = report.unused().iter().map(|u| u.description()).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("line 2 matches nothing"));
        assert!(told[1].contains("line 3 has expired"));
        assert!(told[2].contains("00000000 race missing-wait"));
        let text = report.render_text(&TextOptions::default());
        assert!(told.iter().all(|line| text.contains(line)));
        assert!(text.contains("(line 1: x)"));
    });
}

/// The block that is printed for a finding accepts it once the block has a reason, and nothing
/// without one.
#[test]
fn printed_block_accepts_its_finding() {
    let block = with_report(None, vec![], |report| {
        report.suppression_of(&report.groups()[0]) + &report.suppression_of_lint(&report.lints()[0])
    });
    assert!(Suppressions::parse(&block).is_err(), "{block}");
    let block = block.replace("reason=\"\"", "reason=\"known upstream\"");
    assert_eq!(suppressed(&block), (true, true), "{block}");
}

#[test]
fn baseline_knows_what_it_was_made_of() {
    let baseline = with_report(None, vec![], |report| Baseline::of(report).render());
    let baseline = Baseline::parse(&baseline).unwrap();
    let gate = gate("", Some(baseline));
    with_report(Some(&gate), vec![], |report| {
        assert_eq!(report.groups()[0].disposition, Disposition::Known);
        assert_eq!(report.lints()[0].disposition, Disposition::Known);
        assert_eq!(*report.verdict(), Verdict::Clean);
        assert!(report.unused().is_empty());
        let text = report.render_text(&TextOptions::default());
        assert!(text.ends_with("verdict: CLEAN - no races, 2 known\n"), "{text}");
    });
    let reasons = vec![IncompleteReason::NotAttached];
    with_report(Some(&gate), reasons.clone(), |report| {
        assert_eq!(*report.verdict(), Verdict::Incomplete(reasons));
    });
}

/// A program may give its kernels, streams and memory any names: the block that is written for them
/// is read back and means the same.
#[test]
fn what_is_written_is_read_back_whatever_the_names_are() {
    for name in [
        "two\nlines",
        "two\r\nlines",
        "\n",
        "",
        " ",
        "\t",
        "a\\nb",
        "\"",
        "\\",
        "\u{1b}[31m",
        "\0",
        "\u{85}\u{2028}",
        "# no comment",
        "a & b",
        "reason=x",
        "& kernel:y",
        "\nrace[*]: * & * reason=all",
        "f<int>(char const*)",
        "*?",
    ] {
        let mut entities = fixture::entities();
        let mut stream = entities.stream(StreamId(7)).unwrap().clone();
        stream.name = Some(name.to_owned());
        entities.declare(Entity::Stream(stream));
        let mut allocation = entities.allocation(AllocationId(41)).unwrap().clone();
        allocation.name = Some(name.to_owned());
        entities.declare(Entity::Allocation(allocation));
        let report = || {
            let mut finding = fixture::stale_wait(0);
            finding.first.kernel = Some(name.to_owned());
            finding.second.api = name.to_owned();
            let mut findings: Folded = [finding].into_iter().collect();
            findings.add_lint(Lint { api: name.into(), ..lint() });
            let (coverage, upstream, trace) = (None, None, None);
            let (threshold, reasons, entities) = (Threshold::Lint, vec![], &entities);
            let input = Input { findings, entities, threshold, reasons, coverage, upstream, trace };
            Report::new(input, fixture::operation)
        };
        let accepted = |gate: &Gate, disposition: fn(&Disposition) -> bool| {
            let mut report = report();
            report.hold_against(gate);
            assert!(disposition(&report.groups()[0].disposition), "{name:?}");
            assert!(disposition(&report.lints()[0].disposition), "{name:?}");
            assert!(report.unused().is_empty(), "{name:?}");
        };
        let first = report();
        let blocks = first.suppression_of(&first.groups()[0])
            + &first.suppression_of_lint(&first.lints()[0]);
        let entries = blocks.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(entries, 2, "{blocks}");
        let blocks = blocks.replace("reason=\"\"", "reason=known");
        accepted(&gate(&blocks, None), Disposition::is_suppressed);
        let baseline = Baseline::of(&first);
        let read = Baseline::parse(&baseline.render()).unwrap();
        assert_eq!(read, baseline, "{name:?}");
        accepted(&gate("", Some(read)), |disposition| *disposition == Disposition::Known);
    }
}

#[test]
fn mistakes_in_a_baseline_are_told() {
    for (text, line) in [
        ("", 1),
        ("7pbb7jgz race\n", 1),
        ("# streamsan baseline, version 1\nnonsense race\n", 2),
        ("# streamsan baseline, version 1\n7pbb7jgz\n", 2),
    ] {
        assert_eq!(Baseline::parse(text).unwrap_err().line, line, "{text:?}");
    }
}

/// A mistake that occurs in several pairs of streams and on several allocations is accepted only
/// where all of it is: a line about one pair does not hide the others.
#[test]
fn all_occurrences_of_a_mistake_must_match() {
    let entities = fixture::entities();
    let mut other = fixture::stale_wait(1);
    (other.first.stream, other.second.stream) = (Some(StreamId(7)), Some(StreamId(5)));
    other.allocation = AllocationId(42);
    let findings = || -> Folded { [fixture::stale_wait(0), other.clone()].into_iter().collect() };
    let held = |line: &str| {
        let input = Input {
            findings: findings(),
            entities: &entities,
            threshold: Threshold::Likely,
            upstream: None,
            reasons: vec![],
            coverage: None,
            trace: None,
        };
        let mut report = Report::new(input, fixture::operation);
        assert_eq!(report.groups().len(), 1);
        let block = report.suppression_of(&report.groups()[0]);
        report.hold_against(&gate(line, None));
        let suppressed = report.groups()[0].disposition.is_suppressed();
        assert_eq!(*report.verdict() == Verdict::Racy, !suppressed, "{line}");
        (suppressed, block)
    };
    for (sides, accepts) in [
        ("* & *", true),
        ("stream:decode & *", true),
        ("* & stream:decode", true),
        ("stream:decode & stream:prefetch", false),
        ("stream:decode & stream:non-blocking", false),
        ("* & stream:*e*", true),
        ("* & * memory:kv_cache", false),
        ("* & * memory:\"device memory\"", false),
        ("* & * memory:*", true),
    ] {
        assert_eq!(held(&format!("race[*]: {sides} reason=x")).0, accepts, "{sides}");
    }
    // The block that is proposed names what all have in common, and accepts all.
    let block = held("race[*]: * & * reason=x").1;
    assert!(block.contains("stream:decode") && !block.contains("prefetch"), "{block}");
    assert!(!block.contains("memory:"), "{block}");
    assert!(held(&block.replace("reason=\"\"", "reason=x")).0, "{block}");
}
