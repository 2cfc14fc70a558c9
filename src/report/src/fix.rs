//! The fix: the order that is missing, in a sentence and in calls of the program's own interface,
//! each with the line that it belongs to.
//!
//! Invariant: a fix asks for no more than the proposed edge of the finding, which `explain` puts
//! into the trace to see what it does.

use crate::Report;
use crate::interface::Interface;
use streamsan_model::{
    Action, Finding, Mode, OpSeq, ProcessId, ProposedEdge, RaceClass, Severity, StreamId,
};

/// The proposal of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    /// The order that is to be made, in a sentence without its end.
    pub(crate) sentence: String,
    /// The calls that make it, in the order of issue.
    pub(crate) steps: Vec<Step>,
}

/// One call to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// `after src/pool.cc:40`, or `after (1)` where no line is known.
    pub(crate) place: String,
    /// The call.
    pub(crate) code: String,
}

impl Step {
    /// In a line: `after src/pool.cc:40: cudaEventRecord(event, copy)`.
    pub(crate) fn description(&self) -> String {
        format!("{}: {}", self.place, self.code)
    }
}

/// The advice where no wait can order the pair.
fn without_edge(finding: &Finding, interface: Interface) -> Option<&'static str> {
    let same_stream =
        finding.first.stream.is_some() && finding.first.stream == finding.second.stream;
    if finding.severity == Severity::Lint {
        None
    } else if finding.class == RaceClass::GraphUnordered {
        Some(match interface {
            Interface::Driver => {
                "make the node of (2) depend on the node of (1): cuGraphAddDependencies, or while \
                 capturing an event recorded behind (1) and waited for before (2)"
            }
            Interface::Runtime => {
                "make the node of (2) depend on the node of (1): cudaGraphAddDependencies, or \
                 while capturing an event recorded behind (1) and waited for before (2)"
            }
            _ => {
                "while capturing, record an event behind (1) and wait for it before (2), so that \
                 the node of (2) depends on the node of (1)"
            }
        })
    } else if finding.first.op == finding.second.op {
        Some("split the batch, or let its entries touch different bytes")
    } else if finding.class == RaceClass::UseAfterFree {
        Some("free the memory after its last use: no wait can order a use behind its own free")
    } else if same_stream && finding.second.kernel.is_some() {
        Some(
            "let the kernel of (2) wait for its predecessors (griddepcontrol.wait) before it \
             touches the memory, or launch it without programmatic serialization",
        )
    } else {
        None
    }
}

impl Report<'_> {
    /// The fix of a finding, where there is one.
    pub(crate) fn fix(&self, finding: &Finding) -> Option<Fix> {
        // The edge of a graph is no wait of a stream.
        let edge = finding.proposed_edge.filter(|_| finding.class != RaceClass::GraphUnordered);
        let (interface, is_common) = self.interface(finding);
        let Some(edge) = edge else {
            let sentence = without_edge(finding, interface)?.to_owned();
            return Some(Fix { sentence, steps: Vec::new() });
        };
        let fix = Proposal { report: self, finding, edge, interface };
        Some(match self.other_process(&edge) {
            Some(process) => fix.between_processes(process),
            None if edge.on_stream.is_some() && (!is_common || interface == Interface::Jax) => {
                fix.by_the_host()
            }
            None => fix.by_events(),
        })
    }

    /// Whether the call enqueued the host function in which a side of the finding runs.
    fn is_host_function(&self, finding: &Finding, g: OpSeq) -> bool {
        let is_side = g == finding.first.op || g == finding.second.op;
        let action = self.operations.get(&g).map(|operation| &operation.action);
        !is_side && matches!(action, Some(Action::HostFunction { .. }))
    }

    /// The process that has to wait, where the two ends of an edge are of two processes.
    fn other_process(&self, edge: &ProposedEdge) -> Option<ProcessId> {
        let entities = &*self.input.entities;
        let of = |stream: Option<StreamId>, g: OpSeq| match stream {
            Some(stream) => Some(entities.context(entities.stream(stream)?.context)?.process),
            None => self.operations.get(&g).map(|operation| operation.process),
        };
        let from = of(edge.on_stream, edge.record_after_op)?;
        of(edge.in_stream, edge.wait_before_op).filter(|&to| to != from)
    }
}

/// A proposed edge, on its way into words.
struct Proposal<'a> {
    report: &'a Report<'a>,
    finding: &'a Finding,
    edge: ProposedEdge,
    interface: Interface,
}

impl Proposal<'_> {
    /// The order by an event, or by the host where one of the ends is the host's.
    fn by_events(&self) -> Fix {
        let Self { edge, .. } = self;
        let [after, before] = self.ends();
        let (sentence, steps) = match (edge.on_stream, edge.in_stream) {
            (Some(on), Some(to)) => {
                let (sentence, steps) = self.between_streams(on, to);
                (self.instead() + &sentence, steps)
            }
            (Some(_), None) => return self.by_the_host(),
            (None, Some(to)) => {
                let to = self.stream(to);
                (format!("let the host finish {after} before it issues {before} to {to}"), vec![])
            }
            (None, None) => (format!("let the host finish {after} before {before}"), vec![]),
        };
        Fix { sentence: sentence + self.note(), steps }
    }

    fn between_streams(&self, on: StreamId, to: StreamId) -> (String, Vec<Step>) {
        let Self { interface, .. } = self;
        let [after, before] = self.ends();
        let [at_record, at_wait] = self.places();
        let [from_code, to_code] = [on, to].map(|stream| self.expression(stream));
        let [from, into] = [on, to].map(|stream| self.stream(stream));
        if let Some(code) = self.free_behind_a_use().and_then(|()| interface.note_use(&from_code)) {
            let sentence = format!(
                "tell the allocator that {from} uses the tensor, before its memory is given back"
            );
            return (sentence, vec![Step { place: at_wait, code }]);
        }
        let sentence = format!(
            "record an event on {from} after {after} and wait for it in {into} before {before}"
        );
        if let Some(code) = interface.join(&to_code, &from_code) {
            let sentence = format!("let {into} wait for {from} before {before}");
            return (sentence, vec![Step { place: at_wait, code }]);
        }
        let record = Step { place: at_record, code: interface.record(&from_code) };
        let wait = Step { place: at_wait, code: interface.wait(&to_code) };
        (sentence, vec![record, wait])
    }

    /// The order by the host, which waits for the first side's stream.
    fn by_the_host(&self) -> Fix {
        let Some(on) = self.edge.on_stream else { return self.by_events() };
        let [after, before] = self.ends();
        let [at_record, at_wait] = self.places();
        let code = self.interface.host_wait(&self.expression(on));
        let place = match self.interface {
            // The array is at hand where it was made.
            Interface::Jax => at_record,
            _ if self.is_of_the_context(on) => at_record,
            _ => at_wait,
        };
        let on = self.stream(on);
        let sentence = format!("let the host wait for {on} between {after} and {before}");
        Fix { sentence: sentence + self.note(), steps: vec![Step { place, code }] }
    }

    fn between_processes(&self, process: ProcessId) -> Fix {
        let Self { edge, .. } = self;
        let [after, before] = self.ends();
        let tell = format!("tell process {process}");
        let sentence = match (edge.on_stream, edge.in_stream) {
            (Some(on), Some(to)) => format!(
                "record an interprocess event on {} after {after}, {tell} that it is recorded, and \
                 wait for it in {} before {before}: cuEventRecord, then cuStreamWaitEvent of the \
                 event that cuIpcOpenEventHandle opened",
                self.stream(on),
                self.stream(to)
            ),
            (Some(on), None) => format!(
                "record an interprocess event on {} after {after}, {tell} that it is recorded, and \
                 let its host wait for it before {before}: cuEventRecord, then cuEventSynchronize \
                 of the event that cuIpcOpenEventHandle opened",
                self.stream(on)
            ),
            (None, Some(to)) => format!(
                "let the host finish {after} and {tell} of it, before that process issues {before} \
                 to {}",
                self.stream(to)
            ),
            (None, None) => {
                format!("let the host finish {after} and {tell} of it, before {before}")
            }
        };
        Fix { sentence: sentence + self.note(), steps: Vec::new() }
    }

    /// Whether the pair is a use in one stream and the return of the memory to a pool in another.
    fn free_behind_a_use(&self) -> Option<()> {
        let is_free = self.finding.second.access.mode == Mode::Free;
        let is_direct = self.edge.record_after_op == self.finding.first.op;
        (is_free && is_direct).then_some(())
    }

    /// The alternative that comes first where a copy from pageable memory may return too early.
    fn instead(&self) -> String {
        match (self.finding.class, self.edge.in_stream) {
            (RaceClass::PageableCopyTail, Some(to)) => format!(
                "copy in {} by the asynchronous form of (1), or copy from page-locked memory, of \
                 which the synchronous form returns when it is done; or ",
                self.stream(to)
            ),
            _ => String::new(),
        }
    }

    fn note(&self) -> &'static str {
        let ops = [self.edge.record_after_op, self.edge.wait_before_op];
        match ops.iter().any(|&g| self.report.is_host_function(self.finding, g)) {
            true => "; the host function itself must not make CUDA calls",
            false => "",
        }
    }

    /// The two ends of the edge in words.
    fn ends(&self) -> [String; 2] {
        [self.edge.record_after_op, self.edge.wait_before_op].map(|g| self.end(g))
    }

    fn end(&self, g: OpSeq) -> String {
        let Self { report, finding, edge, .. } = self;
        let sides = [(finding.first.op, "(1)"), (finding.second.op, "(2)")];
        if let Some((_, name)) = sides.iter().find(|(op, _)| *op == g) {
            return (*name).to_owned();
        }
        if !report.is_host_function(finding, g) {
            return report.call(g);
        }
        // The side that is not the other end runs in the function.
        let is_end = |op: OpSeq| op == edge.record_after_op || op == edge.wait_before_op;
        let runs = sides.iter().filter(|(op, _)| !is_end(*op)).map(|(_, name)| *name);
        let runs = runs.collect::<Vec<_>>().join(" or ");
        format!("the host function of {runs} ({})", report.call(g))
    }

    /// The places of the two calls: lines of the program, or the ends by their names.
    fn places(&self) -> [String; 2] {
        let [after, before] = self.ends();
        let lines = self.report.ends_of_edge(self.finding, &self.edge);
        let [at_record, at_wait] = lines.map(|place| place.map(|place| place.description()));
        [
            format!("after {}", at_record.unwrap_or(after)),
            format!("before {}", at_wait.unwrap_or(before)),
        ]
    }

    /// Whether a stream is the default stream of one of several contexts: its name means the stream
    /// only where that context is the current one, as it is at the stream's own call.
    fn is_of_the_context(&self, id: StreamId) -> bool {
        let stream = self.report.input.entities.stream(id);
        stream.is_some_and(|stream| {
            self.interface.default_stream(stream.kind).is_some()
                && self.report.has_namesakes(stream)
        })
    }

    fn stream(&self, id: StreamId) -> String {
        self.report.side_of(self.finding, Some(id))
    }

    /// A stream as code has it: by its name where that could be one, else by the side that uses it.
    fn expression(&self, id: StreamId) -> String {
        let entities = &*self.report.input.entities;
        let stream = entities.stream(id);
        if let Some(code) = stream.and_then(|stream| self.interface.default_stream(stream.kind)) {
            let is_of_device = self.interface == Interface::PyTorch && self.is_of_the_context(id);
            let context = stream.and_then(|stream| entities.context(stream.context));
            return match context.filter(|_| is_of_device) {
                Some(context) => code.replace("()", &format!("({})", context.device)),
                None => code.to_owned(),
            };
        }
        let name = stream.and_then(|stream| stream.name.as_deref());
        let is_identifier = |name: &&str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match name.filter(is_identifier) {
            Some(name) => name.to_owned(),
            None if Some(id) == self.finding.first.stream => "stream_of_1".to_owned(),
            None if Some(id) == self.finding.second.stream => "stream_of_2".to_owned(),
            None => "stream".to_owned(),
        }
    }
}
