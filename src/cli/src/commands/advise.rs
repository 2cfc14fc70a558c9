//! `streamsan advise`: synchronisation that orders nothing, by what it costs the host, and the lines of
//! the program that make it.

use super::output::{print, print_json, warn};
use super::trace::{Concluded, Trace};
use crate::error::Error;
use crate::options::AdviseOptions;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use streamsan_analysis::{Engine, Options, Sink, Without};
use streamsan_model::{
    Action, AllocationId, Edge, Entities, ExitCode, Finding, Lint, OpSeq, Operation, StackId,
    Threshold, TraceItem,
};
use streamsan_report::{Report, SourcePlace, reason_in_words};

/// Kinds of calls that are tried, those that cost most first; each needs one more analysis.
const TRIED: usize = 64;

/// Calls that do the same.
struct Calls {
    /// As the report names them.
    name: String,
    /// Where they are made, where their stacks are known.
    place: Option<Place>,
    operations: BTreeSet<OpSeq>,
    /// Time that the host spent in them.
    nanoseconds: u64,
}

/// A place in the program.
#[derive(Clone)]
struct Place {
    /// `train.py:12 in step`.
    words: String,
    /// Without a source file a place is a function of an image.
    source: Option<SourcePlace>,
}

/// A pair of accesses: both operations, and the memory.
type Pair = (OpSeq, OpSeq, AllocationId);

#[derive(Default)]
struct Pairs(BTreeSet<Pair>);

impl Sink for Pairs {
    fn edge(&mut self, _: &Edge) {}

    fn finding(&mut self, finding: Finding) {
        self.0.insert((finding.first.op, finding.second.op, finding.allocation));
    }

    fn lint(&mut self, _: Lint) {}
}

/// The data that the analysis needs again and again.
struct Trial<'a> {
    trace: &'a Trace,
    options: Options,
    entities: Entities,
    left_out: BTreeSet<(OpSeq, AllocationId)>,
}

impl Trial<'_> {
    /// The findings without some operations.
    fn without(&self, removed: &BTreeSet<OpSeq>) -> Result<BTreeSet<Pair>, Error> {
        let mut without = Without::new(&self.entities, removed.clone(), self.left_out.clone());
        let mut engine = Engine::new(self.options.clone());
        let mut pairs = Pairs::default();
        self.trace.items(|item| without.feed(&item, |item| engine.feed(item, &mut pairs)))?;
        without.finish(|item| engine.feed(item, &mut pairs));
        engine.finish(&mut pairs);
        Ok(pairs.0)
    }

    /// Finds out what the host cannot be doing, and answers the findings of the trace as it is.
    fn settle(&mut self) -> Result<BTreeSet<Pair>, Error> {
        loop {
            let pairs = self.without(&BTreeSet::new())?;
            let before = self.left_out.len();
            for (first, second, allocation) in &pairs {
                for g in [first, second] {
                    if Without::is_probe(*g) {
                        self.left_out.insert((Without::original(*g), *allocation));
                    }
                }
            }
            if self.left_out.len() == before {
                return Ok(pairs);
            }
        }
    }
}

/// `streamsan advise`.
///
/// # Errors
///
/// A trace that cannot be read.
pub(crate) fn advise(options: &AdviseOptions) -> Result<ExitCode, Error> {
    let concluded = Concluded::open(&options.file, false)?;
    let report = concluded.report(Threshold::default());
    if !report.reasons().is_empty() {
        for reason in report.reasons() {
            warn(&format!("incomplete: {}", reason_in_words(reason)));
        }
        warn("what was not seen may hang on any synchronisation, so nothing can be advised");
        return Ok(ExitCode::INCOMPLETE);
    }
    let (useless, untried) = useless(&concluded, &report)?;
    if options.json {
        print_json(&as_json(&useless, untried));
    } else {
        print(&as_text(&useless, untried));
    }
    Ok(ExitCode::SUCCESS)
}

/// What `advise --json` prints of a trace; `None` where not everything was seen.
///
/// # Errors
///
/// As [`advise`].
#[cfg(test)]
pub(super) fn document(file: &std::path::Path) -> Result<Option<Value>, Error> {
    let concluded = Concluded::open(file, false)?;
    let report = concluded.report(Threshold::default());
    if !report.reasons().is_empty() {
        return Ok(None);
    }
    let (useless, untried) = useless(&concluded, &report)?;
    Ok(Some(as_json(&useless, untried)))
}

/// The kinds of calls that order nothing, and how many were not tried.
fn useless(concluded: &Concluded, report: &Report<'_>) -> Result<(Vec<Calls>, usize), Error> {
    let mut calls: BTreeMap<(String, Option<String>), Calls> = BTreeMap::new();
    let mut places: BTreeMap<StackId, Option<Place>> = BTreeMap::new();
    let mut place_of = |stack: Option<StackId>| -> Option<Place> {
        let find = || {
            let words = report.place_in_words(stack)?;
            Some(Place { words, source: report.source_place(stack) })
        };
        places.entry(stack?).or_insert_with(find).clone()
    };
    concluded.trace.items(|item| {
        if let TraceItem::Operation(operation) = &item
            && is_candidate(operation)
        {
            let name = report.describe(operation);
            let place = place_of(operation.stack);
            let kind = (name.clone(), place.as_ref().map(|place| place.words.clone()));
            let calls = calls.entry(kind).or_insert_with(|| Calls {
                name,
                place,
                operations: BTreeSet::new(),
                nanoseconds: 0,
            });
            calls.operations.insert(operation.g);
            let time = operation.time.map_or(0, |time| time.end_ns.saturating_sub(time.start_ns));
            calls.nanoseconds += time;
        }
    })?;
    let mut calls: Vec<Calls> = calls.into_values().collect();
    calls.sort_by_key(|calls| {
        let Calls { nanoseconds, operations, .. } = calls;
        (std::cmp::Reverse((*nanoseconds, operations.len())), operations.first().copied())
    });
    let trace = &concluded.trace;
    let engine = trace.options(false)?;
    let entities = trace.analyse(engine.clone(), &mut Pairs::default())?;
    let mut trial = Trial { trace, options: engine, entities, left_out: BTreeSet::new() };
    let as_it_is = trial.settle()?;
    let (mut removed, mut useless) = (BTreeSet::new(), Vec::new());
    let untried = calls.len().saturating_sub(TRIED);
    for calls in calls.into_iter().take(TRIED) {
        let mut more: BTreeSet<OpSeq> = removed.clone();
        more.extend(&calls.operations);
        // The advised calls can all be taken away together.
        if trial.without(&more)?.is_subset(&as_it_is) {
            removed = more;
            useless.push(calls);
        }
    }
    Ok((useless, untried))
}

/// Calls that do nothing but wait. A query may steer the program whatever it orders.
fn is_candidate(operation: &Operation) -> bool {
    operation.status.is_success()
        && operation.exit.is_some()
        && matches!(
            operation.action,
            Action::StreamWaitEvent { .. }
                | Action::StreamSynchronize { .. }
                | Action::EventSynchronize { .. }
                | Action::ContextSynchronize { .. }
        )
}

fn as_text(useless: &[Calls], untried: usize) -> String {
    let mut text = String::new();
    for Calls { name, place, operations, nanoseconds } in useless {
        let first = operations.first().map_or(0, |g| g.0);
        let times = operations.len();
        let _ = write!(text, "{name}: {times}x, first at #{first}");
        if *nanoseconds > 0 {
            let _ = write!(text, ", {} us of host time", nanoseconds / 1000);
        }
        text.push('\n');
        if let Some(place) = place {
            let _ = writeln!(text, "    at {}", place.words);
        }
    }
    if untried > 0 {
        let _ = writeln!(text, "{untried} more kinds of calls that wait were not tried");
    }
    text += match useless.len() {
        0 => "every synchronisation that was tried orders something\n",
        _ => {
            "without all of these together the trace has no other races, and the host may use its \
             memory where it could before. What a trace does not show may still need them: times \
             that are measured, and what the program does by itself with other programs or devices\n"
        }
    };
    text
}

fn as_json(useless: &[Calls], untried: usize) -> Value {
    let useless: Vec<Value> = useless
        .iter()
        .map(|calls| {
            let source = calls.place.as_ref().and_then(|place| place.source.as_ref());
            json!({
                "call": calls.name,
                "place": source.map(|source| json!({
                    "file": source.shown,
                    "line": source.line,
                    "function": source.function,
                })),
                "count": calls.operations.len(),
                "first_op": calls.operations.first().map(|g| g.0),
                "host_ns": calls.nanoseconds,
            })
        })
        .collect();
    json!({"schema": 1, "useless": useless, "untried": untried})
}
