//! Kernel launches and host functions.

use super::lookup::Lookup;
use super::memory::Block;
use super::tables::KnownKernel;
use super::tensor_maps;
use super::textures;
use streamsan_model::{Action, Basis, Entity, EventId, Kernel, LaunchEventKind, Mode, StreamId};

/// What of `CUlaunchConfig` matters (driver API, "CUlaunchConfig_st").
const CONFIG_STREAM: usize = 32;
/// `CUlaunchAttribute`: identifier, padding, 64 bytes of value.
const ATTRIBUTE_BYTES: usize = 72;
const ATTRIBUTE_VALUE: usize = 8;
/// Where a programmatic event says that blocks trigger it by beginning: behind handle and flags.
const TRIGGER_AT_BLOCK_START: usize = ATTRIBUTE_VALUE + 12;

/// The launch attributes that change what is ordered (`CUlaunchAttributeID`).
const COOPERATIVE: u32 = 2;
const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;
const LAUNCH_COMPLETION_EVENT: u32 = 12;

/// What a launch is besides its stream and its kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    programmatic: bool,
    cooperative: bool,
    event: Option<(EventId, LaunchEventKind)>,
}

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`.
pub(super) fn kernel(l: &mut Lookup<'_>, cooperative: bool) -> Option<Action> {
    let stream = l.stream(l.call.arg(8))?;
    launch(l, l.call.arg(0), stream, Attributes { cooperative, ..Attributes::default() })
}

/// `cuLaunchKernelEx`.
pub(super) fn extended(l: &mut Lookup<'_>) -> Option<Action> {
    let config = l.call.pointee.as_deref()?;
    let stream = config.get(CONFIG_STREAM..CONFIG_STREAM + 8)?;
    let stream = l.stream(u64::from_le_bytes(stream.try_into().ok()?))?;
    let attributes = attributes(l);
    if attributes.programmatic {
        // Whether the kernel executes the wait stands in its code, which is not read yet. Taking
        // it to wait reports nothing false; the verdict says that something was not seen.
        l.gaps.not_understood("cuLaunchKernelEx (programmatic stream serialization)");
    }
    launch(l, l.call.arg(1), stream, attributes)
}

/// The attributes of an extended launch that matter.
fn attributes(l: &mut Lookup<'_>) -> Attributes {
    let mut found = Attributes::default();
    let call = l.call;
    let attributes = call.launch_attributes.as_deref().unwrap_or_default();
    for attribute in attributes.chunks_exact(ATTRIBUTE_BYTES) {
        let half = |at: usize| {
            let bytes = [attribute[at], attribute[at + 1], attribute[at + 2], attribute[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let on = half(ATTRIBUTE_VALUE) != 0;
        let kind = match half(0) {
            COOPERATIVE => {
                found.cooperative = on;
                continue;
            }
            PROGRAMMATIC_STREAM_SERIALIZATION => {
                found.programmatic = on;
                continue;
            }
            // Triggered by the begin of the blocks it says no more than the other one.
            PROGRAMMATIC_EVENT if half(TRIGGER_AT_BLOCK_START) == 0 => {
                LaunchEventKind::Programmatic
            }
            PROGRAMMATIC_EVENT | LAUNCH_COMPLETION_EVENT => LaunchEventKind::LaunchCompletion,
            _ => continue,
        };
        let (low, high) = (half(ATTRIBUTE_VALUE), half(ATTRIBUTE_VALUE + 4));
        let Some(event) = l.event(u64::from(low) | u64::from(high) << 32) else { continue };
        if found.event.is_some() {
            l.gaps.not_understood("cuLaunchKernelEx (a second event attribute)");
        }
        found.event = Some((event, kind));
    }
    found
}

fn launch(
    l: &mut Lookup<'_>,
    function: u64,
    stream: StreamId,
    attributes: Attributes,
) -> Option<Action> {
    let known = known(l, function)?;
    if l.call.succeeded() {
        let call = l.call;
        parameters(l, function, &known, call.kernel_params.as_deref());
    }
    let Attributes { programmatic, cooperative, event } = attributes;
    Some(Action::Launch {
        stream,
        kernel: known.id,
        programmatic,
        waits_for_programmatic: programmatic,
        cooperative,
        event,
    })
}

/// The kernel that a function handle means; `None` for an unknown one in a refused call.
pub(super) fn known(l: &mut Lookup<'_>, function: u64) -> Option<KnownKernel> {
    match l.tables.kernels.get(&function) {
        Some(known) => Some(known.clone()),
        None => l.call.succeeded().then(|| unnamed(l, function)),
    }
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
/// is known of its use, so the kernel may touch the whole allocation. A word that equals a texture
/// or surface object leads to what that gives access to, and bytes that equal a tensor map to the
/// tensor that it describes.
pub(super) fn parameters(
    l: &mut Lookup<'_>,
    function: u64,
    kernel: &KnownKernel,
    bytes: Option<&[u8]>,
) {
    let textures = !l.tables.textures.is_empty();
    if textures {
        textures::launched(l, function);
    }
    let Some(bytes) = bytes else {
        if kernel.params.as_ref().is_none_or(|layout| !layout.is_empty()) {
            l.gaps.unknown_parameters(&kernel.name);
        }
        return;
    };
    let whole = [(0, bytes.len() as u32)];
    let maps = tensor_maps::parameters(l, bytes);
    for &(offset, size) in kernel.params.as_deref().unwrap_or(&whole) {
        let (first, end) = (offset.next_multiple_of(8), u64::from(offset) + u64::from(size));
        for at in (u64::from(first)..end).step_by(8) {
            if at + 8 > end {
                break;
            }
            let at = at as usize;
            if maps.iter().any(|map| map.contains(&at)) {
                continue;
            }
            let Some(word) = bytes.get(at..at + 8).and_then(|b| b.try_into().ok()) else { break };
            let address = u64::from_le_bytes(word);
            if textures {
                textures::parameter(l, address);
            }
            // A parameter that is nothing but a stale device pointer is a use after free; a word
            // inside a structure may be anything.
            let block = match size {
                8 => pointed_to(l, address),
                _ => l.tables.memory.find(address).copied(),
            };
            if let Some(block) = block {
                l.touch_all(&block, Mode::MayWrite, Basis::Assumed);
            }
        }
    }
}

/// The memory that a word points to which is known to be a pointer; memory of the device that is
/// freed by now is still meant by it.
pub(super) fn pointed_to(l: &Lookup<'_>, address: u64) -> Option<Block> {
    let memory = &l.tables.memory;
    let past = || memory.find_past(address).filter(|block| !block.kind.is_host());
    let alive = memory.find(address).map(|block| memory.meant(block, address, l.call.g));
    alive.or_else(|| past().copied())
}

/// `cuLaunchHostFunc`, `cuStreamAddCallback`.
pub(super) fn host_function(l: &mut Lookup<'_>) -> Option<Action> {
    Some(Action::HostFunction { stream: l.stream(l.call.arg(0))? })
}
