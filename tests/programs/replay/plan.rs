//! Lines that cannot be performed, found before the first driver call.

use std::collections::HashMap;

use streamsan_model::{
    Action, Allocation, AllocationId, Basis, Copy, Entities, Entity, Extent, GridControl, KernelId,
    MemoryKind, Mode, Operation, Status, TraceItem,
};

use crate::Refusal;
use crate::kernels::{self, runs};

/// Results that can be brought about: an invalid handle, a launch that asks for too much, and a
/// query that is made too early.
pub(crate) const INVALID_HANDLE: Status = Status(400);
pub(crate) const TOO_MANY_RESOURCES: Status = Status(701);

/// Larger buffers than this are not for a test to allocate.
const MOST_BYTES: u64 = 1 << 24;

/// Fails with the first line that cannot be performed.
pub(crate) fn check(items: &[TraceItem]) -> Result<(), Refusal> {
    let mut entities = Entities::default();
    let controls = controls(items);
    for item in items {
        match item {
            TraceItem::Entity(entity) => {
                check_entity(entity)?;
                entities.declare(entity.clone());
            }
            TraceItem::Operation(operation) => {
                check_operation(&entities, operation).map_err(|why| why.at(operation))?;
                if let Action::Launch { kernel, .. } = operation.action
                    && controls.get(&kernel) != control(&operation.action, operation).as_ref()
                {
                    let why = "a kernel that waits or triggers in other ways in other launches";
                    return Err(Refusal::new(why).at(operation));
                }
            }
            TraceItem::Returned { .. } | TraceItem::Range(_) => {}
        }
    }
    Ok(())
}

fn check_entity(entity: &Entity) -> Result<(), Refusal> {
    match entity {
        Entity::Allocation(buffer) if buffer.range.len() > MOST_BYTES => {
            Err(Refusal::new("a buffer of more than 16 MiB"))
        }
        Entity::Allocation(buffer) if buffer.backing.is_some() => {
            Err(Refusal::new("one memory at several addresses"))
        }
        Entity::Context(context) if context.parent.is_some() => {
            Err(Refusal::new("a green context"))
        }
        Entity::Context(context) if !context.concurrent_managed_access => {
            Err(Refusal::new("a device that shares no managed memory with the host"))
        }
        Entity::Event(event) if event.imported => {
            Err(Refusal::new("an event of a process outside of the run"))
        }
        Entity::Kernel(kernel) if !kernels::is_name(&kernel.name) => {
            Err(Refusal::new(format!("`{}` is no name for a PTX kernel", kernel.name)))
        }
        _ => Ok(()),
    }
}

fn check_operation(entities: &Entities, operation: &Operation) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(why));
    match operation.action {
        Action::HostAccess => return refuse("the host's own accesses are no driver call"),
        Action::HostFunction { .. } | Action::HostFunctionRun { .. } => {
            return refuse(
                "when a host function runs, and what it touches, is for the driver to say",
            );
        }
        Action::Other => return refuse("a call without meaning"),
        Action::Copy(Copy { sync_memops: true, .. }) | Action::Memset { sync_memops: true, .. } => {
            return refuse("an attribute of the memory that no line sets");
        }
        Action::Launch { event: Some(_), .. } => {
            return refuse("a launch that records an event by attribute");
        }
        Action::Launch { programmatic, control, .. } => {
            if control.waits && !programmatic {
                return refuse(
                    "a kernel that waits for programmatic predecessors without having any",
                );
            }
            check_accesses(operation)?;
        }
        Action::Allocate { allocation, .. } => check_place(entities, allocation)?,
        _ => {}
    }
    let result = operation.status;
    let is_query = is_query(&operation.action);
    let is_launch = matches!(operation.action, Action::Launch { .. });
    let can_be = result.is_success()
        || result == INVALID_HANDLE && has_handle(&operation.action)
        || result == TOO_MANY_RESOURCES && is_launch
        || result == Status::NOT_READY && is_query;
    if can_be { Ok(()) } else { refuse("this result cannot be brought about") }
}

/// The waits and triggers of a kernel, its early accesses counted in runs of bytes.
fn control(action: &Action, operation: &Operation) -> Option<GridControl> {
    let Action::Launch { control, .. } = *action else { return None };
    let early = operation.accesses.iter().take(control.early as usize);
    let early = early.map(|access| runs(&access.extent) as u32).sum();
    Some(GridControl { early, ..control })
}

/// The waits and triggers of the kernels, as their first launches say.
pub(crate) fn controls(items: &[TraceItem]) -> HashMap<KernelId, GridControl> {
    let mut controls = HashMap::new();
    for item in items {
        if let TraceItem::Operation(operation) = item
            && let Action::Launch { kernel, .. } = operation.action
            && let Some(control) = control(&operation.action, operation)
        {
            controls.entry(kernel).or_insert(control);
        }
    }
    controls
}

/// Whether the call asks whether work is done.
pub(crate) fn is_query(action: &Action) -> bool {
    matches!(
        action,
        Action::StreamQuery { .. } | Action::EventQuery { .. } | Action::EventElapsedTime { .. }
    )
}

/// Whether the call takes a handle that can be a wrong one.
fn has_handle(action: &Action) -> bool {
    matches!(
        action,
        Action::StreamWaitEvent { .. }
            | Action::EventRecord { .. }
            | Action::EventSynchronize { .. }
            | Action::EventQuery { .. }
    )
}

fn check_accesses(operation: &Operation) -> Result<(), Refusal> {
    let runs: usize = operation.accesses.iter().map(|access| kernels::runs(&access.extent)).sum();
    if runs > kernels::MOST_RUNS {
        return Err(Refusal::new("more runs of bytes than one kernel is told to touch"));
    }
    for access in &operation.accesses {
        if access.mode.is_strong() {
            return Err(Refusal::new("the kernel that is launched makes weak accesses only"));
        }
        if access.basis != Basis::Exact || kernels::mode(access.mode).is_none() {
            return Err(Refusal::new("a kernel's accesses are recorded exactly, not by guess"));
        }
        let words = |start: u64, len: u64| start.is_multiple_of(4) && len.is_multiple_of(4);
        let in_words = match access.extent {
            Extent::Range(range) => words(range.start, range.len()),
            Extent::Strided(_) => false,
        };
        if access.mode == Mode::Atomic && !in_words {
            return Err(Refusal::new("atomic accesses are to words of 4 bytes"));
        }
    }
    Ok(())
}

/// Where memory comes to lie is for the driver to say.
fn check_place(entities: &Entities, allocation: AllocationId) -> Result<(), Refusal> {
    let Some(new) = entities.allocation(allocation) else { return Ok(()) };
    let lies_on = |other: &Allocation| other.range.intersection(new.range).is_some();
    let lies_on_another = entities.allocations().any(|other| other.id != new.id && lies_on(other));
    if lies_on_another && new.kind != MemoryKind::StreamOrdered {
        return Err(Refusal::new("the driver chooses addresses itself"));
    }
    Ok(())
}
