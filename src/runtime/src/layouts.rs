//! Which kernel a function handle means, and the layout of its parameters.
//!
//! A table without locks, keyed by handle. Entries are valid for one epoch; whatever may let a
//! handle mean another kernel (unloading, destroying contexts, a fork) starts a new one, and the
//! next launch asks the driver again. Storage is never freed: launches may be reading it.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use streamsan_wire::{Counted, NO_LAYOUT, RecordKind};

use crate::attach::Attachment;
use crate::resolve;
use crate::thread::{Outgoing, Thread};

/// Most parameters of a kernel whose layout is kept.
const MOST_PARAMS: usize = 512;

/// Most bytes of parameters, above CUDA's own limit of 32,764.
const MOST_BYTES: usize = 32 * 1024;

/// Longest kernel name that is recorded; longer ones are cut.
const LONGEST_NAME: usize = 8192;

/// Slots of the table, a power of two; handles beyond are asked for at every launch.
const SLOTS: usize = 1 << 15;

/// Slots tried for one handle.
const PROBES: usize = 64;

const INVALID_VALUE: i32 = 1;
const INVALID_HANDLE: i32 = 400;

/// Offsets and sizes of a kernel's parameters.
#[repr(C)]
pub(crate) struct ParameterLayout {
    epoch: AtomicU32,
    /// Number of pairs, or [`NO_LAYOUT`].
    count: u32,
    bytes: u32,
    /// Whether parameters cover all `bytes`.
    dense: bool,
    first: [(u32, u32); 0],
}

impl ParameterLayout {
    /// Offset and size of every parameter; each ends at or before [`ParameterLayout::bytes`].
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let count = if self.count == NO_LAYOUT { 0 } else { self.count as usize };
        let first = self.first.as_ptr();
        // SAFETY: `store` lays `count` pairs behind the structure.
        (0..count).map(move |index| unsafe { *first.add(index) })
    }

    /// Whether parameters leave no gap between them.
    pub(crate) fn is_dense(&self) -> bool {
        self.dense
    }

    /// Bytes of all parameters packed at their offsets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

struct LayoutEntry {
    function: AtomicU64,
    layout: AtomicPtr<ParameterLayout>,
}

static TABLE: [LayoutEntry; SLOTS] = [const {
    LayoutEntry { function: AtomicU64::new(0), layout: AtomicPtr::new(ptr::null_mut()) }
}; SLOTS];

static EPOCH: AtomicU32 = AtomicU32::new(1);

/// Starts a new epoch.
pub(crate) fn forget() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// The layout of the kernel that `function` launches, `None` if the driver does not tell. Before
/// the first launch in an epoch publishes a Kernel record.
pub(crate) fn of(
    thread: &Thread,
    attachment: &Attachment,
    function: u64,
) -> Option<&'static ParameterLayout> {
    let epoch = EPOCH.load(Ordering::Acquire);
    let entry = entry(function);
    // SAFETY: layouts are never freed.
    let known = entry.and_then(|e| unsafe { e.layout.load(Ordering::Acquire).as_ref() });
    let layout = match known.filter(|layout| layout.epoch.load(Ordering::Acquire) == epoch) {
        Some(layout) => layout,
        None => learn(thread, attachment, function, epoch, entry, known)?,
    };
    (layout.count != NO_LAYOUT).then_some(layout)
}

fn entry(function: u64) -> Option<&'static LayoutEntry> {
    let start = (function.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize;
    for probe in 0..PROBES {
        let entry = &TABLE[(start + probe) % SLOTS];
        let key = entry.function.load(Ordering::Acquire);
        if key == function {
            return Some(entry);
        }
        if key == 0 {
            let taken =
                entry.function.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire);
            match taken {
                Ok(_) => return Some(entry),
                Err(other) if other == function => return Some(entry),
                Err(_) => {}
            }
        }
    }
    None
}

#[cold]
fn learn(
    thread: &Thread,
    attachment: &Attachment,
    function: u64,
    epoch: u32,
    entry: Option<&LayoutEntry>,
    known: Option<&'static ParameterLayout>,
) -> Option<&'static ParameterLayout> {
    let mut pairs = [(0u32, 0u32); MOST_PARAMS];
    let count = query_layout(function, &mut pairs);
    let pairs = &pairs[..if count == NO_LAYOUT { 0 } else { count as usize }];
    let name = query_name(function);
    let module = query_home(Counted::cuFuncGetModule, function);
    let library = match module {
        0 => query_home(Counted::cuKernelGetLibrary, function),
        _ => 0,
    };
    let record = Outgoing {
        kind: RecordKind::Kernel,
        depth: 0,
        api: 0,
        body: 32 + 8 * pairs.len() + name.len().next_multiple_of(8),
    };
    let published = thread.publish(attachment, record, |body| {
        body.word(function);
        body.word(name.len() as u64 | u64::from(count) << 32);
        body.word(module);
        body.word(library);
        for (offset, size) in pairs {
            body.word(u64::from(*offset) | u64::from(*size) << 32);
        }
        // SAFETY: a live slice.
        unsafe { body.bytes(name.as_ptr(), name.len()) };
        body.align(name.len());
    });
    let same = known.filter(|k| k.count == count && k.pairs().eq(pairs.iter().copied()));
    let layout = match same {
        Some(same) => same,
        None => {
            let layout = store(count, pairs)?;
            if let Some(entry) = entry {
                entry.layout.store(ptr::from_ref(layout).cast_mut(), Ordering::Release);
            }
            layout
        }
    };
    // Without its Kernel record the handle stays unknown, so that the next launch tries again.
    if published != 0 {
        layout.epoch.store(epoch, Ordering::Release);
    }
    Some(layout)
}

/// Asks the driver for the layout: `cuFuncGetParamInfo`, or `cuKernelGetParamInfo` for a handle
/// that is a cast `CUkernel`, both since CUDA 12.4.
fn query_layout(function: u64, pairs: &mut [(u32, u32); MOST_PARAMS]) -> u32 {
    type Query = extern "C" fn(*mut c_void, usize, *mut usize, *mut usize) -> i32;
    for query in [Counted::cuFuncGetParamInfo, Counted::cuKernelGetParamInfo] {
        let Some(real) = resolve::real_counted(query) else { continue };
        // SAFETY: the driver's function with its documented signature.
        let query: Query = unsafe { core::mem::transmute(real) };
        let mut count = 0;
        loop {
            let (mut offset, mut size) = (0usize, 0usize);
            match query(function as *mut c_void, count, &mut offset, &mut size) {
                0 => {}
                INVALID_VALUE => return count as u32,
                INVALID_HANDLE if count == 0 => break,
                _ => return NO_LAYOUT,
            }
            let end = offset.checked_add(size);
            let Some(pair) = pairs.get_mut(count).filter(|_| end.is_some_and(|e| e <= MOST_BYTES))
            else {
                return NO_LAYOUT;
            };
            *pair = (offset as u32, size as u32);
            count += 1;
        }
    }
    NO_LAYOUT
}

/// Asks the driver for the name: `cuFuncGetName` or `cuKernelGetName`, both since CUDA 12.3.
fn query_name(function: u64) -> &'static [u8] {
    type Query = extern "C" fn(*mut *const c_char, *mut c_void) -> i32;
    for query in [Counted::cuFuncGetName, Counted::cuKernelGetName] {
        let Some(real) = resolve::real_counted(query) else { continue };
        let mut name = ptr::null();
        // SAFETY: the driver's function with its documented signature and a writable result.
        let query: Query = unsafe { core::mem::transmute(real) };
        if query(&mut name, function as *mut c_void) == 0 && !name.is_null() {
            // SAFETY: the driver owns the string as long as the kernel is loaded, which it is
            // while it is being launched.
            let name = unsafe { CStr::from_ptr(name) }.to_bytes();
            let name = &name[..name.len().min(LONGEST_NAME)];
            return if core::str::from_utf8(name).is_ok() { name } else { &[] };
        }
    }
    &[]
}

/// Asks the driver where the kernel comes from, 0 where it does not tell: `cuFuncGetModule` (since
/// CUDA 11.0), `cuKernelGetLibrary` (since 12.5).
fn query_home(query: Counted, function: u64) -> u64 {
    let Some(real) = resolve::real_counted(query) else { return 0 };
    type Query = extern "C" fn(*mut u64, *mut c_void) -> i32;
    // SAFETY: the driver's function with its documented signature and a writable result.
    let query: Query = unsafe { core::mem::transmute(real) };
    let mut home = 0;
    if query(&mut home, function as *mut c_void) == 0 { home } else { 0 }
}

/// Stores a layout for good.
fn store(count: u32, pairs: &[(u32, u32)]) -> Option<&'static ParameterLayout> {
    let len = size_of::<ParameterLayout>() + size_of_val(pairs);
    let at = allocate(len)?.cast::<ParameterLayout>();
    let bytes = pairs.iter().map(|(offset, size)| offset + size).max().unwrap_or(0);
    let sum: u32 = pairs.iter().map(|(_, size)| size).sum();
    let dense = sum == bytes;
    // SAFETY: `at` is fresh memory of `len` bytes, aligned to 8.
    unsafe {
        at.write(ParameterLayout { epoch: AtomicU32::new(0), count, bytes, dense, first: [] });
        let first = (&raw mut (*at).first).cast::<(u32, u32)>();
        for (index, pair) in pairs.iter().enumerate() {
            first.add(index).write(*pair);
        }
        at.as_ref()
    }
}

/// Memory that is never freed, 8-aligned.
fn allocate(len: usize) -> Option<*mut u8> {
    const CHUNK: usize = 256 << 10;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    static BUSY: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);
    let len = len.next_multiple_of(8);
    // Kernels are learnt rarely; a thread that finds another at it maps memory of its own.
    let alone = BUSY.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if alone && LEFT.load(Ordering::Relaxed) >= len {
        let at = NEXT.fetch_add(len, Ordering::Relaxed);
        LEFT.fetch_sub(len, Ordering::Relaxed);
        BUSY.store(false, Ordering::Release);
        return Some(at as *mut u8);
    }
    let size = if alone { CHUNK } else { len.next_multiple_of(4096) };
    // SAFETY: a fresh private mapping.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let mapped = start != libc::MAP_FAILED;
    if alone {
        if mapped {
            NEXT.store(start as usize + len, Ordering::Relaxed);
            LEFT.store(size - len, Ordering::Relaxed);
        }
        BUSY.store(false, Ordering::Release);
    }
    mapped.then_some(start.cast())
}
