//! Stream capture: calls that become nodes of a graph instead of running.
//!
//! Each capturing stream has a front: the nodes that its next node is behind. An event that is
//! recorded in a capture keeps the front of that moment; a wait for it adds that front to the
//! waiting stream's, and pulls the stream into the capture where it was not in it. An event that a
//! launch records by attribute has that kernel alone as its front, by the port of the attribute.

use crate::SyntaxError;
use crate::graph::{Definition, is_kernel};
use crate::verb::{Call, Issue};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use streamsan_model::{
    Action, EdgePort, EventId, GraphEdge, GraphNode, MemoryKind, NodeAction, OpSeq, StreamId,
    StreamKind,
};

mod refused;

use refused::Mode;

/// Positions of nodes, and from when on the next node may begin.
type Front = BTreeMap<u32, EdgePort>;

/// Adds the nodes of another front. Of two ports of one node the later one counts.
fn join(front: &mut Front, other: Front) {
    for (node, port) in other {
        front.entry(node).and_modify(|known| *known = port.min(*known)).or_insert(port);
    }
}

/// The captures of a trace.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// The running captures, by the line that began each.
    active: HashMap<usize, Capture>,
    /// Capturing streams, in order so that messages depend on nothing but the text.
    streams: BTreeMap<StreamId, Member>,
    /// Events whose newest record was captured.
    events: HashMap<EventId, CapturedEvent>,
    /// Events that were recorded by calls that ran.
    recorded: HashMap<EventId, usize>,
}

#[derive(Debug)]
struct Capture {
    origin: StreamId,
    mode: Mode,
    /// The process and the thread that began it, by their numbers in the text.
    caller: (u32, u32),
    definition: Definition,
}

/// A capturing stream.
#[derive(Debug)]
struct Member {
    capture: usize,
    front: Front,
    /// The newest node that the stream itself has made.
    newest: Option<u32>,
    /// The line that began the capture or pulled the stream into it.
    since: usize,
}

#[derive(Clone, Debug)]
struct CapturedEvent {
    capture: usize,
    front: Front,
    line: usize,
}

impl Captures {
    /// Whether calls issued to the stream are captured.
    pub(crate) fn is_capturing(&self, stream: StreamId) -> bool {
        self.streams.contains_key(&stream)
    }
}

/// `capture_begin S [mode=relaxed]`
pub(crate) fn begin(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("a stream")?;
    let stream = issue.stream(token)?;
    let kind = issue.scope.entities.stream(stream).map(|stream| stream.kind);
    if kind == Some(StreamKind::Legacy) {
        return Err(token.error("the legacy default stream cannot be captured"));
    }
    let mode = issue.cursor.option("mode").map_or(Ok(Mode::Global), Mode::of)?;
    let caller = (issue.scope.process, issue.thread);
    let since = issue.line();
    let captures = &mut issue.scope.captures;
    if let Some(member) = captures.streams.get(&stream) {
        let line = member.since;
        return Err(token.error(format!("stream `{}` is captured since line {line}", token.text)));
    }
    if issue.status.is_success() {
        let front = Front::new();
        captures.streams.insert(stream, Member { capture: since, front, newest: None, since });
        let definition = Definition::new("", since);
        captures.active.insert(since, Capture { origin: stream, mode, caller, definition });
    }
    Ok(Call::plain("cuStreamBeginCapture_v2", Action::Other))
}

/// `capture_end S G`
pub(crate) fn end(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("a stream")?;
    let stream = issue.stream(token)?;
    let name = issue.cursor.next("a name for the graph")?;
    let captures = &mut issue.scope.captures;
    let begun = captures.streams.get(&stream).map(|member| (member.capture, &member.front));
    let Some((capture, front)) = begun else {
        return Err(token.error(format!(
            "stream `{0}` is not being captured; write `capture_begin {0}` on a line before",
            token.text
        )));
    };
    let Some(Capture { origin, mode, caller, definition }) = captures.active.get(&capture) else {
        return Err(token.expected("a capturing stream"));
    };
    if *origin != stream {
        return Err(
            token.error(format!("a capture ends on the stream that began it, on line {capture}"))
        );
    }
    if *caller != (issue.scope.process, issue.thread) && *mode != Mode::Relaxed {
        return Err(issue.verb.error(format!(
            "the thread that began a capture ends it; `mode=relaxed` on line {capture} permits \
             another one"
        )));
    }
    if !issue.status.is_success() {
        // The capture has ended without a graph; the name stays free.
        captures.active.remove(&capture);
        captures.streams.retain(|_, member| member.capture != capture);
        return Ok(Call::plain("cuStreamEndCapture", Action::Other));
    }
    let joined = ancestors(definition.edges(), front);
    let stray = captures.streams.iter().find(|(_, member)| {
        member.capture == capture && !member.front.keys().all(|node| joined.contains(node))
    });
    if let Some((&id, member)) = stray {
        let since = member.since;
        let entity = issue.scope.entities.stream(id);
        let stray = entity.and_then(|stream| stream.name.as_deref()).unwrap_or("ptds");
        return Err(token.error(format!(
            "stream `{stray}`, pulled into the capture on line {since}, has not been joined back; \
             record an event on it and let `{}` wait for it, or say that the call fails with \
             `status=904`",
            token.text
        )));
    }
    captures.streams.retain(|_, member| member.capture != capture);
    if let Some(Capture { definition, .. }) = captures.active.remove(&capture) {
        let line = issue.line();
        issue.scope.declare_graph(name, |name| definition.called(name, line))?;
    }
    Ok(Call::plain("cuStreamEndCapture", Action::Other))
}

/// The nodes of `front` and all that they are behind.
fn ancestors(edges: &[GraphEdge], front: &Front) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = front.keys().copied().collect();
    let mut waiting: Vec<u32> = front.keys().copied().collect();
    while let Some(node) = waiting.pop() {
        let before = edges.iter().filter(|edge| edge.to == node).map(|edge| edge.from);
        waiting.extend(before.filter(|&node| all.insert(node)));
    }
    all
}

/// Makes an operation of a call: the call itself, or a captured one where its stream is captured.
pub(crate) fn divert(issue: &mut Issue<'_, '_>, call: Call) -> Result<Call, SyntaxError> {
    let call = diverted(issue, call)?;
    if issue.status.is_success() {
        refused::check(issue, &call)?;
    }
    Ok(call)
}

fn diverted(issue: &mut Issue<'_, '_>, call: Call) -> Result<Call, SyntaxError> {
    let is_success = issue.status.is_success();
    let line = issue.line();
    match call.action {
        Action::EventRecord { event, stream } if is_success => {
            let captures = &mut issue.scope.captures;
            let Some(member) = captures.streams.get(&stream) else {
                captures.events.remove(&event);
                captures.recorded.insert(event, line);
                return Ok(call);
            };
            let front = member.front.clone();
            let recorded = CapturedEvent { capture: member.capture, front, line };
            captures.events.insert(event, recorded);
            Ok(captured(stream, call))
        }
        Action::ContextRecordEvent { event, .. } if is_success => {
            issue.scope.captures.events.remove(&event);
            issue.scope.captures.recorded.insert(event, line);
            Ok(call)
        }
        Action::StreamWaitEvent { stream, event } if is_success => wait(issue, call, stream, event),
        Action::EventSynchronize { event }
        | Action::EventQuery { event }
        | Action::ContextWaitEvent { event, .. } => not_captured(issue, &[event], call),
        Action::EventElapsedTime { start, end } => not_captured(issue, &[start, end], call),
        Action::LaunchMultiDevice(ref launch) => {
            let captures = &issue.scope.captures;
            if launch.launches.iter().any(|member| captures.is_capturing(member.stream)) {
                return Err(refused(issue));
            }
            Ok(call)
        }
        Action::CollectiveGroup(ref group) => {
            let captures = &issue.scope.captures;
            if group.members.iter().any(|member| captures.is_capturing(member.stream)) {
                return Err(refused(issue));
            }
            Ok(call)
        }
        Action::StreamHandedOut { .. } => Ok(call),
        ref action => match action.stream() {
            Some(stream) if issue.scope.captures.is_capturing(stream) => {
                if is_success {
                    add_node(issue, stream, call)
                } else {
                    Ok(captured(stream, call))
                }
            }
            _ => Ok(call),
        },
    }
}

fn captured(stream: StreamId, call: Call) -> Call {
    Call { action: Action::Captured { stream }, accesses: Vec::new(), ..call }
}

fn refused(issue: &Issue<'_, '_>) -> SyntaxError {
    issue.verb.error(format!("`{}` cannot be captured, and its stream is", issue.verb.text))
}

/// The host and contexts cannot wait for what was captured: it has not run.
fn not_captured(
    issue: &Issue<'_, '_>,
    events: &[EventId],
    call: Call,
) -> Result<Call, SyntaxError> {
    let record = events.iter().find_map(|event| issue.scope.captures.events.get(event));
    match record {
        Some(record) if issue.status.is_success() => Err(issue.verb.error(format!(
            "the event was recorded in a capture, on line {}; record it again first",
            record.line
        ))),
        _ => Ok(call),
    }
}

fn wait(
    issue: &mut Issue<'_, '_>,
    call: Call,
    stream: StreamId,
    event: EventId,
) -> Result<Call, SyntaxError> {
    let (verb, line) = (issue.verb, issue.line());
    let captures = &mut issue.scope.captures;
    let own = captures.streams.get(&stream).map(|member| member.capture);
    let Some(recorded) = captures.events.get(&event).cloned() else {
        return match (own, captures.recorded.get(&event)) {
            (None, _) => Ok(call),
            (Some(_), Some(line)) => Err(verb.error(format!(
                "a capturing stream cannot wait for an event that was recorded outside of the \
                 capture, on line {line}"
            ))),
            // An event that was never recorded stands for no work: there is no edge to make.
            (Some(_), None) => Ok(captured(stream, call)),
        };
    };
    if !captures.active.contains_key(&recorded.capture) {
        return Err(verb.error(format!(
            "the event was recorded on line {} in a capture that has ended; record it again first",
            recorded.line
        )));
    }
    if own.is_some_and(|own| own != recorded.capture) {
        return Err(verb.error(format!(
            "the event was recorded on line {} in another capture, and captures cannot be merged",
            recorded.line
        )));
    }
    let kind = issue.scope.entities.stream(stream).map(|stream| stream.kind);
    if kind == Some(StreamKind::Legacy) {
        return Err(verb.error("the legacy default stream cannot be pulled into a capture"));
    }
    let CapturedEvent { capture, front, .. } = recorded;
    let captures = &mut issue.scope.captures;
    let new = || Member { capture, front: Front::new(), newest: None, since: line };
    join(&mut captures.streams.entry(stream).or_insert_with(new).front, front);
    Ok(captured(stream, call))
}

/// Adds the node that a call to a capturing stream makes.
fn add_node(issue: &mut Issue<'_, '_>, stream: StreamId, call: Call) -> Result<Call, SyntaxError> {
    let Call { api, action, accesses } = call;
    let (mut serialized, mut records) = (true, None);
    let action = match action {
        Action::Launch { kernel, programmatic, control, event, .. } => {
            (serialized, records) = (!programmatic, event);
            NodeAction::Kernel { kernel, control }
        }
        Action::Copy(copy) if !copy.synchronous => NodeAction::Copy(copy),
        Action::Memset { destination, synchronous: false, .. } => {
            NodeAction::Memset { destination }
        }
        Action::HostFunction { .. } => NodeAction::HostFunction,
        // A child graph, as `cuGraphAddChildGraphNode` makes it: what the executable graph becomes
        // later is not in it. (Driver 580 refuses this launch with 900.)
        Action::GraphLaunch { graph, .. } => NodeAction::Child { graph },
        Action::Signals(signals) => NodeAction::Signals { operations: signals.operations.clone() },
        Action::Allocate { allocation, .. } => NodeAction::Allocate { allocation },
        Action::Free { allocation, .. } => {
            let kind = issue.scope.entities.allocation(allocation).map(|buffer| buffer.kind);
            if kind != Some(MemoryKind::GraphOrdered) {
                return Err(issue.verb.error(
                    "a capturing stream can free only what was allocated in a capture or a graph",
                ));
            }
            NodeAction::Free { allocation }
        }
        _ => return Err(refused(issue)),
    };
    let line = issue.line();
    let node = GraphNode {
        made_by: OpSeq(line as u64),
        api: issue.api.map_or(&*api, |token| token.text).into(),
        captured_from: Some(stream),
        enabled: true,
        action,
        accesses,
        stack: issue.scope.stack,
    };
    let captures = &mut issue.scope.captures;
    if let Some(member) = captures.streams.get_mut(&stream)
        && let Some(capture) = captures.active.get_mut(&member.capture)
    {
        let definition = &mut capture.definition;
        let to_kernel = is_kernel(&node);
        let to = definition.push(format!("line{line}"), node);
        let front = std::mem::replace(&mut member.front, Front::from([(to, EdgePort::End)]));
        let newest = member.newest.replace(to);
        for (from, port) in front {
            // Programmatic serialization is with the kernel before it in the stream.
            let overlaps = !serialized && newest == Some(from);
            let port = match port {
                _ if !to_kernel || !definition.node(from).is_some_and(is_kernel) => EdgePort::End,
                EdgePort::End if overlaps => EdgePort::Triggered,
                port => port,
            };
            definition.add_edge(GraphEdge { from, to, port });
        }
        if let Some((event, kind)) = records {
            let front = Front::from([(to, kind.into())]);
            let recorded = CapturedEvent { capture: member.capture, front, line };
            captures.events.insert(event, recorded);
        }
    }
    Ok(Call { api, action: Action::Captured { stream }, accesses: Vec::new() })
}
