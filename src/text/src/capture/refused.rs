//! Calls that the driver refuses while a stream is captured, although they are not issued to it.
//!
//! Sources: Programming Guide, "Stream Capture: Prohibited and Unhandled Operations" (the legacy
//! stream "at all times encompasses these other streams"); Driver API,
//! `cuThreadExchangeStreamCaptureMode` (calls that may be unsafe, such as `cudaMalloc`, and the modes
//! of a capture) and `cuCtxRecordEvent`. The documentation names `cudaMalloc` as a call that may be
//! unsafe; the others are those that driver 580 refuses, as the simulated driver does.
//!
//! Deliberately absent: the mode of a thread (`cuThreadExchangeStreamCaptureMode`), which no verb
//! changes.

use super::Captures;
use crate::SyntaxError;
use crate::token::Token;
use crate::verb::{Call, Issue};
use streamsan_model::{Action, ContextId, MemoryKind, StreamId, StreamKind};

/// `CUstreamCaptureMode`: whose calls that may be unsafe a capture prohibits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The calls of every thread of the process.
    Global,
    /// The calls of the thread that began the capture.
    ThreadLocal,
    /// Nobody's.
    Relaxed,
}

impl Mode {
    /// The mode behind `mode=`.
    pub(super) fn of(token: Token<'_>) -> Result<Self, SyntaxError> {
        match token.text {
            "global" => Ok(Self::Global),
            "thread_local" => Ok(Self::ThreadLocal),
            "relaxed" => Ok(Self::Relaxed),
            _ => Err(token.expected("`global`, `thread_local` or `relaxed`")),
        }
    }
}

/// Refuses a call that a capture does not permit.
pub(super) fn check(issue: &Issue<'_, '_>, call: &Call) -> Result<(), SyntaxError> {
    if issue.scope.captures.active.is_empty() {
        return Ok(());
    }
    check_legacy(issue, call)?;
    check_context(issue, call)?;
    if may_be_unsafe(issue, call) { check_mode(issue) } else { Ok(()) }
}

/// "When any stream in the same context is being captured, and it was not created with
/// `cudaStreamNonBlocking`, any attempted use of the legacy stream is invalid", and so are
/// synchronous calls, which use it.
fn check_legacy(issue: &Issue<'_, '_>, call: &Call) -> Result<(), SyntaxError> {
    let entities = &issue.scope.entities;
    let used: Vec<StreamId> = match &call.action {
        Action::LaunchMultiDevice(launch) => launch.launches.iter().map(|l| l.stream).collect(),
        Action::StreamHandedOut { .. } => Vec::new(),
        action => action.stream().into_iter().collect(),
    };
    for legacy in used.into_iter().filter_map(|stream| entities.stream(stream)) {
        if legacy.kind != StreamKind::Legacy {
            continue;
        }
        let is_in_the_way = |stream: &StreamId| {
            entities.stream(*stream).is_some_and(|stream| {
                stream.context == legacy.context && stream.kind != StreamKind::NonBlocking
            })
        };
        if let Some((name, line)) = first(issue, is_in_the_way) {
            return Err(issue.verb.error(format!(
                "`{}` uses the legacy default stream, which may not be used while the blocking \
                 stream `{name}` of its context is captured (since line {line})",
                issue.verb.text
            )));
        }
    }
    Ok(())
}

/// Refuses to wait for a context while one of its streams is captured: captured work does not run.
fn check_context(issue: &Issue<'_, '_>, call: &Call) -> Result<(), SyntaxError> {
    let (Action::ContextSynchronize { context }
    | Action::ContextRecordEvent { context, .. }
    | Action::ContextWaitEvent { context, .. }) = call.action
    else {
        return Ok(());
    };
    let of = |stream: &StreamId| context_of(issue, *stream) == Some(context);
    match first(issue, of) {
        Some((name, line)) => Err(issue.verb.error(format!(
            "stream `{name}` of the context is captured (since line {line}), so that `{}` is not \
             permitted",
            issue.verb.text
        ))),
        None => Ok(()),
    }
}

fn context_of(issue: &Issue<'_, '_>, stream: StreamId) -> Option<ContextId> {
    issue.scope.entities.stream(stream).map(|stream| stream.context)
}

/// The first capturing stream of this sort: its name and since when.
fn first(
    issue: &Issue<'_, '_>,
    mut is_one: impl FnMut(&StreamId) -> bool,
) -> Option<(String, usize)> {
    let mut members = issue.scope.captures.streams.iter();
    let (&id, member) = members.find(|(stream, _)| is_one(stream))?;
    let stream = issue.scope.entities.stream(id);
    let name = stream.and_then(|stream| stream.name.clone());
    Some((name.unwrap_or_else(|| "ptds".to_owned()), member.since))
}

/// Whether a call may be unsafe: it does something that is not in a stream, or waits for it, so that
/// the graph would not do it again.
fn may_be_unsafe(issue: &Issue<'_, '_>, call: &Call) -> bool {
    match call.action {
        Action::Allocate { allocation, stream: None }
        | Action::Free { allocation, stream: None } => {
            let kind = issue.scope.entities.allocation(allocation).map(|a| a.kind);
            matches!(
                kind,
                Some(
                    MemoryKind::Device
                        | MemoryKind::Managed
                        | MemoryKind::Pinned
                        | MemoryKind::Array
                )
            )
        }
        Action::EventSynchronize { .. }
        | Action::EventQuery { .. }
        | Action::StreamSynchronize { .. }
        | Action::StreamQuery { .. }
        | Action::ContextSynchronize { .. }
        | Action::GraphInstantiate { .. } => true,
        _ => false,
    }
}

/// Refuses a call that may be unsafe, where the mode of a capture says so.
fn check_mode(issue: &Issue<'_, '_>) -> Result<(), SyntaxError> {
    let caller = (issue.scope.process, issue.thread);
    let Captures { active, .. } = &issue.scope.captures;
    let prohibits = active.iter().filter(|(_, capture)| match capture.mode {
        Mode::Global => capture.caller.0 == caller.0,
        Mode::ThreadLocal => capture.caller == caller,
        Mode::Relaxed => false,
    });
    match prohibits.map(|(&line, _)| line).min() {
        Some(line) => Err(issue.verb.error(format!(
            "`{}` is not permitted during the capture that began on line {line}; `mode=relaxed` \
             behind `capture_begin` permits it",
            issue.verb.text
        ))),
        None => Ok(()),
    }
}
