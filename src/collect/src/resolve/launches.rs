//! Kernel launches and host functions.

use super::code_accesses::{self, Geometry};
use super::global_pointers;
use super::graphs::UNKNOWN_WAIT;
use super::kernels::{self, KnownKernel};
use super::memory::Block;
use super::resolution::Resolution;
use super::tensor_maps;
use super::textures;
use crate::kernel_code::{CodeId, Knowledge};
use crate::launch::{ByWords, Resolved, Special, Targets};
use streamsan_kernels::access::{KernelAccess, ParameterMode, WordKind};
use streamsan_model::{
    Action, Basis, EventId, GridControl, KernelGap, LaunchEventKind, Mode, StreamId,
};

/// The offsets in `CUlaunchConfig` of what matters (driver API, "CUlaunchConfig_st").
const CONFIG_GRID: usize = 0;
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

/// The attributes of a launch, besides its stream and its kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    programmatic: bool,
    cooperative: bool,
    event: Option<(EventId, LaunchEventKind)>,
}

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`.
pub(super) fn kernel(resolution: &mut Resolution<'_>, cooperative: bool) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(8))?;
    let dimension = |first: usize| [0, 1, 2].map(|axis| resolution.call.arg(first + axis) as u32);
    let geometry = Geometry { grid: dimension(1), block: dimension(4) };
    let attributes = Attributes { cooperative, ..Attributes::default() };
    launch(resolution, resolution.call.arg(0), stream, geometry, attributes)
}

/// `cuLaunchKernelEx`.
pub(super) fn extended(resolution: &mut Resolution<'_>) -> Option<Action> {
    let config = resolution.call.pointee.as_deref()?;
    let stream = config.get(CONFIG_STREAM..CONFIG_STREAM + 8)?;
    let stream = u64::from_le_bytes(stream.try_into().ok()?);
    let geometry = geometry(config, CONFIG_GRID)?;
    let stream = resolution.stream(stream)?;
    let attributes = attributes(resolution);
    launch(resolution, resolution.call.arg(1), stream, geometry, attributes)
}

/// Six numbers in a row: blocks, then threads of a block.
pub(super) fn geometry(bytes: &[u8], at: usize) -> Option<Geometry> {
    let number = |index: usize| {
        let bytes = bytes.get(at + 4 * index..at + 4 * index + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    Some(Geometry {
        grid: [number(0)?, number(1)?, number(2)?],
        block: [number(3)?, number(4)?, number(5)?],
    })
}

/// The attributes of an extended launch that matter.
fn attributes(resolution: &mut Resolution<'_>) -> Attributes {
    let mut found = Attributes::default();
    let call = resolution.call;
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
            PROGRAMMATIC_EVENT if half(TRIGGER_AT_BLOCK_START) == 0 => {
                LaunchEventKind::Programmatic
            }
            PROGRAMMATIC_EVENT => LaunchEventKind::BlockStart,
            LAUNCH_COMPLETION_EVENT => LaunchEventKind::LaunchCompletion,
            _ => continue,
        };
        let (low, high) = (half(ATTRIBUTE_VALUE), half(ATTRIBUTE_VALUE + 4));
        let Some(event) = resolution.event(u64::from(low) | u64::from(high) << 32) else {
            continue;
        };
        if found.event.is_some() {
            resolution.gaps.not_understood("cuLaunchKernelEx (a second event attribute)");
        }
        found.event = Some((event, kind));
    }
    found
}

fn launch(
    resolution: &mut Resolution<'_>,
    function: u64,
    stream: StreamId,
    geometry: Geometry,
    attributes: Attributes,
) -> Option<Action> {
    let known = kernels::known(resolution, function)?;
    let Attributes { programmatic, cooperative, event } = attributes;
    let mut control = if programmatic { GridControl::UNKNOWN } else { GridControl::default() };
    // The accesses of a collective operation are known from itself. The code of its kernels matters
    // only where the code says what a launch waits for.
    if resolution.call.succeeded() && (programmatic || !resolution.call.of_library) {
        let call = resolution.call;
        let known = parameters(
            resolution,
            function,
            &known,
            call.kernel_params.as_deref(),
            Some(geometry),
            programmatic,
        );
        control = known.control().unwrap_or(control);
        if let Resolved::ByWords(launch) = known {
            keep(resolution, launch);
        }
    }
    Some(Action::Launch { stream, kernel: known.id, programmatic, control, cooperative, event })
}

/// Keeps a launch that is known by its words until the code of its kernel is known.
pub(super) fn keep(resolution: &mut Resolution<'_>, launch: Box<ByWords>) {
    resolution.launch.awaits_code = launch.node.is_none();
    if let Err(launch) = resolution.codes.keep(launch) {
        resolution.launch.awaits_code = false;
        resolution.kernel_gap(KernelGap::NotLookedAtAgain, &launch.kernel.name);
        if launch.programmatic {
            not_understood_wait(resolution);
        }
    }
}

/// Whether the kernel executes the wait stands in its code, which is not known. Taking it to wait
/// reports nothing false; the verdict says that something was not seen.
pub(super) fn not_understood_wait(resolution: &mut Resolution<'_>) {
    resolution.gaps.not_understood("cuLaunchKernelEx (programmatic stream serialization)");
}

/// Notes what a launch touches: by the code of its kernel where that is known, else by its words.
pub(super) fn parameters(
    resolution: &mut Resolution<'_>,
    function: u64,
    kernel: &KnownKernel,
    bytes: Option<&[u8]>,
    geometry: Option<Geometry>,
    programmatic: bool,
) -> Resolved {
    resolution.targets = Targets::default();
    let specials = specials(resolution, function, kernel, bytes);
    let Some(bytes) = bytes else {
        if kernel.params.as_ref().is_none_or(|layout| !layout.is_empty()) {
            resolution.gaps.unknown_parameters(&kernel.name);
        }
        for access in specials.into_iter().flat_map(|special| special.accesses) {
            resolution.touch(access.allocation, access.extent, access.mode, access.basis);
        }
        if programmatic {
            not_understood_wait(resolution);
        }
        return Resolved::WithoutCode;
    };
    let code = geometry.and_then(|geometry| Some((geometry, resolution.code(kernel)?)));
    let Some((geometry, code)) = code else {
        resolution.kernel_gap(KernelGap::NotRead, &kernel.name);
        words(resolution, kernel, bytes, &specials);
        if programmatic {
            not_understood_wait(resolution);
        }
        return Resolved::WithoutCode;
    };
    let control = by_code(resolution, code, kernel, geometry, bytes, &specials, programmatic);
    if matches!(resolution.codes.knowledge(code), Knowledge::Asked) {
        return Resolved::ByWords(Box::new(ByWords {
            code,
            kernel: kernel.clone(),
            process: resolution.tables.id.index(),
            g: resolution.call.g,
            node: None,
            programmatic,
            geometry,
            params: bytes.into(),
            specials,
            targets: std::mem::take(&mut resolution.targets),
        }));
    }
    control.map_or(Resolved::WithoutCode, Resolved::ByCode)
}

/// Looks at a launch again: what it touches by the code that is known now.
pub(super) fn again(resolution: &mut Resolution<'_>, launch: &ByWords) -> Option<GridControl> {
    let ByWords { code, kernel, geometry, params, specials, programmatic, .. } = launch;
    let of_call = *programmatic && launch.node.is_none();
    let control = by_code(resolution, *code, kernel, *geometry, params, specials, of_call);
    if *programmatic && !of_call && control.is_none() {
        resolution.gaps.not_understood(UNKNOWN_WAIT);
    }
    control
}

fn by_code(
    resolution: &mut Resolution<'_>,
    code: CodeId,
    kernel: &KnownKernel,
    geometry: Geometry,
    bytes: &[u8],
    specials: &[Special],
    programmatic: bool,
) -> Option<GridControl> {
    match resolution.codes.knowledge(code).clone() {
        Knowledge::Known(access) if access.params_size as usize <= bytes.len() => {
            let name = &kernel.name;
            resolution.launch.unseen =
                is_unseen(&access) || specials.iter().any(|s| s.offset.is_none());
            let KernelAccess { waits, trigger, waits_on_primary, .. } = *access;
            let found =
                code_accesses::touch(resolution, code, &access, name, geometry, bytes, specials);
            let mut early = found.early;
            if found.anything {
                let before = resolution.accesses.len();
                words(resolution, kernel, bytes, specials);
                if waits && !waits_on_primary {
                    // When that is, is not known.
                    let new = resolution.accesses.len() - before;
                    resolution.accesses[resolution.part..].rotate_right(new);
                    early += new as u32;
                }
            }
            Some(GridControl { waits, early, trigger })
        }
        Knowledge::Asked => {
            words(resolution, kernel, bytes, specials);
            None
        }
        knowledge => {
            // Without the code nobody knows what is done with them.
            resolution.launch.unseen = !specials.is_empty();
            let gap = match knowledge {
                Knowledge::Unread { no_disassembler: true } => KernelGap::NoDisassembler,
                _ => KernelGap::NotRead,
            };
            resolution.kernel_gap(gap, &kernel.name);
            global_pointers::unread(resolution, code);
            if programmatic {
                not_understood_wait(resolution);
            }
            words(resolution, kernel, bytes, specials);
            None
        }
    }
}

/// Whether a kernel writes through tensor maps, or uses textures or surfaces. Of these the Compute
/// Sanitizer API documents no callback.
fn is_unseen(kernel: &KernelAccess) -> bool {
    kernel.pointers.iter().any(|word| match word.kind {
        WordKind::Pointer => false,
        WordKind::TensorMap => !matches!(word.mode, ParameterMode::None | ParameterMode::Read),
        WordKind::Handle => word.mode != ParameterMode::None,
    })
}

/// Textures, surfaces and tensor maps of a launch. The accesses are taken off the operation again:
/// what the code says of them is put in later.
fn specials(
    resolution: &mut Resolution<'_>,
    function: u64,
    kernel: &KnownKernel,
    bytes: Option<&[u8]>,
) -> Vec<Special> {
    let mut specials = Vec::new();
    let (start, part) = (resolution.accesses.len(), resolution.part);
    // Whatever stands before belongs to another part.
    resolution.part = start;
    let textures = !resolution.tables.textures.is_empty();
    if textures {
        textures::launched(resolution, function);
        let accesses = resolution.accesses.split_off(start);
        if !accesses.is_empty() {
            specials.push(Special { offset: None, bytes: 0, accesses });
        }
    }
    if let Some(bytes) = bytes {
        for map in tensor_maps::parameters(resolution, bytes) {
            let (offset, length) = (map.0.start as u32, map.0.len() as u32);
            specials.push(Special { offset: Some(offset), bytes: length, accesses: map.1 });
        }
        if textures {
            for (at, word) in word_values(kernel, bytes) {
                textures::parameter(resolution, word);
                let accesses = resolution.accesses.split_off(start);
                if !accesses.is_empty() {
                    specials.push(Special { offset: Some(at as u32), bytes: 0, accesses });
                }
            }
        }
    }
    resolution.part = part;
    specials
}

/// The aligned words of the parameters, by their offsets.
fn word_values<'a>(
    kernel: &'a KnownKernel,
    bytes: &'a [u8],
) -> impl Iterator<Item = (usize, u64)> + 'a {
    sized_words(kernel, bytes).map(|(at, word, _)| (at, word))
}

/// As [`word_values`], with the size of the parameter that each is part of.
fn sized_words<'a>(
    kernel: &'a KnownKernel,
    bytes: &'a [u8],
) -> impl Iterator<Item = (usize, u64, u32)> + 'a {
    let whole = kernel.params.is_none().then_some((0, bytes.len() as u32));
    let layout = kernel.params.as_deref().unwrap_or_default().iter().copied();
    layout.chain(whole).flat_map(move |(offset, size)| {
        let (first, end) = (offset.next_multiple_of(8) as usize, offset as usize + size as usize);
        let words = (first..end).step_by(8).take_while(move |at| at + 8 <= end);
        words.map_while(move |at| {
            let word = bytes.get(at..at + 8)?.try_into().ok()?;
            Some((at, u64::from_le_bytes(word), size))
        })
    })
}

/// Every word of the parameters that lies in live memory is taken for a pointer into it: nothing
/// is known of its use, so the kernel may touch the whole allocation. A word that equals a texture
/// or surface object leads to what that gives access to, and bytes that equal a tensor map to the
/// tensor that it describes.
fn words(
    resolution: &mut Resolution<'_>,
    kernel: &KnownKernel,
    bytes: &[u8],
    specials: &[Special],
) {
    for access in specials.iter().flat_map(|special| &special.accesses) {
        resolution.touch(access.allocation, access.extent, access.mode, access.basis);
    }
    for (at, address, size) in sized_words(kernel, bytes) {
        let in_map = |special: &Special| {
            let start = special.offset.map_or(usize::MAX, |offset| offset as usize);
            (start..start.saturating_add(special.bytes as usize)).contains(&at)
        };
        if specials.iter().any(in_map) {
            continue;
        }
        // A parameter that is nothing but a stale device pointer is a use after free; a word
        // inside a structure may be anything.
        let alive = alive(resolution, address);
        let block = match size {
            8 => meant_by(resolution, address, alive),
            _ => alive,
        };
        if let Some(alive) = alive {
            resolution.targets.note(address, alive);
        }
        if let Some(block) = block {
            resolution.touch_all(&block, Mode::MayWrite, Basis::Assumed);
        }
    }
}

/// The memory that a word points to which is known to be a pointer; memory of the device that is
/// freed by now is still meant by it.
pub(super) fn pointed_to(resolution: &Resolution<'_>, address: u64) -> Option<Block> {
    meant_by(resolution, address, alive(resolution, address))
}

fn meant_by(resolution: &Resolution<'_>, address: u64, alive: Option<Block>) -> Option<Block> {
    let past = || resolution.tables.memory.find_at(address, resolution.call.g).copied();
    let alive =
        alive.map(|block| resolution.tables.memory.meant(&block, address, resolution.call.g));
    alive.or_else(|| past().filter(|block| !block.kind.is_host()))
}

/// The memory that held the address when the call at hand was made.
pub(super) fn alive(resolution: &Resolution<'_>, address: u64) -> Option<Block> {
    let held = || resolution.tables.memory.alive_at(address, resolution.call.g).copied();
    resolution.targets.get(address).or_else(held)
}

/// `cuLaunchHostFunc`, `cuStreamAddCallback`.
pub(super) fn host_function(resolution: &mut Resolution<'_>) -> Option<Action> {
    Some(Action::HostFunction { stream: resolution.stream(resolution.call.arg(0))? })
}
