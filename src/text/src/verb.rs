//! One call: a verb and its operands.

use crate::cursor::{AND, Cursor};
use crate::scope::Scope;
use crate::token::Token;
use crate::{SyntaxError, api, batch, capture, file, graph, managed, memory, operand, signal};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, CollectiveGroup, ContextId, EventId, GridControl, LaunchEventKind,
    MemberCollective, OpSeq, Status, StreamId, StreamKind, ThreadId, TraceItem, Trigger,
};

/// A call being parsed.
#[derive(Debug)]
pub(crate) struct Issue<'s, 'a> {
    pub(crate) scope: &'s mut Scope,
    pub(crate) cursor: Cursor<'a>,
    pub(crate) verb: Token<'a>,
    /// The number behind `T`.
    pub(crate) thread: u32,
    /// The result; [`Status::SUCCESS`] unless `status=` or `busy` says else.
    pub(crate) status: Status,
    /// The entry point, where `api=` says it.
    pub(crate) api: Option<Token<'a>>,
}

/// The result of a line.
#[derive(Debug)]
pub(crate) struct Call {
    /// The usual entry point of the verb.
    pub(crate) api: String,
    pub(crate) action: Action,
    pub(crate) accesses: Vec<Access>,
}

impl Call {
    /// A call without accesses.
    pub(crate) fn plain(api: &str, action: Action) -> Self {
        Self { api: api.to_owned(), action, accesses: Vec::new() }
    }
}

/// Parses everything behind the verb. `None` for a line that only declares something.
pub(crate) fn call(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    let call = match issue.verb.text {
        "context" => return context(issue),
        "stream" => return stream(issue),
        "event" => return event(issue),
        "destroy_context" => destroy_context(issue),
        "destroy_stream" => destroy_stream(issue),
        "destroy_event" => destroy_event(issue),
        "alloc" | "alloc_managed" | "alloc_pinned" | "alloc_async" | "register" | "pageable"
        | "global" | "array" | "map" => return memory::allocate(issue),
        "import" => return memory::import(issue),
        "region" => return memory::register_region(issue),
        "free" | "free_pinned" | "free_async" | "unregister" | "free_array" | "unmap"
        | "close_import" | "unregister_region" => memory::free(issue),
        "launch" => launch(issue),
        "copy" | "copy_sync" | "copy2d" | "copy2d_sync" | "copy3d" | "copy3d_sync"
        | "copy_peer" | "copy_peer_sync" => memory::copy(issue),
        "memset" | "memset_sync" | "memset2d" | "memset2d_sync" => memory::memset(issue),
        "record" => record(issue),
        "wait" => wait(issue),
        "sync_event" | "query_event" => event_to_host(issue),
        "elapsed" => elapsed(issue),
        "sync_stream" | "query_stream" => stream_to_host(issue),
        "sync_ctx" => sync_context(issue),
        "record_ctx" => record_context(issue),
        "wait_ctx" => wait_context(issue),
        "host" => host(issue),
        "host_fn" => host_function(issue),
        "run_host_fn" => run_host_function(issue),
        "prefetch" | "discard" | "discard_prefetch" => managed::move_or_discard(issue),
        "attach" => managed::attach(issue),
        "write_value" | "wait_value" | "signal" | "wait_signal" => signal::signals(issue),
        "release" | "acquire" => signal::host_threads(issue),
        "graph" | "node" | "edge" | "instantiate" | "update" | "set_node" | "disable_node"
        | "enable_node" | "launch_graph" | "upload_graph" | "destroy_graph" => graph::graph(issue),
        "batch" | "decompress" => batch::batch(issue),
        "launch_multi" => batch::launch_multi(issue),
        "file_read" | "file_write" | "file_read_async" | "file_write_async" => {
            file::transfer(issue)
        }
        "file_batch" | "file_batch_done" => file::batch(issue),
        "collective" => collective(issue),
        "capture_begin" => capture::begin(issue),
        "capture_end" => capture::end(issue),
        "hand_out" => hand_out(issue),
        "stack" => return crate::stack::declare(issue).map(|()| None),
        _ => Err(issue.verb.expected("a verb such as `launch`, `copy` or `record`")),
    };
    call.map(Some)
}

impl<'a> Issue<'_, 'a> {
    /// The line of the call.
    pub(crate) fn line(&self) -> usize {
        self.verb.line
    }

    /// The calling thread.
    pub(crate) fn thread(&mut self) -> ThreadId {
        self.scope.thread(self.thread)
    }

    /// The next word as a stream.
    pub(crate) fn next_stream(&mut self) -> Result<StreamId, SyntaxError> {
        let token = self.cursor.next("a stream")?;
        self.stream(token)
    }

    /// The stream that `token` names.
    pub(crate) fn stream(&mut self, token: Token<'_>) -> Result<StreamId, SyntaxError> {
        // Only a per-thread default stream depends on the thread.
        let per_thread = token.text == "ptds" || token.text.ends_with("/ptds");
        let thread = if per_thread { self.thread() } else { ThreadId(0) };
        self.scope.stream(token, thread)
    }

    /// The context of `ctx=`, where it is given.
    pub(crate) fn context_option(&mut self) -> Result<Option<ContextId>, SyntaxError> {
        self.cursor.option("ctx").map(|token| self.scope.context(token)).transpose()
    }

    /// The default stream that a synchronous call uses: that of `ctx=`, else of `inferred`, else
    /// of `c0`; the calling thread's when `ptds` is there.
    pub(crate) fn implied_stream(
        &mut self,
        inferred: Option<ContextId>,
    ) -> Result<(StreamId, bool), SyntaxError> {
        let context = match self.context_option()?.or(inferred) {
            Some(context) => context,
            None => self.scope.default_context(self.verb.line),
        };
        let per_thread = self.cursor.flag("ptds");
        let kind = if per_thread { StreamKind::PerThread } else { StreamKind::Legacy };
        let thread = if per_thread { self.thread() } else { ThreadId(0) };
        Ok((self.scope.default_stream(context, kind, thread), per_thread))
    }

    /// The words that are left, up to `&`, as accesses.
    pub(crate) fn accesses(&mut self) -> Result<Vec<Access>, SyntaxError> {
        let mut accesses: Vec<Access> = Vec::new();
        while self.cursor.peek().is_some_and(|word| word.text != AND)
            && let Some(token) = self.cursor.take()
        {
            self.add_access(token, token, &mut accesses)?;
        }
        Ok(accesses)
    }

    /// Adds the access that `operand` says; errors stand at `token`.
    fn add_access(
        &mut self,
        token: Token<'_>,
        operand: Token<'_>,
        accesses: &mut Vec<Access>,
    ) -> Result<(), SyntaxError> {
        let Some(access) = operand::access(self.scope, operand)? else { return Ok(()) };
        let same = |a: &Access| (a.allocation, a.extent) == (access.allocation, access.extent);
        if accesses.iter().any(same) {
            return Err(token.error(
                "the same bytes twice in one call; write one access, `rw:` for a read and a \
                 write",
            ));
        }
        accesses.push(access);
        Ok(())
    }

    /// The remaining words of a kernel: `[pdl_wait] [pdl_trigger=early]`, and its accesses.
    /// Accesses with `early:` happen before the wait and come first in the result.
    pub(crate) fn kernel(&mut self) -> Result<(GridControl, Vec<Access>), SyntaxError> {
        let waits = self.cursor.flag("pdl_wait");
        let trigger = match self.cursor.option("pdl_trigger") {
            None => Trigger::AtEnd,
            Some(token) => match token.text {
                "early" => Trigger::Early,
                "waited" if waits => Trigger::BehindWait,
                "waited" => return Err(token.error("a kernel without `pdl_wait` has no wait")),
                _ => return Err(token.expected("`early` or `waited`")),
            },
        };
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        while self.cursor.peek().is_some_and(|word| word.text != AND)
            && let Some(token) = self.cursor.take()
        {
            match token.strip_prefix("early:") {
                Some(_) if !waits => {
                    return Err(token.error("a kernel without `pdl_wait` has no wait"));
                }
                Some(operand) => self.add_access(token, operand, &mut before)?,
                None => self.add_access(token, token, &mut behind)?,
            }
        }
        let early = before.len() as u32;
        before.append(&mut behind);
        Ok((GridControl { waits, early, trigger }, before))
    }

    /// Whether the object is older than the trace, so that the line is no call.
    pub(crate) fn existing(&mut self) -> bool {
        self.cursor.flag("existing")
    }

    /// A call that makes something has succeeded, or there is nothing to name.
    pub(crate) fn must_succeed(&self) -> Result<(), SyntaxError> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(self.verb.error(format!(
            "a failed `{}` makes nothing that could be named; leave the line out",
            self.verb.text
        )))
    }
}

fn context(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    issue.must_succeed()?;
    let token = issue.cursor.next("a name for the context")?;
    let device = match issue.cursor.option("device") {
        None => None,
        Some(value) => {
            let number = u32::try_from(value.number("a device ordinal")?);
            Some(number.map_err(|_| value.expected("a device ordinal"))?)
        }
    };
    let parent =
        issue.cursor.option("green").map(|token| green_parent(issue, token)).transpose()?;
    let concurrent_managed_access = !issue.cursor.flag("no_concurrent_managed");
    let existing = issue.existing();
    let context = issue.scope.declare_context(token, device, parent, concurrent_managed_access)?;
    let primary = issue.scope.entities.context(context).is_some_and(|c| c.primary);
    let api = match (primary, parent) {
        (true, _) => "cuDevicePrimaryCtxRetain",
        (false, Some(_)) => "cuGreenCtxCreate",
        (false, None) => "cuCtxCreate_v2",
    };
    Ok((!existing).then(|| Call::plain(api, Action::ContextCreate { context })))
}

/// The primary context that `green=` names.
fn green_parent(issue: &mut Issue<'_, '_>, token: Token<'_>) -> Result<ContextId, SyntaxError> {
    let parent = issue.scope.context(token)?;
    match issue.scope.entities.context(parent) {
        Some(context) if context.primary => Ok(parent),
        _ => Err(token.expected("the primary context that the green context is a part of")),
    }
}

fn stream(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    issue.must_succeed()?;
    let token = issue.cursor.next("a name for the stream")?;
    let kind = match issue.cursor.flag("nonblocking") {
        true => StreamKind::NonBlocking,
        false => StreamKind::Blocking,
    };
    let context = issue.context_option()?;
    let priority = match issue.cursor.option("priority") {
        None => None,
        Some(value) => {
            let number = value.text.parse::<i32>();
            Some(number.map_err(|_| value.expected("a priority as a number"))?)
        }
    };
    let existing = issue.existing();
    let stream = issue.scope.declare_stream(token, context, kind, priority.unwrap_or(0))?;
    let api = match priority {
        Some(_) => "cuStreamCreateWithPriority",
        None => "cuStreamCreate",
    };
    Ok((!existing).then(|| Call::plain(api, Action::StreamCreate { stream })))
}

fn event(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    issue.must_succeed()?;
    let token = issue.cursor.next("a name for the event")?;
    let context = issue.context_option()?;
    let imported = issue.cursor.flag("imported");
    let existing = issue.existing();
    let event = issue.scope.declare_event(token, context, imported)?;
    let api = if imported { "cuIpcOpenEventHandle" } else { "cuEventCreate" };
    Ok((!existing).then(|| Call::plain(api, Action::EventCreate { event })))
}

fn destroy_context(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("a context")?;
    let context = issue.scope.context(token)?;
    let primary = issue.scope.entities.context(context).is_some_and(|c| c.primary);
    let api = if primary { "cuDevicePrimaryCtxReset_v2" } else { "cuCtxDestroy_v2" };
    Ok(Call::plain(api, Action::ContextDestroy { context }))
}

fn destroy_stream(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    if issue.status.is_success() {
        let line = issue.line();
        issue.scope.end_stream(stream, line);
    }
    Ok(Call::plain("cuStreamDestroy_v2", Action::StreamDestroy { stream }))
}

fn destroy_event(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an event")?;
    let event = issue.scope.event(token, None)?;
    if issue.status.is_success() {
        let line = issue.line();
        issue.scope.end_event(event, line);
    }
    Ok(Call::plain("cuEventDestroy_v2", Action::EventDestroy { event }))
}

fn launch(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let name = kernel_name(issue)?;
    let programmatic = issue.cursor.flag("pdl");
    let cooperative = issue.cursor.flag("coop");
    let event = launch_event(issue, stream)?;
    let kernel = issue.scope.kernel(name.text);
    let (control, accesses) = issue.kernel()?;
    Ok(Call {
        api: api::launch(programmatic || event.is_some(), cooperative).to_owned(),
        action: Action::Launch { stream, kernel, programmatic, control, cooperative, event },
        accesses,
    })
}

/// The next word as the name of a kernel.
pub(crate) fn kernel_name<'a>(issue: &mut Issue<'_, 'a>) -> Result<Token<'a>, SyntaxError> {
    let name = issue.cursor.next("the name of a kernel")?;
    if let Some((mode, _)) = name.text.split_once(':')
        && matches!(
            mode.trim_start_matches(['~', '=', '!']),
            "r" | "w" | "rw" | "at" | "?" | "early"
        )
    {
        return Err(name.expected("the name of a kernel before its accesses"));
    }
    Ok(name)
}

/// `programmatic_event=E`, `block_start_event=E` or `completion_event=E`: an event that the launch
/// records.
fn launch_event(
    issue: &mut Issue<'_, '_>,
    stream: StreamId,
) -> Result<Option<(EventId, LaunchEventKind)>, SyntaxError> {
    let kinds = [
        ("programmatic_event", LaunchEventKind::Programmatic),
        ("block_start_event", LaunchEventKind::BlockStart),
        ("completion_event", LaunchEventKind::LaunchCompletion),
    ];
    let mut found = None;
    for (option, kind) in kinds {
        let Some(token) = issue.cursor.option(option) else { continue };
        if found.is_some() {
            return Err(token.error("a launch records one event at most"));
        }
        found = Some((token, kind));
    }
    let Some((token, kind)) = found else { return Ok(None) };
    let context = issue.scope.stream_context(stream);
    Ok(Some((issue.scope.event(token, context)?, kind)))
}

/// `collective S NAME ACCESS... & S2 NAME ACCESS...`: the name is the entry point, of a group of
/// several kinds of calls its end.
fn collective(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let (mut members, mut accesses): (Vec<MemberCollective>, _) = (Vec::new(), Vec::new());
    let mut api: Option<&str> = None;
    loop {
        let token = issue.cursor.next("a stream")?;
        let stream = issue.stream(token)?;
        if members.iter().any(|other| other.stream == stream) {
            return Err(token.error("what a group does in one stream stands together"));
        }
        let context = |stream| issue.scope.stream_context(stream);
        if members.first().is_some_and(|first| context(first.stream) != context(stream)) {
            return Err(token.error("streams of another context are no part of the group"));
        }
        let name = issue.cursor.next("a function such as `ncclAllReduce`")?.text;
        api = Some(api.map_or(name, |others| if others == name { name } else { api::GROUP_END }));
        let own = issue.accesses()?;
        // As many words fit on a line.
        members.push(MemberCollective { stream, accesses: own.len() as u32 });
        accesses.extend(own);
        match issue.cursor.take() {
            None => break,
            Some(word) if word.text == AND => {}
            Some(word) => return Err(word.expected("an access or `&`")),
        }
    }
    let action = match members[..] {
        [MemberCollective { stream, .. }] => Action::Collective { stream },
        _ => Action::CollectiveGroup(Arc::new(CollectiveGroup { members })),
    };
    Ok(Call { api: api.unwrap_or(api::GROUP_END).to_owned(), action, accesses })
}

fn hand_out(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    Ok(Call::plain(api::HAND_OUT, Action::StreamHandedOut { stream }))
}

fn record(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let event = issue.cursor.next("an event")?;
    let stream = issue.next_stream()?;
    let context = issue.scope.stream_context(stream);
    let event = issue.scope.event(event, context)?;
    Ok(Call::plain("cuEventRecord", Action::EventRecord { event, stream }))
}

fn wait(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let token = issue.cursor.next("an event")?;
    let context = issue.scope.stream_context(stream);
    let event = issue.scope.event(token, context)?;
    Ok(Call::plain("cuStreamWaitEvent", Action::StreamWaitEvent { stream, event }))
}

fn event_to_host(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an event")?;
    let event = issue.scope.event(token, None)?;
    if issue.verb.text == "sync_event" {
        return Ok(Call::plain("cuEventSynchronize", Action::EventSynchronize { event }));
    }
    busy(issue)?;
    Ok(Call::plain("cuEventQuery", Action::EventQuery { event }))
}

fn stream_to_host(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    if issue.verb.text == "sync_stream" {
        return Ok(Call::plain("cuStreamSynchronize", Action::StreamSynchronize { stream }));
    }
    busy(issue)?;
    Ok(Call::plain("cuStreamQuery", Action::StreamQuery { stream }))
}

/// `busy`: the query was answered with not ready.
fn busy(issue: &mut Issue<'_, '_>) -> Result<(), SyntaxError> {
    if issue.cursor.flag("busy") {
        if !issue.status.is_success() {
            return Err(issue.verb.error("`busy` and `status=` are two answers to one query"));
        }
        issue.status = Status::NOT_READY;
    }
    Ok(())
}

fn elapsed(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let start = issue.cursor.next("the event at the start")?;
    let start = issue.scope.event(start, None)?;
    let end = issue.cursor.next("the event at the end")?;
    let end = issue.scope.event(end, None)?;
    Ok(Call::plain("cuEventElapsedTime", Action::EventElapsedTime { start, end }))
}

fn sync_context(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let context = match issue.cursor.take() {
        Some(token) => issue.scope.context(token)?,
        None => issue.scope.default_context(issue.verb.line),
    };
    Ok(Call::plain("cuCtxSynchronize", Action::ContextSynchronize { context }))
}

fn record_context(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an event")?;
    let context = issue.cursor.next("a context")?;
    let context = issue.scope.context(context)?;
    let event = issue.scope.event(token, Some(context))?;
    Ok(Call::plain("cuCtxRecordEvent", Action::ContextRecordEvent { context, event }))
}

fn wait_context(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let context = issue.cursor.next("a context")?;
    let context = issue.scope.context(context)?;
    let token = issue.cursor.next("an event")?;
    let event = issue.scope.event(token, Some(context))?;
    Ok(Call::plain("cuCtxWaitEvent", Action::ContextWaitEvent { context, event }))
}

fn host(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let accesses = issue.accesses()?;
    Ok(Call { api: api::HOST_ACCESS.to_owned(), action: Action::HostAccess, accesses })
}

fn host_function(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let accesses = issue.accesses()?;
    let action = Action::HostFunction { stream };
    Ok(Call { api: "cuLaunchHostFunc".to_owned(), action, accesses })
}

fn run_host_function(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("the line of a `host_fn`")?;
    let line = token.number("the line of a `host_fn`")?;
    let is_host_function = issue.scope.items.iter().any(|item| match item {
        TraceItem::Operation(op) => {
            op.g == OpSeq(line) && matches!(op.action, Action::HostFunction { .. })
        }
        _ => false,
    });
    if !is_host_function {
        return Err(token.error(format!("no line {line} with a `host_fn` comes before")));
    }
    let accesses = issue.accesses()?;
    let action = Action::HostFunctionRun { enqueued: OpSeq(line) };
    Ok(Call { api: api::HOST_FUNCTION.to_owned(), action, accesses })
}
