//! One program gives one report, whether it is recorded live, read from the stored trace or
//! written down as text: every trace of the corpus that can be performed, and random ones, under
//! two schedules.
//!
//! Live and stored reports are equal to the byte. The text's report is equal in everything that is
//! not an id, an address, a handle or a name: operations are compared by their entry point and
//! their place among the calls of it, bytes by their offset in the allocation. The text is first
//! made to tell what a run tells: which entry point made the memory that is older than the trace,
//! and each row of a kernel's accesses for itself, because a run does not see that they are rows.
//! The remaining difference: pageable memory is one allocation over the whole address space in a
//! recording, because no call declares it, so that of its bytes only the number is compared.
//!
//! The other way, the stored trace written down as text has the same findings again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use streamsan_analysis::analyse;
use streamsan_model::{
    Action, Allocation, AllocationId, Entities, Entity, MemoryKind, OpSeq, Operation, StreamId,
    TraceItem,
};
use streamsan_store::Reader;
use streamsan_testing::corpus;

use crate::command::{Ended, Scratch};
use crate::random_traces::random_trace;
use crate::trial;

/// Lazy runs only what is awaited, so that queries find work still under way; random draws from a
/// seed.
const POLICIES: [&str; 2] = ["lazy", "random:7"];

/// Traces of the corpus that must be performed: the others hold accesses of the host, guesses, or
/// results that no schedule brings about.
const AT_LEAST: usize = 165;

const RANDOM_TRACES: u64 = 20;

/// A run mostly waits, so more of them than there are processors.
const AT_ONCE: usize = 6;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("replay::corpus", corpus));
    trials.push(trial("replay::random_traces", random_traces));
}

fn corpus() {
    let mut traces: Vec<(String, String)> = Vec::new();
    for directory in ["pass", "fail"] {
        for file in corpus::traces(directory) {
            let text = fs::read_to_string(&file).expect("a trace is text");
            let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
            traces.push((format!("{directory}/{name}"), text));
        }
    }
    let performed = compare_all(&traces);
    let refused: Vec<&str> = performed
        .iter()
        .filter(|(_, policies)| policies.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    let count = traces.len() - refused.len();
    assert!(count >= AT_LEAST, "only {count} traces are performed; not {refused:#?}");
}

fn random_traces() {
    let traces: Vec<(String, String)> =
        (0..RANDOM_TRACES).map(|seed| (format!("seed {seed}"), random_trace(seed))).collect();
    let is_racy = |(_, text): &&(String, String)| {
        let trace = streamsan_text::parse(text).expect("the generator knows the grammar");
        !analyse(&trace.items).findings.is_empty()
    };
    // Nothing would be compared otherwise.
    assert!(traces.iter().filter(is_racy).count() as u64 > RANDOM_TRACES / 2);
    for (name, policies) in compare_all(&traces) {
        assert_eq!(policies, POLICIES, "{name} is not performed:\n{}", random_trace_of(&name));
    }
}

fn random_trace_of(name: &str) -> String {
    let seed = name.rsplit(' ').next().and_then(|seed| seed.parse().ok());
    numbered(&random_trace(seed.expect("a seed is a number")))
}

/// Compares each trace; the policies under which it was performed. Fails with all differences.
fn compare_all(traces: &[(String, String)]) -> BTreeMap<String, Vec<&'static str>> {
    let left = Mutex::new(traces.iter());
    let performed = Mutex::new(BTreeMap::new());
    let differences = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics with it").next();
                    let Some((name, text)) = next else { break };
                    match compare(text) {
                        Ok(policies) => {
                            let mut performed = performed.lock().expect("nobody panics with it");
                            performed.insert(name.clone(), policies);
                        }
                        Err(why) => {
                            let why = format!("{name}: {why}\n{}", numbered(text));
                            differences.lock().expect("nobody panics with it").push(why);
                        }
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().expect("nobody panics with it");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    performed.into_inner().expect("nobody panics with it")
}

fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(index, line)| format!("{:4}  {line}\n", index + 1)).collect()
}

/// Performs a trace under each policy and compares the reports; the policies under which it could
/// be performed.
fn compare(text: &str) -> Result<Vec<&'static str>, String> {
    let scratch = Scratch::new();
    let program = scratch.file("program.trace");
    fs::write(&program, text).expect("there is room for it");

    let mut expected = None;
    let mut performed = Vec::new();
    for policy in POLICIES {
        if !run(&scratch, policy, &program)? {
            continue;
        }
        let expected = match &expected {
            Some(expected) => expected,
            None => expected.insert(essence_of_text(&scratch, text)?),
        };
        let live = fs::read_to_string(scratch.file("report.json")).map_err(|e| e.to_string())?;
        let stored = check(&scratch, &scratch.trace())?;
        if live != stored {
            return Err(format!("{policy}: live and stored differ:\n{live}\n{stored}"));
        }
        let reader = Reader::open(&scratch.trace()).map_err(|error| error.to_string())?;
        let items: Result<Vec<TraceItem>, _> = reader.items().collect();
        let items = items.map_err(|error| error.to_string())?;
        let found = essence(&parsed(&live)?, &items);
        if found != *expected {
            let lines = |findings: &[Value]| -> String {
                findings.iter().map(|finding| format!("  {finding}\n")).collect()
            };
            let (found, expected) = (lines(&found), lines(expected));
            return Err(format!("{policy}: recorded\n{found}and from the text\n{expected}"));
        }
        if performed.is_empty() {
            compare_written(&items)?;
        }
        performed.push(policy);
    }
    Ok(performed)
}

/// The findings in the text itself.
fn essence_of_text(scratch: &Scratch, text: &str) -> Result<Vec<Value>, String> {
    let told = told(text);
    let file = scratch.file("told.trace");
    fs::write(&file, &told).expect("there is room for it");
    let report = check(scratch, &file)?;
    let items = streamsan_text::parse(&told).map_err(|error| error.to_string())?.items;
    Ok(essence(&parsed(&report)?, &items))
}

/// Runs a trace as a program; false when it cannot be performed, for a reason that is told.
fn run(scratch: &Scratch, policy: &str, program: &Path) -> Result<bool, String> {
    let (sim, options, replay) = (
        format!("--sim={policy}"),
        scratch.run_options(),
        PathBuf::from(env!("CARGO_BIN_EXE_replay")),
    );
    // A text trace has no stacks of the program that replays it, and call sites are part of the ids.
    let mut arguments = ["run", &sim, "--stacks", "off"].map(OsStr::new).to_vec();
    arguments.extend(options.iter().map(OsString::as_os_str));
    arguments.extend([OsStr::new("--"), replay.as_os_str(), program.as_os_str()]);
    let mut command = scratch.streamsan(&arguments);
    let ended = scratch.finish(command.env("STREAMSAN_SIM_DEVICES", "2"));
    let code = ended.status.code();
    if ended.stdout == b"replay: done\n" {
        // Its own exit code gives way to a race's and to that of what was not seen.
        return match code {
            Some(0 | 3 | 66) => Ok(true),
            _ => Err(format!("{policy}: ends with {code:?}: {}", ended.stderr)),
        };
    }
    // The calls until then may be a race already.
    let refused = ended.stderr.contains("replay: cannot perform");
    match code {
        Some(2 | 66) if refused => Ok(false),
        _ => Err(format!("{policy}: ends with {code:?}: {}", ended.stderr)),
    }
}

/// `streamsan check --json`.
fn check(scratch: &Scratch, trace: &Path) -> Result<String, String> {
    let arguments = [OsStr::new("check"), OsStr::new("--json"), trace.as_os_str()];
    let Ended { status, stdout, stderr } = scratch.finish(&mut scratch.streamsan(&arguments));
    match status.code() {
        Some(0 | 1 | 3) => String::from_utf8(stdout).map_err(|error| error.to_string()),
        code => Err(format!("check {} ends with {code:?}: {stderr}", trace.display())),
    }
}

fn parsed(report: &str) -> Result<Value, String> {
    serde_json::from_str(report).map_err(|error| error.to_string())
}

/// The stored trace, written down as text and read again, has the same findings.
fn compare_written(items: &[TraceItem]) -> Result<(), String> {
    let text = streamsan_text::write(items);
    let again = streamsan_text::parse(&text).map_err(|e| format!("{e}:\n{}", numbered(&text)))?;
    let findings = |items: &[TraceItem]| {
        let mut findings: Vec<_> = analyse(items)
            .findings
            .iter()
            .map(|f| (f.fingerprint, f.severity, f.confidence, f.class, f.kind))
            .collect();
        findings.sort();
        findings
    };
    let (stored, written) = (findings(items), findings(&again.items));
    if stored == written {
        return Ok(());
    }
    let text = numbered(&text);
    Err(format!("stored {stored:#?}\nand written down {written:#?}\n{text}"))
}

/// The text as a run tells it. Comments go, because expectations name lines.
fn told(text: &str) -> String {
    let items = streamsan_text::parse(text).expect("a trace of the corpus is well-formed").items;
    let made: BTreeSet<AllocationId> = items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(Operation {
                action: Action::Allocate { allocation, .. }, ..
            }) => Some(*allocation),
            _ => None,
        })
        .collect();
    // Lines behind the one that declares their context, or before all others.
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for item in &items {
        let TraceItem::Entity(Entity::Allocation(buffer)) = item else { continue };
        let name = buffer.name.as_deref().expect("buffers of a text have names");
        if buffer.kind == MemoryKind::Device && !made.contains(&buffer.id) {
            let context = name.split_once('/').map_or("", |(context, _)| context);
            let context = if context.starts_with('D') { "" } else { context };
            let size = buffer.range.len();
            *lines.entry(context).or_default() +=
                &format!("alloc {name} {size} existing api=cuMemAlloc_v2\n");
        }
    }
    let mut told = lines.remove("").unwrap_or_default();
    for line in text.lines() {
        let statement = line.split('#').next().unwrap_or_default().trim_end();
        let words: Vec<String> = statement.split(' ').map(rows_for_themselves).collect();
        let is_launch = words.iter().any(|word| word == "launch");
        told += if is_launch { words.join(" ") } else { statement.to_owned() }.as_str();
        if statement.starts_with("global ") {
            told += " api=cuModuleGetGlobal_v2";
        }
        told.push('\n');
        let mut words = statement.split_whitespace();
        if words.next() == Some("context") {
            told += words.next().and_then(|name| lines.remove(name)).as_deref().unwrap_or_default();
        }
    }
    assert!(lines.is_empty(), "buffers of contexts that no line makes: {lines:?}");
    told
}

/// `MODE:NAME[a..b/pitch*rows/slice*slices]` as one access for each row; other words as they are.
fn rows_for_themselves(word: &str) -> String {
    let pattern = || -> Option<(&str, [[u64; 2]; 3])> {
        fn pair(text: &str, between: &str) -> Option<[u64; 2]> {
            let (one, other) = text.split_once(between)?;
            Some([one.parse().ok()?, other.parse().ok()?])
        }
        let (name, bytes) = word.strip_suffix(']')?.split_once('[')?;
        let mut parts = bytes.split('/');
        let run = pair(parts.next()?, "..")?;
        let rows = pair(parts.next()?, "*")?;
        let slices = parts.next().map_or(Some([0, 1]), |slices| pair(slices, "*"))?;
        Some((name, [run, rows, slices]))
    };
    let Some((name, [[start, end], [pitch, rows], [slice_pitch, slices]])) = pattern() else {
        return word.to_owned();
    };
    let all = (0..slices).flat_map(|slice| {
        (0..rows).map(move |row| {
            let shift = slice * slice_pitch + row * pitch;
            format!("{name}[{}..{}]", start + shift, end + shift)
        })
    });
    all.collect::<Vec<String>>().join(" ")
}

/// A report's findings, without ids, addresses and names, in a fixed order.
fn essence(report: &Value, items: &[TraceItem]) -> Vec<Value> {
    let trace = Trace::of(items);
    let listed = report["findings"].as_array().expect("a report has a list of findings");
    let mut findings: Vec<Value> = listed.iter().map(|finding| trace.essence(finding)).collect();
    findings.sort_by_key(Value::to_string);
    findings
}

/// The meaning of numbers in a report.
struct Trace {
    entities: Entities,
    /// Operations by entry point and place among the calls of it.
    operations: HashMap<OpSeq, String>,
}

impl Trace {
    fn of(items: &[TraceItem]) -> Self {
        let mut entities = Entities::default();
        let mut calls: BTreeMap<(&str, i32), Vec<&Operation>> = BTreeMap::new();
        for item in items {
            match item {
                TraceItem::Entity(entity) => entities.declare(entity.clone()),
                TraceItem::Operation(operation) => {
                    let key = (&*operation.api, operation.status.0);
                    calls.entry(key).or_default().push(operation);
                }
                TraceItem::Returned { .. } | TraceItem::Range(_) => {}
            }
        }
        let mut operations = HashMap::new();
        for ((api, status), calls) in calls {
            for (index, call) in calls.iter().enumerate() {
                // A run makes before its first line what a text presupposes, so that what makes
                // something is counted from the end.
                let place = match call.action {
                    Action::ContextCreate { .. }
                    | Action::StreamCreate { .. }
                    | Action::EventCreate { .. }
                    | Action::Allocate { .. } => format!("-{}", calls.len() - index),
                    _ => format!("{}", index + 1),
                };
                operations.insert(call.g, format!("{api} {place} -> {status}"));
            }
        }
        Self { entities, operations }
    }

    /// An operation's number, in words.
    fn operation(&self, number: &Value) -> Value {
        match number.as_u64() {
            None => Value::Null,
            Some(g) => match self.operations.get(&OpSeq(g)) {
                Some(operation) => operation.as_str().into(),
                None => panic!("no operation {g}"),
            },
        }
    }

    /// A stream's number, in words.
    fn stream(&self, number: &Value) -> Value {
        let Some(id) = number.as_u64() else { return Value::Null };
        let stream = self.entities.stream(StreamId(id as u32)).expect("a declared stream");
        json!([stream.kind.description(), stream.priority])
    }

    /// Bytes, as an offset and a length.
    fn bytes(&self, buffer: &Allocation, range: &Value) -> Value {
        let number = |key: &str| range[key].as_u64().expect("an address is a number");
        let (start, end) = (number("start"), number("end"));
        match buffer.kind {
            MemoryKind::Pageable => json!([null, end - start]),
            // The other side may have gone by another address of the same memory.
            _ if !(buffer.range.start..buffer.range.end).contains(&start) => {
                json!([null, end - start])
            }
            _ => json!([start - buffer.range.start, end - start]),
        }
    }

    fn essence(&self, finding: &Value) -> Value {
        let overlap = &finding["overlap"];
        let id = overlap["allocation"].as_u64().expect("an id is a number");
        let buffer = self.entities.allocation(AllocationId(id as u32)).expect("it is declared");
        let access = |access: &Value| {
            json!({
                "op": self.operation(&access["op"]),
                "stream": self.stream(&access["stream"]),
                "api": access["api"],
                "kernel": access["kernel"],
                "mode": access["mode"],
                "basis": access["basis"],
                "range": self.bytes(buffer, &access["range"]),
                "pattern": access["pattern"],
            })
        };
        let edge = &finding["proposed_edge"];
        let accesses = finding["accesses"].as_array().expect("a finding has accesses");
        json!({
            "id": finding["id"],
            "class": finding["class"],
            "kind": finding["kind"],
            "severity": finding["severity"],
            "confidence": finding["confidence"],
            "fails": finding["fails"],
            "count": finding["count"],
            "first_op": self.operation(&finding["first_op"]),
            "last_op": self.operation(&finding["last_op"]),
            "memory": overlap["memory"],
            "allocated_by": overlap["allocated_by"],
            "overlap": self.bytes(buffer, overlap),
            "accesses": accesses.iter().map(access).collect::<Vec<Value>>(),
            "knows": self.operation(&finding["knows"]),
            "nearest": self.operation(&finding["nearest"]),
            "masked_by": self.operation(&finding["masked_by"]),
            "edge": [
                self.operation(&edge["record_after_op"]),
                self.stream(&edge["on_stream"]),
                self.operation(&edge["wait_before_op"]),
                self.stream(&edge["in_stream"]),
            ],
        })
    }
}
