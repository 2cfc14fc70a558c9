//! Textures and surfaces: kernels reach memory through them without a pointer.
//!
//! An object is a word among a kernel's parameters; a reference is a variable of a module, which
//! every kernel of that module may use. What a kernel does with either is not known: a texture is
//! taken to be read, a surface to be written.

use super::resolution::Resolution;
use std::collections::HashMap;
use streamsan_model::{Action, AllocationId, Basis, ByteRange, Extent, Mode, StridedPattern};

/// The kinds of `CUDA_RESOURCE_DESC`.
const ARRAY: u32 = 0;
const MIPMAPPED: u32 = 1;
const LINEAR: u32 = 2;
const PITCHED: u32 = 3;

/// The memory that an object or a reference gives access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Array(AllocationId, ByteRange),
    /// Rows of `width` bytes at addresses.
    Memory {
        start: u64,
        width: u64,
        pitch: u64,
        rows: u64,
    },
}

/// An object, or a reference that is bound.
#[derive(Clone, Copy, Debug)]
struct Bound {
    resource: Resource,
    mode: Mode,
}

/// The textures and surfaces of a process.
#[derive(Debug, Default)]
pub(super) struct Textures {
    objects: HashMap<u64, Bound>,
    /// References by handle: the module of each, and what is bound to it.
    references: HashMap<u64, (u64, Option<Bound>)>,
    /// The module of each function that was looked up.
    functions: HashMap<u64, u64>,
    /// References that a function was given by `cuParamSetTexRef`.
    given: HashMap<u64, Vec<u64>>,
    /// Whether a reference was ever bound.
    any_bound: bool,
}

impl Textures {
    /// Whether no launch can touch anything through a texture or surface.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && !self.any_bound
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Bytes of an element of a texture in linear memory.
fn element(format: u32, channels: u32) -> u64 {
    let channel = match format {
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        _ => 4,
    };
    channel * u64::from(channels.max(1))
}

/// Reads a `CUDA_RESOURCE_DESC`; `None` for an array that nobody made.
fn resource(resolution: &Resolution<'_>, bytes: &[u8]) -> Option<Resource> {
    let array = |handle: u64| {
        let array = resolution.tables.arrays.find(handle)?;
        Some(Resource::Array(array.allocation, array.range))
    };
    match half(bytes, 0)? {
        ARRAY => array(number(bytes, 8)?),
        MIPMAPPED => {
            let (allocation, range) = resolution.tables.arrays.find_mipmapped(number(bytes, 8)?)?;
            Some(Resource::Array(allocation, range))
        }
        LINEAR => {
            let (start, width) = (number(bytes, 8)?, number(bytes, 24)?);
            Some(Resource::Memory { start, width, pitch: width, rows: 1 })
        }
        PITCHED => {
            let element = element(half(bytes, 16)?, half(bytes, 20)?);
            Some(Resource::Memory {
                start: number(bytes, 8)?,
                width: number(bytes, 24)?.saturating_mul(element),
                pitch: number(bytes, 40)?,
                rows: number(bytes, 32)?,
            })
        }
        _ => None,
    }
}

fn object(
    resolution: &mut Resolution<'_>,
    resource_bytes: Option<Box<[u8]>>,
    mode: Mode,
) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    match resource_bytes.and_then(|bytes| resource(resolution, &bytes)) {
        Some(resource) => {
            resolution.tables.textures.objects.insert(handle, Bound { resource, mode });
        }
        None => resolution
            .gaps
            .not_understood(&format!("{} (unknown resource)", resolution.call.api.name())),
    }
    None
}

/// `cuTexObjectCreate(object, resource, texture, view)`.
pub(super) fn create_texture(resolution: &mut Resolution<'_>) -> Option<Action> {
    object(resolution, resolution.call.pointee.clone(), Mode::Read)
}

/// `cuSurfObjectCreate(object, resource)`.
pub(super) fn create_surface(resolution: &mut Resolution<'_>) -> Option<Action> {
    object(resolution, resolution.call.pointee.clone(), Mode::MayWrite)
}

/// `cuTexObjectDestroy(object)`, `cuSurfObjectDestroy(object)`.
pub(super) fn destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        resolution.tables.textures.objects.remove(&resolution.call.arg(0));
    }
    None
}

/// `cuModuleGetFunction(function, module, name)`.
pub(super) fn function(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    resolution.tables.textures.functions.insert(handle, resolution.call.arg(1));
    None
}

/// `cuModuleGetTexRef(reference, module, name)`, `cuModuleGetSurfRef(reference, module, name)`.
pub(super) fn reference(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let module = resolution.call.arg(1);
    let entry = resolution.tables.textures.references.entry(handle).or_insert((module, None));
    if entry.0 != module {
        *entry = (module, None);
    }
    None
}

fn bind(
    resolution: &mut Resolution<'_>,
    handle: u64,
    resource: Option<Resource>,
    mode: Mode,
) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    if resource.is_none() {
        resolution
            .gaps
            .not_understood(&format!("{} (unknown resource)", resolution.call.api.name()));
    }
    let textures = &mut resolution.tables.textures;
    textures.any_bound |= resource.is_some();
    // A reference of no known module (0) is one that `cuTexRefCreate` made.
    textures.references.entry(handle).or_insert((0, None)).1 =
        resource.map(|resource| Bound { resource, mode });
    None
}

/// `cuTexRefSetArray`, `cuTexRefSetMipmappedArray`, `cuSurfRefSetArray`: `(reference, array, flags)`.
pub(super) fn bind_array(resolution: &mut Resolution<'_>, mode: Mode) -> Option<Action> {
    let handle = resolution.call.arg(1);
    let arrays = &resolution.tables.arrays;
    let found = match arrays.find(handle) {
        Some(array) => Some((array.allocation, array.range)),
        None => arrays.find_mipmapped(handle),
    };
    bind(
        resolution,
        resolution.call.arg(0),
        found.map(|(id, range)| Resource::Array(id, range)),
        mode,
    )
}

/// `cuTexRefSetAddress(offset, reference, address, bytes)`.
pub(super) fn bind_address(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (start, width) = (resolution.call.arg(2), resolution.call.arg(3));
    let resource = Resource::Memory { start, width, pitch: width, rows: 1 };
    bind(resolution, resolution.call.arg(1), Some(resource), Mode::Read)
}

/// `cuTexRefSetAddress2D(reference, descriptor, address, pitch)`.
pub(super) fn bind_pitched(resolution: &mut Resolution<'_>) -> Option<Action> {
    let bytes = resolution.call.pointee.clone().unwrap_or_default();
    let resource = match bytes.len() {
        24 => number(&bytes, 0).zip(number(&bytes, 8)).zip(half(&bytes, 16).zip(half(&bytes, 20))),
        _ => None,
    };
    let resource = resource.map(|((width, rows), (format, channels))| Resource::Memory {
        start: resolution.call.arg(2),
        width: width.saturating_mul(element(format, channels)),
        pitch: resolution.call.arg(3),
        rows,
    });
    bind(resolution, resolution.call.arg(0), resource, Mode::Read)
}

impl Textures {
    /// A module is unloaded: its functions and references are no more.
    pub(super) fn unload(&mut self, module: u64) {
        self.functions.retain(|_, of| *of != module);
        self.references.retain(|_, (of, _)| *of != module);
    }
}

/// `cuParamSetTexRef(function, unit, reference)`.
pub(super) fn give(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        let (function, reference) = (resolution.call.arg(0), resolution.call.arg(2));
        resolution.tables.textures.given.entry(function).or_default().push(reference);
    }
    None
}

fn touch(resolution: &mut Resolution<'_>, bound: Bound) {
    match bound.resource {
        Resource::Array(allocation, range) => {
            resolution.touch(allocation, Extent::Range(range), bound.mode, Basis::Assumed);
        }
        Resource::Memory { start, width, pitch, rows } => {
            let pitch = pitch.max(width);
            let pattern = StridedPattern { start, width, pitch, rows, slice_pitch: 0, slices: 1 };
            let ends = pitch.checked_mul(rows).and_then(|len| start.checked_add(len)).is_some();
            if let Some(extent) = ends.then(|| Extent::strided(pattern)).flatten()
                && let Some(block) = resolution.tables.memory.find(start).copied()
            {
                resolution.touch_from(&block, extent, bound.mode, Basis::Assumed);
            }
        }
    }
}

/// A launch has this word among its parameters.
pub(super) fn parameter(resolution: &mut Resolution<'_>, word: u64) {
    if let Some(&bound) = resolution.tables.textures.objects.get(&word) {
        touch(resolution, bound);
    }
}

/// A launch of this function may use the references of its module.
pub(super) fn launched(resolution: &mut Resolution<'_>, function: u64) {
    let textures = &resolution.tables.textures;
    if !textures.any_bound {
        return;
    }
    let module = textures.functions.get(&function).copied();
    let given = textures.given.get(&function).map(Vec::as_slice).unwrap_or_default();
    let mut bound: Vec<(u64, Bound)> = Vec::new();
    for (&handle, &(of, what)) in &textures.references {
        // A function that was not seen being looked up may belong to any module.
        let usable = module.is_none_or(|module| module == of) || given.contains(&handle);
        if let Some(what) = what.filter(|_| usable) {
            bound.push((handle, what));
        }
    }
    bound.sort_by_key(|(handle, _)| *handle);
    for (_, bound) in bound {
        touch(resolution, bound);
    }
}
