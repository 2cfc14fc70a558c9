//! `streamsan stats`: what a trace holds.

use super::kernel_modes::KernelModes;
use super::output::{print, print_json};
use super::stored::Stored;
use crate::error::Error;
use crate::options::StatsOptions;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use streamsan_collect::{FINDINGS_LEFT_OUT, WAITED};
use streamsan_model::{
    Action, Entities, ExitCode, GraphId, HostAccesses, IncompleteReason, KernelId, NodeAction,
    Operation, StreamId, StreamKind, StreamNames, TraceItem, Unwatched, Verdict,
};
use streamsan_names::{printable, printable_line};
use streamsan_report::reason_in_words;
use streamsan_store::{Counts, Coverage, Meta, Reader, Treatment};

/// Everything that is told of a trace.
pub(super) struct Stats {
    /// The name of a text trace, which no program was recorded for.
    text_trace: Option<String>,
    meta: Meta,
    counts: Counts,
    coverage: Coverage,
    reasons: Vec<IncompleteReason>,
    entities: Entities,
    by_action: BTreeMap<&'static str, u64>,
    /// Operations, and whether any of them gives the stream something to do or to order. Streams of a
    /// pool are made, asked whether they are done, and mostly never used.
    by_stream: BTreeMap<StreamId, (u64, bool)>,
    by_kernel: BTreeMap<KernelId, u64>,
    by_graph: BTreeMap<GraphId, u64>,
    copied: u64,
    failed: u64,
}

/// `streamsan stats`.
///
/// # Errors
///
/// A trace that cannot be read.
pub(crate) fn stats(options: &StatsOptions) -> Result<ExitCode, Error> {
    let stats = Stats::of(&options.file)?;
    if options.json {
        print_json(&stats.json());
    } else {
        print(&stats.text());
    }
    Ok(ExitCode::SUCCESS)
}

impl Stats {
    /// Looks at a trace.
    ///
    /// # Errors
    ///
    /// A trace that cannot be read.
    pub(super) fn of(file: &Path) -> Result<Self, Error> {
        let stored = Stored::of(file)?;
        let mut stats = Self::read(&Reader::open(stored.path())?)?;
        stats.text_trace = stored.is_text().then(|| file.display().to_string());
        Ok(stats)
    }

    fn read(reader: &Reader) -> Result<Self, Error> {
        let mut reasons = reader.incomplete_reasons()?;
        reasons.sort();
        let mut stats = Self {
            text_trace: None,
            meta: reader.meta()?,
            counts: reader.counts()?,
            coverage: reader.coverage()?,
            reasons,
            entities: Entities::default(),
            by_action: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            by_kernel: BTreeMap::new(),
            by_graph: BTreeMap::new(),
            copied: 0,
            failed: 0,
        };
        for item in reader.items() {
            match item? {
                TraceItem::Entity(entity) => stats.entities.declare(entity),
                TraceItem::Operation(operation) => stats.count(&operation),
                TraceItem::Returned { .. } | TraceItem::Range(_) => {}
            }
        }
        for (graph, launches) in std::mem::take(&mut stats.by_graph) {
            stats.count_nodes(graph, launches);
        }
        Ok(stats)
    }

    /// Counts the kernels of a graph as launches, and those of the graphs inside it: of a conditional
    /// node each body once.
    fn count_nodes(&mut self, graph: GraphId, launches: u64) {
        let Some(graph) = self.entities.graph(graph).cloned() else { return };
        for node in graph.nodes.iter().filter(|node| node.enabled) {
            match &node.action {
                NodeAction::Kernel { kernel, .. } => {
                    *self.by_kernel.entry(*kernel).or_default() += launches;
                }
                NodeAction::Child { graph } => self.count_nodes(*graph, launches),
                NodeAction::Conditional { bodies, .. } => {
                    bodies.iter().for_each(|body| self.count_nodes(*body, launches));
                }
                _ => {}
            }
        }
    }

    fn count(&mut self, operation: &Operation) {
        *self.by_action.entry(operation.action.description()).or_default() += 1;
        for stream in streams_of(&operation.action) {
            let (operations, work) = self.by_stream.entry(stream).or_default();
            *operations += 1;
            *work |= !matches!(
                operation.action,
                Action::StreamCreate { .. }
                    | Action::StreamDestroy { .. }
                    | Action::StreamHandedOut { .. }
                    | Action::StreamSynchronize { .. }
                    | Action::StreamQuery { .. }
            );
        }
        if let Action::Launch { kernel, .. } = operation.action {
            *self.by_kernel.entry(kernel).or_default() += 1;
        }
        if let Action::GraphLaunch { graph, .. } = operation.action {
            *self.by_graph.entry(graph).or_default() += 1;
        }
        let status = operation.status;
        if !status.is_success() && status != streamsan_model::Status::NOT_READY {
            self.failed += 1;
        } else if let Action::Copy(copy) = operation.action {
            self.copied = self.copied.saturating_add(copy.bytes);
        }
    }

    fn kernels(&self) -> Vec<(&str, u64)> {
        let name = |id| self.entities.kernel(id).map_or("(undeclared)", |k| k.name.as_str());
        let mut kernels: Vec<_> = self.by_kernel.iter().map(|(&id, &n)| (name(id), n)).collect();
        kernels.sort_by_key(|&(name, launches)| (std::cmp::Reverse(launches), name));
        kernels
    }

    /// Streams that nothing was ever issued to.
    fn idle_streams(&self) -> u64 {
        let used = self.by_stream.values().filter(|(_, is_used)| *is_used).count() as u64;
        self.counts.streams.saturating_sub(used)
    }

    fn stream_kind(&self, id: StreamId) -> &'static str {
        self.entities.stream(id).map_or("undeclared", |s| StreamKind::description(s.kind))
    }

    /// Driver calls; of a recording that was cut off, whose calls nobody has counted, operations.
    /// Findings that the run counted and did not store.
    fn findings_left_out(&self) -> u64 {
        let told = self.meta.extra.get(FINDINGS_LEFT_OUT);
        told.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Milliseconds that the threads of the program waited for the recording.
    fn waited_ms(&self) -> u64 {
        let told = self.meta.extra.get(WAITED);
        told.and_then(|waited| waited.parse().ok()).unwrap_or(0)
    }

    fn calls(&self) -> u64 {
        match &self.coverage.entry_points[..] {
            [] => self.counts.operations,
            counted => counted.iter().map(|e| e.calls).sum(),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        if let Some(name) = &self.text_trace {
            line(format!("text trace  {}", printable(name)));
        } else {
            let command: Vec<_> = self.meta.command.iter().map(|word| printable(word)).collect();
            line(format!("command     {}", command.join(" ")));
            let started = self.meta.started_at.format("%Y-%m-%d %H:%M:%S UTC");
            let version = printable(&self.meta.tool_version);
            line(format!("recorded    {started}, streamsan {version}"));
        }
        if !self.meta.driver.is_empty() {
            line(format!("driver      {}", printable(&self.meta.driver)));
        }
        let c = &self.counts;
        line(format!(
            "holds       {}, {}, {}, {}, {}, {}, {}",
            counted(c.processes, "process"),
            counted(c.threads, "thread"),
            counted(c.contexts, "context"),
            counted(c.streams, "stream"),
            counted(c.events, "event"),
            counted(c.allocations, "allocation"),
            counted(c.kernels, "kernel"),
        ));
        line(format!(
            "            {}, {}, {}, {}",
            counted(c.operations, "operation"),
            counted(c.accesses, "access"),
            counted(c.edges, "edge"),
            counted(c.findings, "finding"),
        ));
        if self.findings_left_out() > 0 {
            line(format!(
                "            {} more of the same mistakes, counted and not kept",
                counted(self.findings_left_out(), "finding")
            ));
        }
        line(format!("copied      {}", counted(self.copied, "byte")));
        let dropped = counted(self.coverage.dropped, "record");
        line(format!("calls       {}, {} failed; {dropped} dropped", self.calls(), self.failed));
        if self.waited_ms() > 0 {
            let seconds = self.waited_ms() as f64 / 1000.0;
            line(format!("waited      {seconds} s for the recording, all threads together"));
        }
        if self.coverage.ambiguous > 0 {
            line(format!(
                "ambiguous   {} of overlapping calls of two threads on one stream or event",
                counted(self.coverage.ambiguous, "pair")
            ));
        }
        if let Some(host) = &self.coverage.host_accesses {
            let told = host.description();
            line(format!("host        accesses {}", printable_line(&told)));
        }
        for reason in &self.reasons {
            line(format!("not seen    {}", reason_in_words(reason)));
        }
        if self.calls() == 0 && self.reasons.is_empty() {
            line(format!("no CUDA     {}", Verdict::NO_CUDA_MEANS));
        }
        section(&mut out, "operations", self.by_action.iter().map(|(w, n)| (*w, *n)));
        let streams = self.by_stream.iter().filter(|(_, (_, is_used))| *is_used);
        let names = StreamNames::of(&self.entities, printable);
        let name = |id| {
            let name = names.name(id, &self.entities);
            let is_default = name.contains("default stream");
            if is_default { name } else { format!("{name} ({})", self.stream_kind(id)) }
        };
        let streams: Vec<_> = streams.map(|(id, (n, _))| (name(*id), *n)).collect();
        section(&mut out, "operations by stream", streams.iter().map(|(s, n)| (s.as_str(), *n)));
        if self.idle_streams() > 0 {
            let title = if streams.is_empty() { "\noperations by stream\n" } else { "" };
            let idle = counted(self.idle_streams(), "idle stream");
            let _ = writeln!(out, "{title}{:>12}  {idle} left out", "");
        }
        let kernels = self.kernels();
        let kernels: Vec<_> =
            kernels.iter().map(|&(name, n)| (streamsan_names::kernel(name), n)).collect();
        section(&mut out, "launches by kernel", kernels.iter().map(|(name, n)| (&**name, *n)));
        KernelModes::new(&self.entities, &self.by_kernel, &self.coverage).text(&mut out);
        for treatment in Treatment::ALL {
            let calls = self.coverage.entry_points.iter().filter(|e| e.treatment == treatment);
            let title = format!("calls, {}", treatment.description());
            let calls: Vec<_> = calls.map(|e| (printable(&e.name), e.calls)).collect();
            section(&mut out, &title, calls.iter().map(|(name, calls)| (&**name, *calls)));
        }
        out
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let map = |pairs: Vec<(String, u64)>| {
            Value::Object(pairs.into_iter().map(|(k, v)| (k, v.into())).collect::<Map<_, _>>())
        };
        let calls = |treatment| {
            let all = self.coverage.entry_points.iter().filter(|e| e.treatment == treatment);
            map(all.map(|e| (e.name.clone(), e.calls)).collect())
        };
        let c = &self.counts;
        let streams = self.by_stream.iter().map(
            |(id, (n, _))| json!({"stream": id.0, "kind": self.stream_kind(*id), "operations": n}),
        );
        let kernels = self.kernels().into_iter();
        let kernels =
            kernels.map(|(name, n)| with_readable_name(json!({"kernel": name, "launches": n})));
        json!({
            "schema": 1,
            "command": self.meta.command,
            "driver": self.meta.driver,
            "processes": c.processes,
            "threads": c.threads,
            "contexts": c.contexts,
            "streams": c.streams,
            "events": c.events,
            "allocations": c.allocations,
            "kernels": c.kernels,
            "operations": c.operations,
            "accesses": c.accesses,
            "edges": c.edges,
            "findings": c.findings,
            "findings_left_out": self.findings_left_out(),
            "bytes_copied": self.copied,
            "failed_calls": self.failed,
            "calls": self.calls(),
            "no_cuda": self.calls() == 0 && self.reasons.is_empty(),
            "dropped": self.coverage.dropped,
            "waited_ms": self.waited_ms(),
            "ambiguous": self.coverage.ambiguous,
            "host_accesses": self.coverage.host_accesses.as_ref().map(host_accesses),
            "reasons": self.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "operations_by_kind":
                map(self.by_action.iter().map(|(w, n)| ((*w).to_owned(), *n)).collect()),
            "operations_by_stream": streams.collect::<Vec<_>>(),
            "idle_streams": self.idle_streams(),
            "launches_by_kernel": kernels.collect::<Vec<_>>(),
            "kernel_modes":
                KernelModes::new(&self.entities, &self.by_kernel, &self.coverage).json(),
            "recorded": calls(Treatment::Recorded),
            "harmless": calls(Treatment::Harmless),
            "not_understood": calls(Treatment::NotUnderstood),
        })
    }
}

/// Adds the readable name of what is told of a kernel, where its name is mangled.
pub(super) fn with_readable_name(mut kernel: Value) -> Value {
    if let Some(whole) = kernel["kernel"].as_str().and_then(streamsan_names::whole) {
        kernel["kernel_demangled"] = whole.into();
    }
    kernel
}

/// The streams that a call is issued to.
fn streams_of(action: &Action) -> Vec<StreamId> {
    match action {
        Action::LaunchMultiDevice(launch) => launch.launches.iter().map(|l| l.stream).collect(),
        Action::CollectiveGroup(group) => group.members.iter().map(|m| m.stream).collect(),
        _ => action.stream().into_iter().collect(),
    }
}

fn counted(n: u64, noun: &str) -> String {
    let ending = match (n, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {noun}{ending}")
}

fn section<'a>(out: &mut String, title: &str, rows: impl Iterator<Item = (&'a str, u64)>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (name, count) in rows {
        let _ = writeln!(out, "{count:>12}  {name}");
    }
}

/// How far the host's own loads and stores were watched.
fn host_accesses(host: &HostAccesses) -> Value {
    let because = |reasons: &[(String, u64)]| -> Vec<Value> {
        let told = reasons.iter().map(|(reason, n)| json!({"reason": reason, "count": n}));
        told.collect()
    };
    json!({
        "watched": host.unwatched.is_none(),
        "reason": host.unwatched.map(Unwatched::id),
        "operations": host.operations,
        "fenced": host.fenced,
        "fenced_in_part": host.in_part,
        "ranges_not_fenced": because(&host.not_fenced),
        "allocations_left_alone": because(&host.left_alone),
    })
}
