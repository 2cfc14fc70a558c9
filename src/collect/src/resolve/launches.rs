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
use streamsan_kernels::access::KernelAccess;
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
pub(super) fn kernel(l: &mut Resolution<'_>, cooperative: bool) -> Option<Action> {
    let stream = l.stream(l.call.arg(8))?;
    let dimension = |first: usize| [0, 1, 2].map(|axis| l.call.arg(first + axis) as u32);
    let geometry = Geometry { grid: dimension(1), block: dimension(4) };
    let attributes = Attributes { cooperative, ..Attributes::default() };
    launch(l, l.call.arg(0), stream, geometry, attributes)
}

/// `cuLaunchKernelEx`.
pub(super) fn extended(l: &mut Resolution<'_>) -> Option<Action> {
    let config = l.call.pointee.as_deref()?;
    let stream = config.get(CONFIG_STREAM..CONFIG_STREAM + 8)?;
    let stream = u64::from_le_bytes(stream.try_into().ok()?);
    let geometry = geometry(config, CONFIG_GRID)?;
    let stream = l.stream(stream)?;
    let attributes = attributes(l);
    launch(l, l.call.arg(1), stream, geometry, attributes)
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
fn attributes(l: &mut Resolution<'_>) -> Attributes {
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
            PROGRAMMATIC_EVENT if half(TRIGGER_AT_BLOCK_START) == 0 => {
                LaunchEventKind::Programmatic
            }
            PROGRAMMATIC_EVENT => LaunchEventKind::BlockStart,
            LAUNCH_COMPLETION_EVENT => LaunchEventKind::LaunchCompletion,
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
    l: &mut Resolution<'_>,
    function: u64,
    stream: StreamId,
    geometry: Geometry,
    attributes: Attributes,
) -> Option<Action> {
    let known = kernels::known(l, function)?;
    let Attributes { programmatic, cooperative, event } = attributes;
    let mut control = if programmatic { GridControl::UNKNOWN } else { GridControl::default() };
    // What a collective operation touches is known from itself, so the code of its kernels matters
    // only where it says what a launch waits for.
    if l.call.succeeded() && (programmatic || !l.call.of_library) {
        let call = l.call;
        let known = parameters(
            l,
            function,
            &known,
            call.kernel_params.as_deref(),
            Some(geometry),
            programmatic,
        );
        control = known.control().unwrap_or(control);
        if let Resolved::ByWords(launch) = known {
            keep(l, launch);
        }
    }
    Some(Action::Launch { stream, kernel: known.id, programmatic, control, cooperative, event })
}

/// Keeps a launch that is known by its words until the code of its kernel is known.
pub(super) fn keep(l: &mut Resolution<'_>, launch: Box<ByWords>) {
    if let Err(launch) = l.codes.keep(launch) {
        l.kernel_gap(KernelGap::NotLookedAtAgain, &launch.kernel.name);
        if launch.programmatic {
            not_understood_wait(l);
        }
    }
}

/// Whether the kernel executes the wait stands in its code, which is not known. Taking it to wait
/// reports nothing false; the verdict says that something was not seen.
pub(super) fn not_understood_wait(l: &mut Resolution<'_>) {
    l.gaps.not_understood("cuLaunchKernelEx (programmatic stream serialization)");
}

/// Notes what a launch touches: by the code of its kernel where that is known, else by its words.
pub(super) fn parameters(
    l: &mut Resolution<'_>,
    function: u64,
    kernel: &KnownKernel,
    bytes: Option<&[u8]>,
    geometry: Option<Geometry>,
    programmatic: bool,
) -> Resolved {
    l.targets = Targets::default();
    let specials = specials(l, function, kernel, bytes);
    let Some(bytes) = bytes else {
        if kernel.params.as_ref().is_none_or(|layout| !layout.is_empty()) {
            l.gaps.unknown_parameters(&kernel.name);
        }
        for access in specials.into_iter().flat_map(|special| special.accesses) {
            l.touch(access.allocation, access.extent, access.mode, access.basis);
        }
        if programmatic {
            not_understood_wait(l);
        }
        return Resolved::WithoutCode;
    };
    let code = geometry.and_then(|geometry| Some((geometry, l.code(kernel)?)));
    let Some((geometry, code)) = code else {
        l.kernel_gap(KernelGap::NotRead, &kernel.name);
        words(l, kernel, bytes, &specials);
        if programmatic {
            not_understood_wait(l);
        }
        return Resolved::WithoutCode;
    };
    let control = by_code(l, code, kernel, geometry, bytes, &specials, programmatic);
    if matches!(l.codes.knowledge(code), Knowledge::Asked) {
        return Resolved::ByWords(Box::new(ByWords {
            code,
            kernel: kernel.clone(),
            process: l.tables.id.index(),
            g: l.call.g,
            node: None,
            programmatic,
            geometry,
            params: bytes.into(),
            specials,
            targets: std::mem::take(&mut l.targets),
        }));
    }
    control.map_or(Resolved::WithoutCode, Resolved::ByCode)
}

/// Looks at a launch again: what it touches by the code that is known now.
pub(super) fn again(l: &mut Resolution<'_>, launch: &ByWords) -> Option<GridControl> {
    let ByWords { code, kernel, geometry, params, specials, programmatic, .. } = launch;
    let of_call = *programmatic && launch.node.is_none();
    let control = by_code(l, *code, kernel, *geometry, params, specials, of_call);
    if *programmatic && !of_call && control.is_none() {
        l.gaps.not_understood(UNKNOWN_WAIT);
    }
    control
}

fn by_code(
    l: &mut Resolution<'_>,
    code: CodeId,
    kernel: &KnownKernel,
    geometry: Geometry,
    bytes: &[u8],
    specials: &[Special],
    programmatic: bool,
) -> Option<GridControl> {
    match l.codes.knowledge(code).clone() {
        Knowledge::Known(access) if access.params_size as usize <= bytes.len() => {
            let name = &kernel.name;
            let KernelAccess { waits, trigger, waits_on_primary, .. } = *access;
            let found = code_accesses::touch(l, code, &access, name, geometry, bytes, specials);
            let mut early = found.early;
            if found.anything {
                let before = l.accesses.len();
                words(l, kernel, bytes, specials);
                if waits && !waits_on_primary {
                    // When that is, is not known.
                    let new = l.accesses.len() - before;
                    l.accesses[l.part..].rotate_right(new);
                    early += new as u32;
                }
            }
            Some(GridControl { waits, early, trigger })
        }
        Knowledge::Asked => {
            words(l, kernel, bytes, specials);
            None
        }
        knowledge => {
            let gap = match knowledge {
                Knowledge::Unread { no_disassembler: true } => KernelGap::NoDisassembler,
                _ => KernelGap::NotRead,
            };
            l.kernel_gap(gap, &kernel.name);
            global_pointers::unread(l, code);
            if programmatic {
                not_understood_wait(l);
            }
            words(l, kernel, bytes, specials);
            None
        }
    }
}

/// Textures, surfaces and tensor maps of a launch. The accesses are taken off the operation again:
/// what the code says of them is put in later.
fn specials(
    l: &mut Resolution<'_>,
    function: u64,
    kernel: &KnownKernel,
    bytes: Option<&[u8]>,
) -> Vec<Special> {
    let mut specials = Vec::new();
    let (start, part) = (l.accesses.len(), l.part);
    // Whatever stands before belongs to another part.
    l.part = start;
    let textures = !l.tables.textures.is_empty();
    if textures {
        textures::launched(l, function);
        let accesses = l.accesses.split_off(start);
        if !accesses.is_empty() {
            specials.push(Special { offset: None, bytes: 0, accesses });
        }
    }
    if let Some(bytes) = bytes {
        for map in tensor_maps::parameters(l, bytes) {
            let (offset, length) = (map.0.start as u32, map.0.len() as u32);
            specials.push(Special { offset: Some(offset), bytes: length, accesses: map.1 });
        }
        if textures {
            for (at, word) in word_values(kernel, bytes) {
                textures::parameter(l, word);
                let accesses = l.accesses.split_off(start);
                if !accesses.is_empty() {
                    specials.push(Special { offset: Some(at as u32), bytes: 0, accesses });
                }
            }
        }
    }
    l.part = part;
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
fn words(l: &mut Resolution<'_>, kernel: &KnownKernel, bytes: &[u8], specials: &[Special]) {
    for access in specials.iter().flat_map(|special| &special.accesses) {
        l.touch(access.allocation, access.extent, access.mode, access.basis);
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
        let alive = alive(l, address);
        let block = match size {
            8 => meant_by(l, address, alive),
            _ => alive,
        };
        if let Some(alive) = alive {
            l.targets.note(address, alive);
        }
        if let Some(block) = block {
            l.touch_all(&block, Mode::MayWrite, Basis::Assumed);
        }
    }
}

/// The memory that a word points to which is known to be a pointer; memory of the device that is
/// freed by now is still meant by it.
pub(super) fn pointed_to(l: &Resolution<'_>, address: u64) -> Option<Block> {
    meant_by(l, address, alive(l, address))
}

fn meant_by(l: &Resolution<'_>, address: u64, alive: Option<Block>) -> Option<Block> {
    let past = || l.tables.memory.find_at(address, l.call.g).copied();
    let alive = alive.map(|block| l.tables.memory.meant(&block, address, l.call.g));
    alive.or_else(|| past().filter(|block| !block.kind.is_host()))
}

/// The memory that held the address when the call at hand was made.
pub(super) fn alive(l: &Resolution<'_>, address: u64) -> Option<Block> {
    let held = || l.tables.memory.alive_at(address, l.call.g).copied();
    l.targets.get(address).or_else(held)
}

/// `cuLaunchHostFunc`, `cuStreamAddCallback`.
pub(super) fn host_function(l: &mut Resolution<'_>) -> Option<Action> {
    Some(Action::HostFunction { stream: l.stream(l.call.arg(0))? })
}
