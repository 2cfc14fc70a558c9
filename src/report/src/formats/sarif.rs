//! SARIF 2.1.0 (OASIS Standard, 2020): a result for each mistake, a rule for each class.
//!
//! The later access is the location of a result and the earlier one is related to it. A code flow
//! has one thread flow for each stream, with the relevant operations numbered in issue order. A run
//! that was not seen completely has not executed successfully, whatever its findings.

use super::place::Place;
use crate::names::op;
use crate::{Disposition, Group, LintGroup, Page, Report, explain};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    CallFrame, Confidence, Finding, FindingAccess, IncompleteReason, OpSeq, RaceClass, Severity,
    StackId, StreamId, Verdict, shown_path,
};

/// Results of a run; GitHub keeps 25,000 and shows 5,000.
const RESULTS: usize = 5000;
/// Columns of a rule's help, where it is shown as text.
const HELP_WIDTH: usize = 80;
/// The meaning of a latent finding, whatever its class.
const HIDDEN: &str = "Only behaviour that NVIDIA does not guarantee hides this race today.";
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(crate) fn render(report: &Report<'_>, version: &str) -> String {
    let rules = rules(report);
    let index: BTreeMap<&str, usize> =
        rules.iter().enumerate().map(|(index, rule)| (rule.id.as_str(), index)).collect();
    let findings = report.groups.iter().map(|group| result(report, group, &index));
    let lints = report.lints.iter().map(|group| lint(report, group, &index));
    let total = report.groups.len() + report.lints.len();
    let results: Vec<Value> = findings.chain(lints).take(RESULTS).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "streamsan",
                "fullName": "StreamSanitizer",
                "semanticVersion": version,
                "rules": rules.iter().map(|rule| rule.value.clone()).collect::<Vec<_>>(),
            }},
            "invocations": [invocation(report, total)],
            "results": results,
        }],
    });
    let text = serde_json::to_string_pretty(&document);
    text.expect("numbers, texts and lists of them are JSON") + "\n"
}

struct Rule {
    id: String,
    value: Value,
}

/// The rules that the results name, sorted, each with the page on its class. The project has no public
/// address, so no rule has a `helpUri`.
fn rules(report: &Report<'_>) -> Vec<Rule> {
    let findings = report.groups.iter().map(|g| (g.finding.class, g.finding.severity));
    let lints = report.lints.iter().map(|g| (g.lint.class, Severity::Lint));
    let used: BTreeSet<(RaceClass, Severity)> = findings.chain(lints).collect();
    let mut rules: Vec<Rule> = used
        .into_iter()
        .map(|(class, severity)| {
            let id = report.rule(class, severity);
            let page = Page::of(class);
            // A lint of a class of races has a meaning of its own.
            let (short, full) = match severity {
                Severity::Race => (page.sentence(), page.summary()),
                Severity::Latent => (
                    format!("Hidden today: {}", page.sentence()),
                    format!("{HIDDEN} {}", page.summary()),
                ),
                Severity::Lint => {
                    let about = format!("{}.", explain::lint(class));
                    (about.clone(), format!("{about} {}", page.summary()))
                }
            };
            let value = json!({
                "id": id,
                "shortDescription": {"text": short},
                "fullDescription": {"text": full},
                "help": {"text": page.render(HELP_WIDTH, false), "markdown": page.markdown()},
                "defaultConfiguration": {"level": match severity {
                    Severity::Race => "error",
                    Severity::Latent => "warning",
                    Severity::Lint => "note",
                }},
                "properties": {"tags": ["cuda", "concurrency"]},
            });
            Rule { id, value }
        })
        .collect();
    rules.sort_by(|a, b| a.id.cmp(&b.id));
    rules
}

/// The invocation, with the reasons of an incomplete run and the number of results that were left
/// out.
fn invocation(report: &Report<'_>, total: usize) -> Value {
    let mut notifications: Vec<Value> = report
        .told_reasons()
        .map(|(reason, text)| {
            json!({
                "level": "error",
                "message": {"text": text},
                "descriptor": {"id": reason_id(reason)},
            })
        })
        .collect();
    if *report.verdict() == Verdict::NoCuda {
        notifications.push(json!({
            "level": "warning",
            "message": {"text": Verdict::NO_CUDA_MEANS},
            "descriptor": {"id": "no-cuda"},
        }));
    }
    for unused in report.unused() {
        notifications.push(json!({
            "level": "warning",
            "message": {"text": unused.description()},
            "descriptor": {"id": "unused"},
        }));
    }
    if total > RESULTS {
        notifications.push(json!({
            "level": "warning",
            "message": {"text": format!("{} of {total} results are written", RESULTS)},
            "descriptor": {"id": "result-limit"},
        }));
    }
    let mut properties = json!({"verdict": report.verdict.description()});
    if let Some(host) = report.host_accesses() {
        properties["hostAccesses"] = json!(crate::json::host_accesses(host));
    }
    json!({
        "executionSuccessful": report.input.reasons.is_empty(),
        "toolExecutionNotifications": notifications,
        "properties": properties,
    })
}

fn reason_id(reason: &IncompleteReason) -> &'static str {
    crate::json::reason_kind(reason)
}

fn level(fails: bool, severity: Severity) -> &'static str {
    match severity {
        _ if fails => "error",
        Severity::Lint => "note",
        Severity::Race | Severity::Latent => "warning",
    }
}

fn result(report: &Report<'_>, group: &Group, rules: &BTreeMap<&str, usize>) -> Value {
    let finding = &group.finding;
    let rule = report.rule(finding.class, finding.severity);
    let mut text = format!("{}\n\n", report.title(group));
    text += &report.in_full(group).join("\n");
    let (whole, report) = (report, report.part_of(group));
    let id = finding.fingerprint.to_string();
    let mut value = json!({
        "ruleIndex": rules[rule.as_str()],
        "ruleId": rule,
        "level": level(group.fails, finding.severity),
        "kind": "fail",
        "rank": match finding.confidence {
            Confidence::Certain => 100.0,
            Confidence::Likely => 70.0,
            Confidence::Possible => 30.0,
        },
        "message": {"text": text},
        "locations": [location(report, &finding.second, "(2)", None)],
        "relatedLocations": related(report, finding),
        "stacks": stacks(report, finding),
        "codeFlows": [code_flow(report, finding)],
        "partialFingerprints": fingerprints(&id),
        "occurrenceCount": group.count,
        "properties": {
            "confidence": finding.confidence.description(),
            "kind": finding.kind.description(),
            "severity": finding.severity.description(),
        },
    });
    settle(whole, &mut value, &group.disposition);
    value
}

/// GitHub computes a hash of the line itself where it is not given, for which there is no line.
fn fingerprints(id: &str) -> Value {
    json!({"streamsan/v1": id, "primaryLocationLineHash": format!("{id}:1")})
}

fn settle(report: &Report<'_>, result: &mut Value, disposition: &Disposition) {
    if report.has_baseline {
        let state = if *disposition == Disposition::Known { "unchanged" } else { "new" };
        result["baselineState"] = json!(state);
    }
    if let Disposition::Suppressed { reason, .. } = disposition {
        result["suppressions"] =
            json!([{"kind": "external", "status": "accepted", "justification": reason}]);
    }
    if *disposition == Disposition::Allowed {
        let justification = "allowed by the tests that made it";
        result["suppressions"] = json!([
            {"kind": "inSource", "status": "accepted", "justification": justification}
        ]);
    }
    if let Some(upstream) = disposition.upstream() {
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": format!("known upstream in {}", upstream.description()),
            "properties": {
                "knownUpstream": upstream.entry,
                "library": upstream.library,
                "report": upstream.report,
            },
        }]);
    }
}

fn lint(report: &Report<'_>, group: &LintGroup, rules: &BTreeMap<&str, usize>) -> Value {
    let lint = &group.lint;
    let rule = report.rule(lint.class, Severity::Lint);
    let id = lint.fingerprint.to_string();
    let (whole, report) = (report, report.part_of_lint(group));
    let call = |api: &str, at: OpSeq, stack: Option<StackId>| {
        located(report, (at, stack), format!("{api} at {}", op(at)), named(api, at), None)
    };
    let related = lint.related.iter().map(|&g| call(&report.call(g), g, lint.related_stack));
    let related: Vec<Value> = related.collect();
    let mut value = json!({
        "ruleIndex": rules[rule.as_str()],
        "ruleId": rule,
        "level": level(group.fails, Severity::Lint),
        "kind": "fail",
        "message": {"text": whole.lint_in_words(group)},
        "locations": [call(&report.called(&lint.api, lint.stack), lint.op, lint.stack)],
        "relatedLocations": related,
        "partialFingerprints": fingerprints(&id),
        "occurrenceCount": group.count,
    });
    if let Some(library) = &group.library {
        value["properties"] = json!({"library": library});
    }
    settle(whole, &mut value, &group.disposition);
    value
}

fn location(report: &Report<'_>, access: &FindingAccess, number: &str, id: Option<u32>) -> Value {
    let message = format!("{number} {}", report.access_in_words(access));
    let mut name = named(&report.what(access), access.op);
    if let Some((mangled, whole)) =
        access.kernel.as_deref().and_then(|kernel| Some((kernel, streamsan_names::whole(kernel)?)))
    {
        name["fullyQualifiedName"] = json!(format!("{whole} at {}", op(access.op)));
        name["decoratedName"] = json!(mangled);
    }
    located(report, (access.op, access.stack), message, name, id)
}

/// A call as a logical location.
fn named(name: &str, at: OpSeq) -> Value {
    json!({"name": name, "fullyQualifiedName": format!("{name} at {}", op(at)), "kind": "function"})
}

/// The earlier access, and where the memory was allocated.
fn related(report: &Report<'_>, finding: &Finding) -> Vec<Value> {
    let mut related = vec![location(report, &finding.first, "(1)", Some(1))];
    let stack = report.stack_of_allocation(finding.allocation);
    if let Some(place) = report.source_place(stack) {
        let place = Place { file: place.shown, line: place.line.map(u64::from) };
        related.push(json!({
            "id": 2,
            "physicalLocation": physical(&place),
            "message": {"text": format!("{} was allocated here", report.memory(finding.allocation))},
        }));
    }
    related
}

/// The stacks of both accesses and of the allocation, where they were recorded.
fn stacks(report: &Report<'_>, finding: &Finding) -> Vec<Value> {
    let allocation = report.stack_of_allocation(finding.allocation);
    let all = [
        ("(1)", finding.first.stack),
        ("(2)", finding.second.stack),
        ("the allocation", allocation),
    ];
    let known = all.into_iter().filter_map(|(what, id)| Some((what, report.stack(id)?)));
    known
        .map(|(what, stack)| {
            let frames: Vec<Value> = stack.frames.iter().map(|f| stack_frame(report, f)).collect();
            json!({"message": {"text": what}, "frames": frames})
        })
        .collect()
}

fn stack_frame(report: &Report<'_>, frame: &CallFrame<'_>) -> Value {
    let mut location = json!({"message": {"text": report.frame(frame)}});
    if let Some(file) = frame.file() {
        let file = shown_path(file, report.directory.as_deref());
        location["physicalLocation"] = physical(&Place { file, line: frame.line().map(u64::from) });
    }
    if let Some(function) = frame.function() {
        location["logicalLocations"] = json!([{"name": function, "kind": "function"}]);
    }
    let mut value = json!({"location": location});
    if let Some((image, _)) = frame.image.filter(|(image, _)| !image.is_empty()) {
        value["module"] = json!(image);
    }
    value
}

fn physical(place: &Place) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(&place.file)}});
    if let Some(line) = place.line {
        physical["region"] = json!({"startLine": line.max(1)});
    }
    physical
}

/// An operation as a location: the call as a logical one, and the file where there is one.
fn located(
    report: &Report<'_>,
    (at, stack): (OpSeq, Option<StackId>),
    message: String,
    name: Value,
    id: Option<u32>,
) -> Value {
    let mut location = Map::new();
    if let Some(id) = id {
        location.insert("id".to_owned(), json!(id));
    }
    if let Some(place) = report.place(at, stack) {
        location.insert("physicalLocation".to_owned(), physical(&place));
    }
    location.insert("logicalLocations".to_owned(), json!([name]));
    location.insert("message".to_owned(), json!({"text": message}));
    Value::Object(location)
}

/// A path as a URI reference: everything but unreserved characters and slashes escaped.
fn uri(path: &str) -> String {
    let mut text = String::new();
    if path.starts_with('/') {
        text += "file://";
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// One thread flow for each stream, the host among them.
fn code_flow(report: &Report<'_>, finding: &Finding) -> Value {
    let mut steps: Vec<(OpSeq, Option<StreamId>, String, &str)> = vec![
        (
            finding.first.op,
            finding.first.stream,
            format!("(1) {}", report.access_in_words(&finding.first)),
            "essential",
        ),
        (
            finding.second.op,
            finding.second.stream,
            format!("(2) {}", report.access_in_words(&finding.second)),
            "essential",
        ),
    ];
    for (g, what) in [
        (finding.knows, "the last that the other side knows"),
        (finding.nearest, "what comes nearest to ordering them"),
        (finding.masked_by, "what happens to order them today"),
    ] {
        let Some(g) = g.filter(|&g| g != finding.first.op && g != finding.second.op) else {
            continue;
        };
        if steps.iter().any(|(at, ..)| *at == g) {
            continue;
        }
        let operation = report.operations.get(&g);
        let stream = match operation {
            Some(operation) => operation.action.stream(),
            None if what.starts_with("the last") => finding.first.stream,
            None => finding.second.stream,
        };
        steps.push((g, stream, format!("{}: {what}", report.call(g)), "important"));
    }
    steps.sort_by_key(|(g, ..)| *g);
    let mut flows: BTreeMap<Option<StreamId>, Vec<Value>> = BTreeMap::new();
    for (order, (g, stream, message, importance)) in steps.into_iter().enumerate() {
        let name = report.side(stream);
        flows.entry(stream).or_default().push(json!({
            "location":
                located(report, (g, report.stack_of(finding, g)), message, named(&name, g), None),
            "executionOrder": order + 1,
            "importance": importance,
        }));
    }
    let flows: Vec<Value> = flows
        .into_iter()
        .map(|(stream, locations)| json!({"id": report.side(stream), "locations": locations}))
        .collect();
    json!({"threadFlows": flows})
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_are_escaped() {
        assert_eq!(uri("a b/c#1.db"), "a%20b/c%231.db");
        assert_eq!(uri("/tmp/x.db"), "file:///tmp/x.db");
    }
}
