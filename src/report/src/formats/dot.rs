//! DOT: the part of the happens-before graph around a race, for Graphviz.
//!
//! The drawing shows the two accesses, the operations that the finding names, and the
//! synchronisation edges around them; plain operations of a stream in between are only counted.
//! Solid lines are order, a dashed one is the order that is missing.

use crate::Report;
use crate::names::{number, op};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use streamsan_model::{Edge, Finding, OpSeq, Operation, StreamId, ThreadId, Tier};
use streamsan_names::printable_text;

/// Number of operations before the later access that are searched.
const WINDOW: u64 = 100_000;
/// Operations that are drawn.
const NODES: usize = 40;
/// Greatest distance, in lines, between the accesses and a drawn operation.
const STEPS: usize = 4;

/// An operation as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    lane: (Option<StreamId>, ThreadId),
    label: String,
}

/// The surroundings of one finding, collected operation by operation.
#[derive(Clone, Debug)]
pub struct Neighbourhood<'a> {
    report: &'a Report<'a>,
    finding: &'a Finding,
    /// Operations that may be drawn: ends of edges, and what the finding names.
    wanted: BTreeSet<OpSeq>,
    edges: Vec<Edge>,
    steps: BTreeMap<OpSeq, Step>,
    /// Number of operations of a lane before each step of it.
    before: BTreeMap<OpSeq, u64>,
    seen: BTreeMap<(Option<StreamId>, ThreadId), u64>,
}

impl<'a> Neighbourhood<'a> {
    /// The surroundings of a finding of the report; `edges` are all of the trace.
    pub fn new(report: &'a Report<'a>, finding: &'a Finding, edges: &[Edge]) -> Self {
        let last = finding.second.op.max(finding.first.op);
        let first = finding.first.op.min(finding.second.op);
        let start = OpSeq(
            finding
                .knows
                .map_or(first.0, |knows| knows.0.min(first.0))
                .max(last.0.saturating_sub(WINDOW)),
        );
        let edges: Vec<Edge> =
            edges.iter().filter(|e| e.from >= start && e.to <= last).copied().collect();
        let named = [finding.knows, finding.nearest, finding.masked_by];
        let wanted = named.into_iter().flatten().chain([finding.first.op, finding.second.op]);
        let wanted = wanted.chain(edges.iter().flat_map(|edge| [edge.from, edge.to])).collect();
        let (steps, before, seen) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { report, finding, wanted, edges, steps, before, seen }
    }

    /// Takes an operation. They come in the order of the trace.
    pub fn operation(&mut self, operation: &Operation) {
        let stream = operation.action.stream();
        // Calls without a stream are in the order of their thread.
        let lane = (stream, if stream.is_some() { ThreadId(0) } else { operation.thread });
        let seen = self.seen.entry(lane).or_default();
        *seen += 1;
        if !self.wanted.contains(&operation.g) {
            return;
        }
        self.before.insert(operation.g, *seen);
        let kernel = [&self.finding.first, &self.finding.second]
            .into_iter()
            .find(|side| side.op == operation.g)
            .map(|side| {
                let number = if side.op == self.finding.first.op { "(1)" } else { "(2)" };
                let mode = side.access.mode.weak().description().to_uppercase();
                format!("{number} {mode} {}", self.report.what(side))
            });
        let called = kernel
            .unwrap_or_else(|| self.report.called(&operation.api, operation.stack).into_owned());
        let mut label = format!("{called}\n{}", op(operation.g));
        let stack = self.report.stack_of(self.finding, operation.g).or(operation.stack);
        if let Some(place) = self.report.source_place(stack) {
            let _ = write!(label, "\n{}", place.description());
        }
        self.steps.insert(operation.g, Step { lane, label });
    }

    /// Lines of order between operations that may be drawn: edges, and neighbours in a lane.
    fn order(&self) -> Vec<(OpSeq, OpSeq, String, &'static str)> {
        let mut lines = Vec::new();
        let mut lanes: BTreeMap<(Option<StreamId>, ThreadId), OpSeq> = BTreeMap::new();
        for (&g, step) in &self.steps {
            if let Some(last) = lanes.insert(step.lane, g) {
                let between = self.before[&g] - self.before[&last] - 1;
                let label =
                    if between == 0 { String::new() } else { format!("{} more", number(between)) };
                lines.push((last, g, label, "color=gray"));
            }
        }
        for edge in &self.edges {
            let style = match edge.tier {
                Tier::Documented => "color=blue",
                Tier::Incidental => "color=orange style=dotted",
            };
            lines.push((edge.from, edge.to, edge.kind.description().to_owned(), style));
        }
        lines.retain(|(from, to, ..)| {
            from != to && self.steps.contains_key(from) && self.steps.contains_key(to)
        });
        lines
    }

    /// The operations near the two accesses.
    fn near(&self, lines: &[(OpSeq, OpSeq, String, &str)]) -> BTreeSet<OpSeq> {
        let named = [self.finding.knows, self.finding.nearest, self.finding.masked_by];
        let named = named.into_iter().flatten();
        let mut near: BTreeSet<OpSeq> =
            named.chain([self.finding.first.op, self.finding.second.op]).collect();
        let mut neighbours: BTreeMap<OpSeq, Vec<OpSeq>> = BTreeMap::new();
        for (from, to, ..) in lines {
            neighbours.entry(*from).or_default().push(*to);
            neighbours.entry(*to).or_default().push(*from);
        }
        let mut border: Vec<OpSeq> = near.iter().copied().collect();
        for _ in 0..STEPS {
            let next: BTreeSet<OpSeq> =
                border.iter().filter_map(|g| neighbours.get(g)).flatten().copied().collect();
            border = next.into_iter().filter(|g| !near.contains(g)).collect();
            for &g in &border {
                if near.len() < NODES {
                    near.insert(g);
                }
            }
        }
        near.retain(|g| self.steps.contains_key(g));
        near
    }

    /// One graph of all findings, each in a box of its own.
    pub fn render(around: &[Self]) -> String {
        let mut text =
            "digraph streamsan {\n  rankdir=TB;\n  node [shape=box fontname=monospace];\n"
                .to_owned();
        for (around, number) in around.iter().zip(1..) {
            around.render_part(number, &mut text);
        }
        text += "}\n";
        printable_text(&text).into_owned()
    }

    /// The part of a finding. The names of its nodes begin with its number: an operation may stand in
    /// the parts of several.
    fn render_part(&self, number: usize, text: &mut String) {
        let lines = self.order();
        let near = self.near(&lines);
        let finding = self.finding;
        let title = format!(
            "{}: {}, id {}",
            finding.class.description(),
            crate::text::headline(self.report, finding),
            finding.fingerprint
        );
        let label = quoted(&title);
        let _ = writeln!(text, "  subgraph cluster_f{number} {{\n    label={label};");
        let mut lanes: BTreeMap<(Option<StreamId>, ThreadId), Vec<OpSeq>> = BTreeMap::new();
        for &g in &near {
            lanes.entry(self.steps[&g].lane).or_default().push(g);
        }
        for (index, ((stream, thread), steps)) in lanes.into_iter().enumerate() {
            let name = match stream {
                Some(stream) => self.report.stream(stream),
                None => format!("host thread {thread}"),
            };
            let label = quoted(&name);
            let _ =
                writeln!(text, "    subgraph cluster_f{number}_{index} {{\n      label={label};");
            for g in steps {
                let color = match g {
                    _ if g == finding.first.op || g == finding.second.op => " color=red penwidth=2",
                    _ => "",
                };
                let label = quoted(&self.steps[&g].label);
                let _ = writeln!(text, "      f{number}_op{g} [label={label}{color}];");
            }
            *text += "    }\n";
        }
        let line = |from: OpSeq, to: OpSeq| format!("    f{number}_op{from} -> f{number}_op{to}");
        for (from, to, label, style) in lines {
            if near.contains(&from) && near.contains(&to) {
                let label = quoted(&label);
                let _ = writeln!(text, "{} [label={label} {style}];", line(from, to));
            }
        }
        let missing = line(finding.first.op, finding.second.op);
        let style = "color=red style=dashed constraint=false";
        let _ = writeln!(text, "{missing} [label=\"not ordered\" {style}];\n  }}");
    }
}

/// A string of DOT: the only newlines are those between the lines of a label.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
