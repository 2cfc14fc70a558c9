//! Every fix, applied as printed: the calls of the report are put at the places that it names, and
//! the finding must be gone.
//!
//! Programs under test are recorded on the simulated driver, and their calls written as a text trace
//! (`streamsan_text::write`); text traces of the corpus are taken as they are. In a text trace the
//! places that a report without stacks names, `after (1)` and `before (2)`, are lines, and the
//! driver's calls have verbs of their own. The report is asked again after each fix, until nothing
//! is left that has one.
//!
//! Deliberately absent: the sources of the programs, which `source_fixes` edits.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use libtest_mimic::Trial;
use serde_json::Value;
use streamsan_analysis::{HostModel, Options, analyse_with};
use streamsan_model::{OpSeq, Operation, Threshold, TraceItem};
use streamsan_report::{Folded, Input, Report};
use streamsan_store::Reader;
use streamsan_testing::corpus;
use streamsan_text::TextTrace;

use crate::command::{Scratch, arguments};
use crate::expected::program_rows;
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("printed_fixes::make_programs_clean", programs_become_clean));
    trials.push(trial("printed_fixes::make_the_corpus_clean", the_corpus_becomes_clean));
}

/// Fixes that one trace may need, one after the other.
const MOST: usize = 64;

/// The outcome of applying what a report prints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Nothing that fails is left.
    Clean,
    /// What is left has no calls to be added: the memory must live longer, a graph be built otherwise.
    NoCalls,
    /// What is left has calls at other places than the two accesses.
    Elsewhere,
}

/// The report of a text trace in JSON.
fn report(trace: &TextTrace, threshold: Threshold) -> Value {
    let host_model = match trace.strict_host_threads() {
        true => HostModel::Strict,
        false => HostModel::default(),
    };
    let options = Options { host_model, ..Options::default() };
    let analysis = analyse_with(options, &trace.items);
    let operations: BTreeMap<OpSeq, &Operation> = trace
        .items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some((operation.g, operation)),
            _ => None,
        })
        .collect();
    let findings: Folded = analysis.findings.iter().cloned().collect();
    let input = Input {
        findings,
        entities: &analysis.entities,
        threshold,
        reasons: Vec::new(),
        coverage: None,
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |g| operations.get(&g).map(|&operation| operation.clone()));
    serde_json::from_str(&report.render_json()).expect("JSON")
}

/// The prefix of a line that says which thread makes its call: `T2:`, `P2T3:`.
fn thread_of(line: &str) -> &str {
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_thread = word.ends_with(':') && word.starts_with(['T', 'P']);
    if is_thread { word } else { "" }
}

/// A stream as a text trace names it; `line` is that of the access in the stream. The default stream
/// is that of the context which is current there.
fn stream<'a>(code: &'a str, line: &'a str, name: Option<&'a str>) -> &'a str {
    let named = |what: &str| {
        let of_context = format!("/{what}");
        line.split_whitespace().find(|word| *word == what || word.ends_with(&of_context))
    };
    match code {
        "CU_STREAM_LEGACY" => named("legacy").unwrap_or("legacy"),
        "CU_STREAM_PER_THREAD" => named("ptds").unwrap_or("ptds"),
        "stream_of_1" | "stream_of_2" => name.unwrap_or(code),
        name => name,
    }
}

/// A call of the driver as a line of a text trace; `event` is its event, `lines` those of the two
/// accesses.
fn line_of(code: &str, event: &str, finding: &Value, lines: [&str; 2]) -> Option<String> {
    let (call, rest) = code.split_once('(')?;
    let parameters: Vec<&str> = rest.strip_suffix(')')?.split(", ").collect();
    let of = |side: usize, code| {
        let name = finding["accesses"][side]["stream_name"].as_str();
        stream(code, lines[side], name).to_owned()
    };
    Some(match (call, parameters.as_slice()) {
        ("cuEventRecord", ["event", on]) => format!("record {event} {}", of(0, on)),
        ("cuStreamWaitEvent", [to, "event", "0"]) => format!("wait {} {event}", of(1, to)),
        ("cuStreamSynchronize", [on]) => format!("sync_stream {}", of(0, on)),
        _ => return None,
    })
}

/// The trace with the calls of a finding's fix, or why there is none to make.
fn with_fix(text: &str, finding: &Value, number: usize) -> Result<String, Outcome> {
    let steps = finding["fix"]["steps"].as_array().filter(|steps| !steps.is_empty());
    let steps = steps.ok_or(Outcome::NoCalls)?;
    let event = format!("fix{number}");
    let line_number = |side: usize| finding["accesses"][side]["op"].as_u64().expect("a number");
    let places = [0, 1].map(|side| line_number(side) as usize - 1);
    let both = places.map(|place| text.lines().nth(place).expect("numbered by line"));
    let (mut behind, mut ahead) = (BTreeMap::new(), BTreeMap::new());
    for step in steps {
        let word = |key: &str| step[key].as_str().expect("a text");
        let code = line_of(word("code"), &event, finding, both);
        let code = code.unwrap_or_else(|| panic!("not one of the driver's calls: {step}"));
        let (lines, side) = match word("place") {
            "after (1)" => (&mut behind, 0),
            "before (2)" => (&mut ahead, 1),
            _ => return Err(Outcome::Elsewhere),
        };
        let added = format!("{} {code}", thread_of(both[side])).trim_start().to_owned();
        lines.insert(places[side], added);
    }
    // Functions of the host are told by the line that enqueued them.
    let moved = |line: usize| line + ahead.range(..line).count() + behind.range(..line - 1).count();
    let mut fixed = String::new();
    for (place, line) in text.lines().enumerate() {
        let enqueued = line.split_once("run_host_fn ");
        let number = |rest: &str| rest.split_whitespace().next()?.parse::<usize>().ok();
        let line = match enqueued.and_then(|(_, rest)| number(rest)) {
            Some(from) => {
                let verb = |line| format!("run_host_fn {line}");
                line.replacen(&verb(from), &verb(moved(from)), 1)
            }
            None => line.to_owned(),
        };
        let around = [ahead.get(&place), Some(&line), behind.get(&place)];
        around.into_iter().flatten().for_each(|line| fixed += &format!("{line}\n"));
    }
    Ok(fixed)
}

/// Applies fixes as long as the report has any that can be.
fn applied(name: &str, text: &str, threshold: Threshold) -> (Outcome, usize) {
    let mut text = text.to_owned();
    for number in 0..MOST {
        let trace = streamsan_text::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        let report = report(&trace, threshold);
        let findings = report["findings"].as_array().expect("a list");
        let mut left = Outcome::Clean;
        let mut next = None;
        for finding in findings.iter().filter(|finding| finding["fails"] == true) {
            match with_fix(&text, finding, number) {
                Ok(fixed) => {
                    next = Some((fixed, finding.clone()));
                    break;
                }
                Err(why) => left = left.max(why),
            }
        }
        let Some((fixed, finding)) = next else { return (left, number) };
        assert_less(name, [&text, &fixed], &finding, threshold);
        text = fixed;
    }
    panic!("{name}: {MOST} fixes are not enough\n{text}");
}

/// Holds that a fix leaves fewer occurrences of anything than there were. Occurrences that it leaves
/// may be of another class, since an event that is there now comes nearer than none.
fn assert_less(name: &str, [before, after]: [&str; 2], finding: &Value, threshold: Threshold) {
    let occurrences = |text: &str| -> u64 {
        let trace = streamsan_text::parse(text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        let report = report(&trace, threshold);
        let findings = report["findings"].as_array().expect("a list").iter();
        let failing = findings.filter(|finding| finding["fails"] == true);
        failing.map(|finding| finding["count"].as_u64().expect("a number")).sum()
    };
    assert!(occurrences(after) < occurrences(before), "{name}: {:#}\n{after}", finding["fix"]);
}

fn programs_become_clean() {
    let mut outcomes: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for row in program_rows().into_iter().filter(|row| row.verdict == "RACY") {
        let threshold: Threshold = row.fail_on.parse().expect("a threshold");
        let scratch = Scratch::new();
        let program = programs::rust(&row.program);
        let mut options = scratch.run_options();
        // Lines of sources would be places, and a text trace has none.
        options.push("--stacks=off".into());
        let words = [OsStr::new("--"), program.as_os_str(), OsStr::new(&row.variant)];
        let first = ["run", "--sim", "--fail-on", row.fail_on.as_str()];
        let run = arguments(&first, &options, &words);
        scratch.finish(&mut scratch.streamsan(&run)).expect_code(66);
        let reader = Reader::open(&scratch.trace()).expect("a trace");
        let items = reader.items().collect::<Result<Vec<_>, _>>().expect("the trace is whole");
        let name = format!("{} {}", row.program, row.variant);
        let (outcome, _) = applied(&name, &streamsan_text::write(&items), threshold);
        outcomes.entry(outcome).or_default().push(name);
    }
    let clean = outcomes.get(&Outcome::Clean).map_or(0, Vec::len);
    assert!(clean >= 60, "{outcomes:#?}");
}

fn the_corpus_becomes_clean() {
    let mut outcomes: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for path in corpus::traces("fail") {
        let text = fs::read_to_string(&path).expect("a readable trace");
        // Expectations name lines, which move.
        let lines = text.lines().map(|line| line.split("#~").next().unwrap_or_default().trim_end());
        let text = lines.collect::<Vec<_>>().join("\n");
        let name = path.file_name().map_or("", |name| name.to_str().expect("UTF-8")).to_owned();
        let (outcome, fixes) = applied(&name, &text, Threshold::Possible);
        if fixes > 0 || outcome != Outcome::Clean {
            outcomes.entry(outcome).or_default().push(name);
        }
    }
    let clean = outcomes.get(&Outcome::Clean).map_or(0, Vec::len);
    assert!(clean >= 300, "{outcomes:#?}");
}
