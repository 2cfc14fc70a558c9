//! Kernel launches and host functions.

use super::lookup::Lookup;
use super::tables::KnownKernel;
use streamsan_model::{Action, Basis, Entity, Extent, Kernel, Mode, StreamId};

/// What of `CUlaunchConfig` matters (driver API, "CUlaunchConfig_st").
const CONFIG_STREAM: usize = 32;
/// `CUlaunchAttribute`: identifier, padding, 64 bytes of value.
const ATTRIBUTE_BYTES: usize = 72;
const ATTRIBUTE_VALUE: usize = 8;

/// The launch attributes that change what is ordered (`CUlaunchAttributeID`).
const COOPERATIVE: u32 = 2;
const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;
const LAUNCH_COMPLETION_EVENT: u32 = 12;

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`.
pub(super) fn kernel(l: &mut Lookup<'_>, cooperative: bool) -> Option<Action> {
    let stream = l.stream(l.call.arg(8))?;
    launch(l, l.call.arg(0), stream, false, cooperative)
}

/// `cuLaunchKernelEx`.
pub(super) fn extended(l: &mut Lookup<'_>) -> Option<Action> {
    let config = l.call.pointee.as_deref()?;
    let stream = config.get(CONFIG_STREAM..CONFIG_STREAM + 8)?;
    let stream = l.stream(u64::from_le_bytes(stream.try_into().ok()?))?;
    let (mut programmatic, mut cooperative) = (false, false);
    let attributes = l.call.launch_attributes.as_deref().unwrap_or_default();
    for attribute in attributes.chunks_exact(ATTRIBUTE_BYTES) {
        let word = |at: usize| {
            let bytes = [attribute[at], attribute[at + 1], attribute[at + 2], attribute[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let on = word(ATTRIBUTE_VALUE) != 0;
        match word(0) {
            COOPERATIVE => cooperative = on,
            PROGRAMMATIC_STREAM_SERIALIZATION => programmatic = on,
            PROGRAMMATIC_EVENT | LAUNCH_COMPLETION_EVENT => {
                l.gaps.not_understood("cuLaunchKernelEx (event attribute)");
            }
            _ => {}
        }
    }
    if programmatic {
        // Whether the kernel executes the wait stands in its code, which is not read yet. Taking
        // it to wait reports nothing false; the verdict says that something was not seen.
        l.gaps.not_understood("cuLaunchKernelEx (programmatic stream serialization)");
    }
    launch(l, l.call.arg(1), stream, programmatic, cooperative)
}

fn launch(
    l: &mut Lookup<'_>,
    function: u64,
    stream: StreamId,
    programmatic: bool,
    cooperative: bool,
) -> Option<Action> {
    let known = match l.tables.kernels.get(&function) {
        Some(known) => known.clone(),
        None if l.call.succeeded() => unnamed(l, function),
        None => return None,
    };
    if l.call.succeeded() {
        parameters(l, &known);
    }
    Some(Action::Launch {
        stream,
        kernel: known.id,
        programmatic,
        waits_for_programmatic: programmatic,
        cooperative,
        event: None,
    })
}

/// A kernel that was launched without its record having been seen.
fn unnamed(l: &mut Lookup<'_>, function: u64) -> KnownKernel {
    let id = l.ids.kernel();
    let name = "(unknown kernel)";
    l.declare(Entity::Kernel(Kernel { id, name: name.to_owned(), params: Vec::new() }));
    let known = KnownKernel { id, name: name.into(), params: None };
    l.tables.kernels.insert(function, known.clone());
    known
}

/// Every word of the parameters that lies in live memory is taken for a pointer into it: nothing
/// is known of its use, so the kernel may touch the whole allocation.
fn parameters(l: &mut Lookup<'_>, kernel: &KnownKernel) {
    let Some(bytes) = l.call.kernel_params.as_deref() else {
        if kernel.params.as_ref().is_none_or(|layout| !layout.is_empty()) {
            l.gaps.unknown_parameters(&kernel.name);
        }
        return;
    };
    let whole = [(0, bytes.len() as u32)];
    for &(offset, size) in kernel.params.as_deref().unwrap_or(&whole) {
        let (first, end) = (offset.next_multiple_of(8), u64::from(offset) + u64::from(size));
        for at in (u64::from(first)..end).step_by(8) {
            if at + 8 > end {
                break;
            }
            let at = at as usize;
            let Some(word) = bytes.get(at..at + 8).and_then(|b| b.try_into().ok()) else { break };
            let address = u64::from_le_bytes(word);
            let memory = &l.tables.memory;
            let block = memory.find(address).or_else(|| {
                // A parameter that is nothing but a stale device pointer is a use after free; a
                // word inside a structure may be anything.
                let past = (size == 8).then(|| memory.find_past(address))?;
                past.filter(|b| !b.kind.is_host())
            });
            if let Some(block) = block.copied() {
                l.touch(block.id, Extent::Range(block.range), Mode::MayWrite, Basis::Assumed);
            }
        }
    }
}

/// `cuLaunchHostFunc`, `cuStreamAddCallback`.
pub(super) fn host_function(l: &mut Lookup<'_>) -> Option<Action> {
    Some(Action::HostFunction { stream: l.stream(l.call.arg(0))? })
}
