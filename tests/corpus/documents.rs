//! `docs/semantics.md` is what the catalogue of rules and the corpus of traces say, and
//! `docs/conformance.md` what the analysis answers. `BLESS=1` writes both anew.

use crate::check;
use libtest_mimic::Trial;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use streamsan_analysis::Rule;
use streamsan_testing::{corpus, golden};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(check("documents::semantics_is_current", semantics_is_current));
    trials.push(check(
        "documents::each_rule_has_a_passing_and_a_failing_trace",
        each_rule_has_a_passing_and_a_failing_trace,
    ));
    trials.push(check(
        "documents::each_trace_names_a_rule_or_is_named_by_hand",
        each_trace_names_a_rule_or_is_named_by_hand,
    ));
    trials.push(check(
        "documents::the_patterns_from_the_wild_are_complete",
        the_patterns_from_the_wild_are_complete,
    ));
    trials.push(check("documents::traces_named_by_hand_exist", traces_named_by_hand_exist));
    trials.push(check("documents::conformance_is_current", conformance_is_current));
}

/// Rules without a passing or a failing trace, and why there can be none.
const EXCEPTIONS: &[(Rule, Side, &str)] = &[];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Pass,
    Fail,
}

impl Side {
    const ALL: [Self; 2] = [Self::Pass, Self::Fail];

    fn directory(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The traces of a directory: for each the rules that it names.
fn traces(side: Side) -> BTreeMap<String, Vec<String>> {
    let traces = corpus::traces(side.directory()).into_iter().map(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a UTF-8 name");
        (name.to_owned(), rules_of(&fs::read_to_string(&path).expect("a readable trace")))
    });
    traces.collect()
}

/// The lines `# rule: ID` of a trace.
fn rules_of(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("# rule: ")).map(str::to_owned).collect()
}

/// Cases that follow an origin of their own, and may name rules.
fn has_origin(name: &str) -> bool {
    name.starts_with("csan_") || name.starts_with("wild_")
}

/// Which traces show a rule.
type Shown = BTreeMap<(Side, Rule), Vec<String>>;

fn shown() -> Shown {
    let mut shown = Shown::new();
    for side in Side::ALL {
        for (name, rules) in traces(side) {
            for id in rules {
                let rule: Rule = id
                    .parse()
                    .unwrap_or_else(|()| panic!("{}/{name}: no rule `{id}`", side.directory()));
                shown.entry((side, rule)).or_default().push(name.clone());
            }
        }
    }
    shown
}

/// The tables of all rules, under the headings of their groups.
fn tables(shown: &Shown) -> String {
    let mut out = String::new();
    let mut group = "";
    for &rule in Rule::ALL {
        if rule.group() != group {
            group = rule.group();
            let gap = if out.is_empty() { "" } else { "\n" };
            out += &format!("{gap}## {group}\n\n");
            out +=
                "| rule | what | tier | documentation | pass | fail |\n|---|---|---|---|---|---|\n";
        }
        out += &format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            rule.id(),
            rule.statement(),
            rule.tier().map_or("no order", |tier| tier.description()),
            rule.source(),
            cell(shown, Side::Pass, rule),
            cell(shown, Side::Fail, rule),
        );
    }
    out.truncate(out.trim_end().len());
    out
}

fn cell(shown: &Shown, side: Side, rule: Rule) -> String {
    let names: &[String] = shown.get(&(side, rule)).map_or(&[], Vec::as_slice);
    let (origin, rows): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| has_origin(name));
    let mut parts: Vec<String> = rows.iter().map(|name| format!("`{name}`")).collect();
    for group in ["csan", "wild"] {
        let count = origin.iter().filter(|name| name.starts_with(group)).count();
        if count > 0 {
            parts.push(format!("{count} of {group}"));
        }
    }
    if parts.is_empty() {
        let reason = EXCEPTIONS.iter().find(|(r, s, _)| (*r, *s) == (rule, side));
        return reason.map_or("–".to_owned(), |(_, _, reason)| format!("– ({reason})"));
    }
    parts.join(", ")
}

fn semantics_is_current() {
    let template = read("docs/semantics.in.md");
    assert_eq!(template.matches("{{rules}}").count(), 1, "one place for the rules");
    must_be("docs/semantics.md", &template.replace("{{rules}}", &tables(&shown())));
}

fn each_rule_has_a_passing_and_a_failing_trace() {
    let shown = shown();
    let mut wrong = Vec::new();
    for &rule in Rule::ALL {
        for side in Side::ALL {
            let has = shown.contains_key(&(side, rule));
            let excused = EXCEPTIONS.iter().any(|(r, s, _)| (*r, *s) == (rule, side));
            match (has, excused) {
                (false, false) => wrong.push(format!("{} has no {side:?} trace", rule.id())),
                (true, true) => wrong.push(format!("{} has a {side:?} trace after all", rule.id())),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn each_trace_names_a_rule_or_is_named_by_hand() {
    let text = read("docs/semantics.in.md");
    let by_hand: BTreeSet<&str> = named(&text).into_iter().map(|(name, _)| name).collect();
    for side in Side::ALL {
        let lonely: Vec<String> = traces(side)
            .into_iter()
            .filter(|(name, rules)| rules.is_empty() && !by_hand.contains(name.as_str()))
            .map(|(name, _)| name)
            .filter(|name| !has_origin(name))
            .collect();
        assert!(lonely.is_empty(), "{side:?} traces without a `# rule:` line: {lonely:#?}");
    }
}

/// Patterns from the wild that are no races: one waits for too long, one may be the driver's fault.
const NO_RACES: [u32; 2] = [41, 46];

fn the_patterns_from_the_wild_are_complete() {
    let numbers = |side: Side| -> BTreeSet<u32> {
        let names = traces(side).into_keys();
        names.filter_map(|name| name.strip_prefix("wild_")?.get(..2)?.parse().ok()).collect()
    };
    let all = BTreeSet::from_iter(1..=47);
    assert_eq!(numbers(Side::Pass), all);
    let racy: BTreeSet<u32> = all.into_iter().filter(|n| !NO_RACES.contains(n)).collect();
    assert_eq!(numbers(Side::Fail), racy);
}

/// The names in backticks that look like traces, each with what stands right behind it.
fn named(text: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = text.split('`').collect();
    pieces
        .windows(2)
        .skip(1)
        .step_by(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(name, _)| {
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        })
        .collect()
}

fn traces_named_by_hand_exist() {
    let [pass, fail] = Side::ALL.map(traces);
    let mut wrong = Vec::new();
    for document in ["docs/semantics.in.md", "docs/conformance.md"] {
        let text = read(document);
        // Words of reports and options are in backticks too; a trace has two words or more.
        for (name, behind) in named(&text).into_iter().filter(|(name, _)| name.contains('_')) {
            let found = [pass.contains_key(name), fail.contains_key(name)];
            let said = match behind {
                _ if behind.starts_with(" (pass only)") => [true, false],
                _ if behind.starts_with(", pass only") => [true, false],
                _ if behind.starts_with(" (fail only)") => [false, true],
                _ => [true, true],
            };
            if found != said {
                wrong.push(format!("{document}: {name}: in pass and fail: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The scores stand between these lines.
const SCORES: [&str; 2] = ["<!-- scores -->\n", "<!-- end of scores -->\n"];

fn conformance_is_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .output()
        .expect("the command that prints the scores runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let text = read("docs/conformance.md");
    let (before, rest) = text.split_once(SCORES[0]).expect("a place for the scores");
    let (_, after) = rest.split_once(SCORES[1]).expect("the end of the scores");
    let current = format!("{before}{}{printed}{}{after}", SCORES[0], SCORES[1]);
    must_be("docs/conformance.md", &current);
}

/// Writes the document with `BLESS=1`, otherwise fails where it differs.
pub(crate) fn must_be(document: &str, current: &str) {
    golden::check(&root().join(document), current);
}
