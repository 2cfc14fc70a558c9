//! The entry point that a verb stands for, where the kinds of memory decide.

use streamsan_model::{Extent, MemoryKind};

/// The shape of a copy or memset: rows and slices need entry points of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Linear,
    Rows,
    Slices,
}

impl Shape {
    pub(crate) fn of(extent: &Extent) -> Self {
        match extent {
            Extent::Range(_) => Self::Linear,
            Extent::Strided(p) if p.slices == 1 => Self::Rows,
            Extent::Strided(_) => Self::Slices,
        }
    }
}

/// The copy's entry point. Managed memory is neither host nor device to the driver's names, so it
/// takes the unified form.
pub(crate) fn copy(
    shape: Shape,
    source: MemoryKind,
    destination: MemoryKind,
    synchronous: bool,
    per_thread: bool,
) -> String {
    if let Some(name) = array_copy(shape, source, destination, synchronous) {
        return name.to_owned();
    }
    let managed = source == MemoryKind::Managed || destination == MemoryKind::Managed;
    let (stem, version) = match (shape, source.is_host(), destination.is_host()) {
        (Shape::Rows, ..) => ("cuMemcpy2D", "_v2"),
        (Shape::Slices, ..) => ("cuMemcpy3D", "_v2"),
        _ if managed => ("cuMemcpy", ""),
        (Shape::Linear, true, true) => ("cuMemcpy", ""),
        (Shape::Linear, true, false) => ("cuMemcpyHtoD", "_v2"),
        (Shape::Linear, false, true) => ("cuMemcpyDtoH", "_v2"),
        (Shape::Linear, false, false) => ("cuMemcpyDtoD", "_v2"),
    };
    suffixed(stem, version, synchronous, per_thread)
}

/// The entry point of a linear copy with a CUDA array; `None` where there is none of its own.
fn array_copy(
    shape: Shape,
    source: MemoryKind,
    destination: MemoryKind,
    synchronous: bool,
) -> Option<&'static str> {
    let side = |kind: MemoryKind| match kind {
        MemoryKind::Array => 'A',
        kind if kind.is_host() => 'H',
        _ => 'D',
    };
    match (shape, side(source), side(destination), synchronous) {
        (Shape::Rows | Shape::Slices, ..) => None,
        (_, 'H', 'A', true) => Some("cuMemcpyHtoA_v2"),
        (_, 'A', 'H', true) => Some("cuMemcpyAtoH_v2"),
        (_, 'D', 'A', true) => Some("cuMemcpyDtoA_v2"),
        (_, 'A', 'D', true) => Some("cuMemcpyAtoD_v2"),
        (_, 'A', 'A', true) => Some("cuMemcpyAtoA_v2"),
        (_, 'H', 'A', false) => Some("cuMemcpyHtoAAsync_v2"),
        (_, 'A', 'H', false) => Some("cuMemcpyAtoHAsync_v2"),
        // A row is the least that the general form copies.
        (_, 'A', _, false) | (_, _, 'A', false) => Some("cuMemcpy2DAsync_v2"),
        _ => None,
    }
}

/// The entry point of a copy with attributes.
pub(crate) fn copy_with_attributes(shape: Shape) -> &'static str {
    match shape {
        Shape::Linear => "cuMemcpyWithAttributesAsync",
        Shape::Rows | Shape::Slices => "cuMemcpy3DWithAttributesAsync",
    }
}

/// The memset's entry point.
pub(crate) fn memset(shape: Shape, synchronous: bool, per_thread: bool) -> String {
    let stem = if shape == Shape::Linear { "cuMemsetD8" } else { "cuMemsetD2D8" };
    // Only the synchronous memsets were ever versioned.
    suffixed(stem, if synchronous { "_v2" } else { "" }, synchronous, per_thread)
}

fn suffixed(stem: &str, version: &str, synchronous: bool, per_thread: bool) -> String {
    let form = if synchronous { "" } else { "Async" };
    let twin = if synchronous && per_thread { "_ptds" } else { "" };
    format!("{stem}{form}{version}{twin}")
}

/// The launch's entry point.
pub(crate) fn launch(programmatic: bool, cooperative: bool) -> &'static str {
    match (programmatic, cooperative) {
        (true, _) => "cuLaunchKernelEx",
        (false, true) => "cuLaunchCooperativeKernel",
        (false, false) => "cuLaunchKernel",
    }
}

/// The call that allocates memory of a kind; empty for memory that no call allocates.
pub(crate) fn allocate(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Device => "cuMemAlloc_v2",
        MemoryKind::StreamOrdered => "cuMemAllocAsync",
        MemoryKind::Managed => "cuMemAllocManaged",
        MemoryKind::Pinned => "cuMemAllocHost_v2",
        MemoryKind::Registered => "cuMemHostRegister_v2",
        MemoryKind::Array => "cuArrayCreate_v2",
        MemoryKind::Mapped => "cuMemMap",
        MemoryKind::Imported => "cuIpcOpenMemHandle_v2",
        MemoryKind::Region => "nvtxMemRegionsRegister",
        MemoryKind::Pageable | MemoryKind::Global | MemoryKind::GraphOrdered => "",
    }
}

/// The call that frees memory of a kind, without a stream.
pub(crate) fn free(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Pinned => "cuMemFreeHost",
        MemoryKind::Registered => "cuMemHostUnregister",
        MemoryKind::Array => "cuArrayDestroy",
        MemoryKind::Mapped => "cuMemUnmap",
        MemoryKind::Imported => "cuIpcCloseMemHandle",
        MemoryKind::Region => "nvtxMemRegionsUnregister",
        _ => "cuMemFree_v2",
    }
}

/// The name that stands for the host's own accesses: no entry point exists.
pub(crate) const HOST_ACCESS: &str = "host access";

/// The name that stands for a stream pool that hands a stream out again: no entry point exists.
pub(crate) const HAND_OUT: &str = "stream handed out";

/// The batch whose sources and destinations differ in size.
pub(crate) const DECOMPRESS: &str = "cuMemBatchDecompressAsync";

/// The end of a group of collective operations.
pub(crate) const GROUP_END: &str = "ncclGroupEnd";

/// The name that stands for a host function that runs.
pub(crate) const HOST_FUNCTION: &str = "host function";
