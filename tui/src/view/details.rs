//! Everything about the selected operation.

use super::styled::{Text, bold, plain};
use crate::State;
use crate::names;
use streamsan_model::{
    Access, Action, AllocationId, CallStack, Detail, Edge, Entities, Extent, KernelId, Tier,
};
use streamsan_names::printable;

pub(super) fn lines(state: &State) -> Vec<Text> {
    let (Some(open), Some(detail)) = (&state.open, &state.selection) else {
        return vec![plain("nothing is selected")];
    };
    let several = open.are_several();
    let open = open.of(state.selected_trace);
    let entities = &open.overview.entities;
    let op = &detail.operation;
    let mut lines = vec![bold(format!(
        "#{} {} {} by {}",
        names::number(op.g.0),
        names::call(&op.api, &stack_of(detail)),
        match op.action.stream() {
            Some(id) => format!("in {}", open.the_stream(id)),
            None => "on the host".to_owned(),
        },
        match entities.thread(op.thread) {
            Some(thread) => format!("thread {}", thread.tid),
            None => format!("thread {}", op.thread),
        }
    ))];
    if several {
        let trace = super::trace_in_words(state, state.selected_trace);
        lines.push(plain(format!("  of {trace}")));
    }
    lines.extend(action(&op.action, entities, detail).into_iter().map(plain));
    lines.push(plain(when(detail)));
    if !detail.ranges.is_empty() {
        let names = detail.ranges.iter().map(|range| names::range(&range.name));
        lines.push(plain(format!("  in {}", names.collect::<Vec<_>>().join("/"))));
    }
    for access in &op.accesses {
        lines.push(plain(format!("  {}", access_line(access, detail))));
    }
    if !op.status.is_success() {
        lines.push(bold(format!("  failed: CUresult {}", op.status.0)));
    }
    for (edge, _) in &detail.incoming {
        lines.push(plain(format!("  [ waits for #{}", edge_line(edge, edge.from.0))));
    }
    for (edge, _) in &detail.outgoing {
        lines.push(plain(format!("  ] before #{}", edge_line(edge, edge.to.0))));
    }
    for allocation in &detail.allocations {
        let name = names::quoted(allocation.name.as_deref());
        let api = printable(&allocation.api);
        lines.push(plain(format!(
            "  allocation {}{name}: {} at {:#x}, made by {}",
            allocation.id,
            names::memory(allocation),
            allocation.range.start,
            if api.is_empty() { "a call before the trace" } else { &api }
        )));
    }
    lines.extend(stack(detail));
    lines
}

fn stack_of(detail: &Detail) -> CallStack<'_> {
    CallStack::of_frames(detail.stack.iter().map(|frame| &**frame), false)
}

/// Where the call was made, innermost first; the program's own frames stand out.
fn stack(detail: &Detail) -> Vec<Text> {
    let stack = stack_of(detail);
    if stack.frames.is_empty() {
        return Vec::new();
    }
    let operator = stack.torch_operator().map(|operator| format!("  in {operator}"));
    let operator = operator.map(|line| plain(printable(&line).into_owned()));
    let mut lines: Vec<Text> = operator.into_iter().collect();
    lines.push(plain("  called from"));
    lines.extend(stack.frames.iter().map(|frame| {
        let line = format!("    {}", printable(&frame.description(None)));
        if frame.is_own() { bold(line) } else { plain(line) }
    }));
    if detail.stack_truncated {
        lines.push(plain("    ... further out not recorded"));
    }
    lines
}

fn edge_line(edge: &Edge, end: u64) -> String {
    let tier = if edge.tier == Tier::Documented { "" } else { ", incidental" };
    format!("{} ({}{tier})", names::number(end), edge.kind.description())
}

/// Host times, and depth. Nothing is known of when the GPU ran it.
fn when(detail: &Detail) -> String {
    let mut text = String::from("  ");
    if let Some(time) = detail.operation.time {
        let spent = names::duration(time.end_ns.saturating_sub(time.start_ns));
        let at = detail.place.at[streamsan_model::Axis::Time as usize].unwrap_or(0);
        text += &format!("called at +{}, {spent} in the driver", names::duration(at));
    } else {
        text += "host time not recorded";
    }
    match detail.operation.exit {
        Some(exit) if exit != detail.operation.g => {
            text += &format!(", returned at #{}", names::number(exit.0));
        }
        Some(_) => {}
        None => text += ", never returned",
    }
    if let Some(depth) = detail.place.at[streamsan_model::Axis::Logical as usize] {
        text += &format!(", depth {}", names::number(depth));
    }
    text
}

fn kernel(entities: &Entities, id: KernelId) -> String {
    match entities.kernel(id) {
        Some(kernel) if !kernel.name.is_empty() => names::full(&kernel.name),
        _ => format!("kernel {id}"),
    }
}

fn action(action: &Action, entities: &Entities, detail: &Detail) -> Option<String> {
    let event = || {
        let event = detail.event.as_ref()?;
        Some(format!("event {}{}", event.id, names::quoted(event.name.as_deref())))
    };
    let text = match action {
        Action::Other => return None,
        Action::Launch { kernel: id, programmatic, cooperative, .. } => {
            let mut text = kernel(entities, *id);
            if *programmatic {
                text += ", programmatic: may begin before its predecessor ends";
            }
            if *cooperative {
                text += ", cooperative";
            }
            text
        }
        Action::LaunchMultiDevice(launch) => {
            let names = launch.launches.iter().map(|member| kernel(entities, member.kernel));
            names.collect::<Vec<_>>().join(", ")
        }
        Action::Copy(copy) => format!(
            "{} from {} to {}{}",
            names::size(copy.bytes),
            copy.source.description(),
            copy.destination.description(),
            if copy.synchronous { ", synchronous form" } else { "" }
        ),
        Action::Memset { destination, .. } => format!("sets {}", destination.description()),
        Action::CollectiveGroup(group) => {
            format!("one operation of {}", names::plural(group.members.len() as u64, "stream"))
        }
        Action::Batch(batch) => names::plural(batch.entries.len() as u64, "unordered copy"),
        Action::Signals(signals) => {
            names::plural(signals.operations.len() as u64, "stream memory operation")
        }
        Action::GraphLaunch { executable, graph, .. } => {
            format!("executable {executable} runs graph {graph}")
        }
        Action::HostFunctionRun { enqueued } => {
            format!("runs the host function that #{} enqueued", names::number(enqueued.0))
        }
        _ => match event() {
            Some(event) => format!("{}: {event}", action.description()),
            None => action.description().to_owned(),
        },
    };
    Some(format!("  {text}"))
}

/// `writes 4.0 KiB at 0x7f… (+0x200) of allocation 41 "kv_cache" (exact)`.
pub(super) fn access_line(access: &Access, detail: &Detail) -> String {
    let name = |id: AllocationId| {
        let allocation = detail.allocations.iter().find(|allocation| allocation.id == id);
        names::quoted(allocation.and_then(|allocation| allocation.name.as_deref()))
    };
    let base = detail.allocations.iter().find(|a| a.id == access.allocation);
    let hull = access.extent.hull();
    let offset = base.map_or(0, |allocation| hull.start.saturating_sub(allocation.range.start));
    let rows = match access.extent {
        Extent::Range(_) => String::new(),
        Extent::Strided(p) => {
            format!(" in {} rows of {}", names::number(p.rows * p.slices), names::size(p.width))
        }
    };
    format!(
        "{} {}{rows} at {:#x} (+{offset:#x}) of allocation {}{} ({})",
        access.mode.description(),
        names::extent(hull),
        hull.start,
        access.allocation,
        name(access.allocation),
        access.basis.description()
    )
}
