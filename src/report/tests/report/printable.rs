//! Names of any kind in every form: what is printed has the lines that it has with plain names.

use crate::fixture;
use proptest::prelude::*;
use serde_json::Value;
use streamsan_model::{Entities, Entity, Finding, HostAccesses, IncompleteReason, Threshold};
use streamsan_report::{Coverage, Input, Report, TextOptions};

/// Gives every entity that has a name this one.
fn entities(name: &str) -> Entities {
    let plain = fixture::entities();
    let mut entities = plain.clone();
    for process in plain.processes() {
        let process = streamsan_model::Process { executable: name.to_owned(), ..process.clone() };
        entities.declare(Entity::Process(process));
    }
    for stream in plain.streams() {
        let name = Some(name.to_owned());
        entities.declare(Entity::Stream(streamsan_model::Stream { name, ..stream.clone() }));
    }
    for event in [1, 2].into_iter().filter_map(|id| plain.event(streamsan_model::EventId(id))) {
        let name = Some(name.to_owned());
        entities.declare(Entity::Event(streamsan_model::Event { name, ..event.clone() }));
    }
    for allocation in plain.allocations() {
        let (api, name) = (name.to_owned(), Some(name.to_owned()));
        let allocation = streamsan_model::Allocation { api, name, ..allocation.clone() };
        entities.declare(Entity::Allocation(allocation));
    }
    entities
}

fn findings(name: &str) -> Vec<Finding> {
    let mut findings = fixture::every_class();
    findings.push(fixture::stale_wait(1));
    for (place, finding) in findings.iter_mut().enumerate() {
        for side in [&mut finding.first, &mut finding.second] {
            side.api = name.to_owned();
            side.kernel = (place % 2 == 0).then(|| name.to_owned());
        }
    }
    findings
}

fn with_report<T>(name: &str, look: impl FnOnce(&Report<'_>) -> T) -> T {
    let entities = entities(name);
    let (api, kernel) = (name.to_owned(), name.to_owned());
    let input = Input {
        findings: findings(name).into_iter().collect(),
        entities: &entities,
        threshold: Threshold::Possible,
        reasons: vec![
            IncompleteReason::NotUnderstood { api: api.clone(), calls: 1 },
            IncompleteReason::UnknownKernelParameters { kernel, launches: 1 },
            IncompleteReason::TraceNotWritten(name.to_owned()),
        ],
        coverage: Some(Coverage {
            calls: 9,
            not_understood: vec![(api, 1), (format!("{name} too"), 1)],
            host_accesses: Some(HostAccesses {
                operations: 1,
                not_fenced: vec![(name.to_owned(), 1)],
                ..HostAccesses::default()
            }),
            ..Coverage::default()
        }),
        upstream: None,
        trace: Some(name.to_owned()),
    };
    let report = Report::new(input, |g| {
        let operation = fixture::operation(g)?;
        Some(streamsan_model::Operation { api: name.into(), ..operation })
    });
    look(&report)
}

/// Every form for people, by its name.
fn forms(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let blocks = report.groups().iter().map(|group| report.headline(group) + "\n");
    let words = report.groups().iter().flat_map(|group| report.accesses_in_words(group));
    let unbroken = TextOptions { columns: Some(usize::MAX), ..TextOptions::default() };
    vec![
        ("text", report.render_text(&unbroken)),
        ("github", report.render_github()),
        ("github-summary", report.render_github_summary()),
        ("codequality", report.render_code_quality()),
        ("junit", report.render_junit()),
        ("headlines", blocks.collect()),
        ("accesses", words.map(|words| words + "\n").collect()),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\n",
        "\r",
        "\u{1b}[2J",
        "\u{7}",
        "\0",
        "\t",
        "\u{7f}",
        "\u{9b}",
        "\u{85}",
        "\u{202e}",
        "\u{2028}",
        "\u{feff}",
        "\\",
        "\"",
        "`",
        "|",
        "<",
        "&",
        "]]>",
        "::",
        "::error::",
        "##[",
        "%",
        "%0A",
        ",",
        " ",
        "verdict: CLEAN",
        "\u{ffff}",
        "_Z",
        "_ZN1a1bE",
    ]);
    let piece = prop_oneof![
        nasty.prop_map(str::to_owned),
        "\\PC{0,4}",
        any::<char>().prop_map(String::from)
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_name_adds_a_line_or_a_command(name in any_name()) {
        let plain = with_report("plain", forms);
        let shown = with_report(&name, forms);
        for ((form, plain), (_, shown)) in plain.iter().zip(&shown) {
            let lines = (plain.lines().count(), shown.lines().count());
            prop_assert_eq!(lines.0, lines.1, "{}: {}", form, shown);
            prop_assert!(!shown.chars().any(|c| c != '\n' && c.is_control()), "{}: {:?}", form, shown);
            prop_assert!(!shown.contains(['\u{202e}', '\u{2028}', '\u{feff}']), "{}: {:?}", form, shown);
            prop_assert!(!shown.contains("##["), "{}: {:?}", form, shown);
            let verdicts = |text: &str| text.lines().filter(|l| l.starts_with("verdict:")).count();
            prop_assert_eq!(verdicts(plain), verdicts(shown), "{}: {}", form, shown);
            let command = shown.lines().any(|line| line.trim_start().starts_with("::"));
            prop_assert_eq!(command, *form == "github", "{}: {}", form, shown);
        }
        let json = with_report(&name, |report| report.render_json());
        prop_assert!(!json.chars().any(|c| c != '\n' && c.is_control()), "{:?}", json);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let names = json["findings"].as_array().into_iter().flatten();
        for finding in names {
            prop_assert_eq!(finding["accesses"][0]["api"].as_str(), Some(name.as_str()));
        }
        let sarif = with_report(&name, |report| report.render_sarif("0"));
        prop_assert!(serde_json::from_str::<Value>(&sarif).is_ok());
    }
}
