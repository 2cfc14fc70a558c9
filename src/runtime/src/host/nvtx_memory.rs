//! Memory pools that a program tells of by NVTX's memory extension (`nvToolsExtMem.h`).
//!
//! The first call of an extension loads the library that `NVTX_INJECTION64_PATH` names and calls
//! `InitializeInjectionNvtxExtension` with the extension's slots, into which a tool puts its
//! functions. A slot that stays empty costs the program nothing. The numbers and structures below
//! are those of the public headers, whose first edition (2021) counted the slots from one.
//!
//! A heap's handle is its address, as the header wants it, and so is a region's.
//!
//! Deliberately absent: permissions, memory that is marked as initialised, and heaps of anything
//! but addresses: they order nothing.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use streamsan_wire::HostCall;

use super::publish::record;

/// `NVTX_EXT_MODULEID_MEM`, `NVTX_EXT_COMPATID_MEM`.
const MODULE_MEMORY: u16 = 1;
const COMPATIBILITY: u16 = 0x0102;

/// `NVTX_MEM_TYPE_VIRTUAL_ADDRESS`.
const VIRTUAL_ADDRESS: u32 = 1;

/// `NVTX_MESSAGE_TYPE_ASCII`.
const ASCII: u32 = 1;

/// `NVTX_MEM_HEAP_HANDLE_NO_TOOL`: what the first edition answers where no tool is attached.
const NO_TOOL: *const c_void = ptr::without_provenance(usize::MAX);

/// `nvtxExtModuleInfo_t`, as long as its first edition.
#[repr(C)]
struct ModuleInfo {
    version: u16,
    size: u16,
    module: u16,
    compatibility: u16,
    segments: usize,
    segment: *const Segment,
    get_export_function: *const c_void,
}

#[repr(C)]
struct Segment {
    id: usize,
    slots: usize,
    slot: *mut *const c_void,
}

/// The fields that every descriptor begins with.
#[repr(C)]
struct Head {
    compatibility: u16,
    size: u16,
}

#[repr(C)]
struct HeapDescriptor {
    head: Head,
    reserved: u32,
    usage: u32,
    kind: u32,
    range_bytes: usize,
    range: *const VirtualRange,
    category: u32,
    message_kind: u32,
    message: *const c_char,
}

/// `nvtxMemVirtualRangeDesc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct VirtualRange {
    bytes: usize,
    start: *const c_void,
}

#[repr(C)]
struct RegisterBatch {
    head: Head,
    kind: u32,
    heap: *const c_void,
    list: NvtxList,
    handles: *mut *const c_void,
}

/// The argument of `nvtxMemRegionsResize` and `nvtxMemRegionsUnregister`.
#[repr(C)]
struct Batch {
    head: Head,
    kind: u32,
    list: NvtxList,
}

/// `nvtxMemRegionNameDesc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Name {
    reference_kind: u32,
    kind: u32,
    region: *const c_void,
    text: *const c_char,
}

/// Elements that may be longer than they are known here.
#[repr(C)]
struct NvtxList {
    count: usize,
    element: usize,
    first: *const c_void,
}

impl NvtxList {
    /// The elements; none where they are too short.
    ///
    /// # Safety
    /// The list is as the program describes it.
    unsafe fn iter<T: Copy>(&self) -> impl Iterator<Item = T> {
        let fits = self.element >= size_of::<T>() && !self.first.is_null();
        let (count, element) = (if fits { self.count } else { 0 }, self.element);
        let first = self.first;
        // SAFETY: promised by the caller.
        (0..count).map(move |index| unsafe {
            first.byte_add(index * element).cast::<T>().read_unaligned()
        })
    }
}

/// The descriptor, where it is one that is long enough.
///
/// # Safety
/// `descriptor` is null or what the program describes in its first words.
unsafe fn checked<'a, T>(descriptor: *const T) -> Option<&'a T> {
    // SAFETY: every descriptor begins so.
    let head = unsafe { descriptor.cast::<Head>().as_ref() }?;
    let is_long = usize::from(head.size) >= size_of::<T>();
    // SAFETY: of its type, by its first words.
    (head.compatibility == COMPATIBILITY && is_long).then(|| unsafe { &*descriptor })
}

unsafe extern "C" fn heap_register(
    _domain: *const c_void,
    descriptor: *const HeapDescriptor,
) -> *const c_void {
    // SAFETY: as NVTX calls it.
    let Some(heap) = (unsafe { checked(descriptor) }) else { return NO_TOOL };
    if heap.kind != VIRTUAL_ADDRESS || heap.range_bytes < size_of::<VirtualRange>() {
        return NO_TOOL;
    }
    // SAFETY: of this type, by its kind and size.
    let Some(range) = (unsafe { heap.range.as_ref() }) else { return NO_TOOL };
    let name = match (heap.message_kind, heap.message.is_null()) {
        // SAFETY: NVTX hands on a NUL-terminated string.
        (ASCII, false) => unsafe { CStr::from_ptr(heap.message) }.to_bytes(),
        _ => &[],
    };
    let words = [range.start as u64, range.bytes as u64, u64::from(heap.usage)];
    record(HostCall::NvtxHeapRegister, &words, name);
    range.start
}

unsafe extern "C" fn heap_unregister(_domain: *const c_void, heap: *const c_void) {
    record(HostCall::NvtxHeapUnregister, &[heap as u64], &[]);
}

unsafe extern "C" fn heap_reset(_domain: *const c_void, heap: *const c_void) {
    record(HostCall::NvtxHeapReset, &[heap as u64], &[]);
}

unsafe extern "C" fn regions_register(_domain: *const c_void, batch: *const RegisterBatch) {
    // SAFETY: as NVTX calls it.
    let Some(batch) = (unsafe { checked(batch) }) else { return };
    if batch.kind != VIRTUAL_ADDRESS {
        return;
    }
    // SAFETY: a list of ranges, by its kind.
    for (index, range) in unsafe { batch.list.iter::<VirtualRange>() }.enumerate() {
        let words = [range.start as u64, range.bytes as u64, batch.heap as u64];
        record(HostCall::NvtxRegionRegister, &words, &[]);
        if !batch.handles.is_null() {
            // SAFETY: the program wants as many handles as there are regions.
            unsafe { batch.handles.add(index).write_unaligned(range.start) };
        }
    }
}

unsafe extern "C" fn regions_resize(_domain: *const c_void, batch: *const Batch) {
    // SAFETY: as NVTX calls it.
    let Some(batch) = (unsafe { checked(batch) }) else { return };
    if batch.kind != VIRTUAL_ADDRESS {
        return;
    }
    // SAFETY: a list of ranges, by its kind.
    for range in unsafe { batch.list.iter::<VirtualRange>() } {
        record(HostCall::NvtxRegionResize, &[range.start as u64, range.bytes as u64], &[]);
    }
}

unsafe extern "C" fn regions_unregister(_domain: *const c_void, batch: *const Batch) {
    // SAFETY: as NVTX calls it.
    let Some(batch) = (unsafe { checked(batch) }) else { return };
    // SAFETY: addresses or handles, which are the same.
    for region in unsafe { batch.list.iter::<*const c_void>() } {
        record(HostCall::NvtxRegionUnregister, &[region as u64], &[]);
    }
}

unsafe extern "C" fn regions_name(_domain: *const c_void, batch: *const Batch) {
    // SAFETY: as NVTX calls it.
    let Some(batch) = (unsafe { checked(batch) }) else { return };
    // SAFETY: a list of names.
    for name in unsafe { batch.list.iter::<Name>() } {
        if name.kind == ASCII && !name.text.is_null() {
            // SAFETY: NVTX hands on a NUL-terminated string.
            let text = unsafe { CStr::from_ptr(name.text) };
            record(HostCall::NvtxRegionName, &[name.region as u64], text.to_bytes());
        }
    }
}

/// Functions by their number, `NVTX3EXT_CBID_...`.
const FUNCTIONS: [(usize, *const c_void); 7] = [
    (1, heap_register as *const c_void),
    (2, heap_unregister as *const c_void),
    (3, heap_reset as *const c_void),
    (4, regions_register as *const c_void),
    (5, regions_resize as *const c_void),
    (6, regions_unregister as *const c_void),
    (7, regions_name as *const c_void),
];

/// Called for each extension at its first use in each copy of NVTX. Answers 1: the library stays.
///
/// # Safety
/// As NVTX calls it.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "the name is NVTX's"))]
unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *const ModuleInfo) -> i32 {
    // SAFETY: as NVTX calls it.
    let Some(info) = (unsafe { module.as_ref() }) else { return 1 };
    let size = usize::from(info.size);
    let is_ours = info.module == MODULE_MEMORY && info.compatibility == COMPATIBILITY;
    if !is_ours || size < size_of::<ModuleInfo>() || info.segments == 0 {
        return 1;
    }
    // SAFETY: one segment at least.
    let Some(segment) = (unsafe { info.segment.as_ref() }) else { return 1 };
    let first_edition = size == size_of::<ModuleInfo>();
    for (number, function) in FUNCTIONS {
        let index = if first_edition { number - 1 } else { number };
        if index < segment.slots && !segment.slot.is_null() {
            // SAFETY: a slot of the segment, which the program reads after this call.
            unsafe { segment.slot.add(index).write(function) };
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots that are filled in, by the size of the structure and the slots that there are.
    fn filled(size: usize, module: u16, slots: usize) -> Vec<usize> {
        let mut table = vec![ptr::null(); 64];
        let segment = Segment { id: 0, slots, slot: table.as_mut_ptr() };
        let info = ModuleInfo {
            version: 3,
            size: size as u16,
            module,
            compatibility: COMPATIBILITY,
            segments: 1,
            segment: &raw const segment,
            get_export_function: ptr::null(),
        };
        // SAFETY: the structures are as NVTX hands them over.
        assert_eq!(unsafe { InitializeInjectionNvtxExtension(&raw const info) }, 1);
        (0..table.len()).filter(|&index| !table[index].is_null()).collect()
    }

    #[test]
    fn slots_are_filled_as_each_edition_counts_them() {
        let known = size_of::<ModuleInfo>();
        assert_eq!(known, 32);
        assert_eq!(filled(known + 8, 1, 63), (1..8).collect::<Vec<_>>());
        assert_eq!(filled(known + 8, 1, 5), (1..5).collect::<Vec<_>>());
        assert_eq!(filled(known, 1, 16), (0..7).collect::<Vec<_>>());
        assert!(filled(known + 8, 2, 63).is_empty(), "another extension");
        assert!(filled(known - 8, 1, 63).is_empty(), "too short");
    }

    #[test]
    fn structures_are_as_long_as_in_the_header() {
        assert_eq!(size_of::<HeapDescriptor>(), 48);
        assert_eq!(size_of::<RegisterBatch>(), 48);
        assert_eq!(size_of::<Batch>(), 32);
        assert_eq!(size_of::<VirtualRange>(), 16);
    }

    #[test]
    fn what_is_not_understood_gets_the_answer_of_no_tool() {
        let range = VirtualRange { bytes: 64, start: ptr::without_provenance(0x1000) };
        let heap = |compatibility: u16, size: usize, kind: u32| HeapDescriptor {
            head: Head { compatibility, size: size as u16 },
            reserved: 0,
            usage: 1,
            kind,
            range_bytes: size_of::<VirtualRange>(),
            range: &raw const range,
            category: 0,
            message_kind: 0,
            message: ptr::null(),
        };
        let table = [
            (COMPATIBILITY, 48, VIRTUAL_ADDRESS, range.start),
            (COMPATIBILITY, 40, VIRTUAL_ADDRESS, NO_TOOL),
            (COMPATIBILITY + 1, 48, VIRTUAL_ADDRESS, NO_TOOL),
            (COMPATIBILITY, 48, 0x11, NO_TOOL),
        ];
        for (compatibility, size, kind, expected) in table {
            let descriptor = heap(compatibility, size, kind);
            // SAFETY: the descriptor is whole, whatever it says of its size.
            let handle = unsafe { heap_register(ptr::null(), &raw const descriptor) };
            assert_eq!(handle, expected, "{compatibility:#x} {size} {kind}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { heap_register(ptr::null(), ptr::null()) }, NO_TOOL);
    }
}
