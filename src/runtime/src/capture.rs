//! Copies of the bytes behind the pointers of a call, taken at its entry.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use streamsan_wire::{Api, BlobTag, Body, ParamKind};

use crate::attach::Attachment;
use crate::graphs;
use crate::images::memory;
use crate::layouts::{self, ParameterLayout};
use crate::thread::Thread;
use crate::variables;

/// Longest string that is recorded; longer ones are cut.
const LONGEST_STRING: usize = 4096;

/// Most launch attributes that are recorded; the driver knows fewer ids than this.
const MOST_ATTRIBUTES: usize = 64;

/// `sizeof(CUlaunchConfig)`, and where its attributes are.
const LAUNCH_CONFIG: usize = 56;
const CONFIG_ATTRIBUTES: usize = 40;
const CONFIG_ATTRIBUTE_COUNT: usize = 48;

/// `sizeof(CUlaunchAttribute)`.
const LAUNCH_ATTRIBUTE: usize = 72;

/// Largest packed parameter buffer (CUDA C++ Programming Guide, kernel parameter limit).
const MOST_PARAMS: usize = 32 * 1024;

/// Most bytes of one array; a longer one is not recorded, and its call counts as not understood.
const MOST_ARRAY: u64 = 1 << 20;

/// `sizeof(CUDA_LAUNCH_PARAMS)`, and where its kernel's parameters are.
const LAUNCH_PARAMS: usize = 56;
const LAUNCH_PARAMS_KERNEL_PARAMS: usize = 48;

/// Most kernels of one launch on several devices; a longer list is not recorded.
const MOST_MEMBERS: usize = 16;

/// Most blobs of one call: `cuMemcpyBatchAsync` has five arrays.
const MOST_BLOBS: usize = 6;

#[derive(Clone, Copy)]
struct Blob {
    tag: u32,
    /// Null for the bytes that the plan itself holds.
    from: *const u8,
    len: usize,
}

/// The parameters of a kernel.
pub(crate) enum Params {
    None,
    /// `kernelParams`: one pointer a parameter.
    Separate {
        layout: &'static ParameterLayout,
        array: *const *const u8,
    },
    /// The buffer of `extra`.
    Packed {
        from: *const u8,
        len: usize,
    },
}

/// The parameters of one kernel of a launch on several devices.
#[derive(Clone, Copy)]
struct Member {
    /// Its place in the list.
    index: u32,
    layout: &'static ParameterLayout,
    array: *const *const u8,
}

/// The bytes to copy, determined before room is asked for.
pub(crate) struct Plan {
    /// The first `count` are written.
    blobs: [MaybeUninit<Blob>; MOST_BLOBS],
    count: usize,
    pub(crate) params: Params,
    /// The first `member_count` are written.
    members: [MaybeUninit<Member>; MOST_MEMBERS],
    member_count: usize,
    /// The bytes that a copy reads; nobody promises that they are there.
    bytes: MaybeUninit<[u8; ParamKind::MOST_BYTES as usize]>,
    /// Whether the call hands a function of the program to the driver.
    pub(crate) hands_over_function: bool,
}

impl Plan {
    /// Nothing to copy.
    #[inline(always)]
    pub(crate) fn empty() -> Self {
        Plan {
            blobs: [const { MaybeUninit::uninit() }; MOST_BLOBS],
            count: 0,
            params: Params::None,
            members: [const { MaybeUninit::uninit() }; MOST_MEMBERS],
            member_count: 0,
            bytes: MaybeUninit::uninit(),
            hands_over_function: false,
        }
    }

    /// Looks at the pointers of a call; publishes a Kernel record before a handle's first launch.
    /// Fills the plan in its place: it is too large to be moved at every launch.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        thread: &Thread,
        attachment: &Attachment,
        api: Api,
        words: &[u64],
    ) {
        let signature = api.signature();
        let (mut function, mut separate, mut packed) = (None, 0u64, 0u64);
        for (index, (param, word)) in signature.params.iter().zip(words).enumerate() {
            if *word == 0 {
                continue;
            }
            let at = *word as *const u8;
            match param.kind {
                ParamKind::Value => {}
                ParamKind::Function => function = Some(*word),
                ParamKind::KernelParams => separate = *word,
                ParamKind::Extra => packed = *word,
                ParamKind::InStruct(len) => self.add(index as u32, at, usize::from(len)),
                ParamKind::LaunchConfig => {
                    self.add(index as u32, at, LAUNCH_CONFIG);
                    // SAFETY: the driver would read this structure too.
                    let (attributes, count) = unsafe {
                        (
                            at.add(CONFIG_ATTRIBUTES).cast::<*const u8>().read_unaligned(),
                            at.add(CONFIG_ATTRIBUTE_COUNT).cast::<u32>().read_unaligned(),
                        )
                    };
                    let count = (count as usize).min(MOST_ATTRIBUTES);
                    if !attributes.is_null() && count > 0 {
                        self.add(BlobTag::LAUNCH_ATTRIBUTES, attributes, count * LAUNCH_ATTRIBUTE);
                    }
                }
                _ => self.rare(thread, attachment, api, words, index),
            }
        }
        if let Some(function) = function {
            self.params = params_of(thread, attachment, function, separate, packed);
        }
        let largest = thread.largest_body(attachment);
        if self.bytes() + 8 + 8 * words.len() > largest {
            self.params = Params::None;
            if self.bytes() + 8 + 8 * words.len() > largest {
                // The call itself is recorded; the collector misses what it points to and says so.
                self.count = 0;
                self.member_count = 0;
            }
        }
    }

    /// Looks at a parameter of a kind that no launch has.
    #[cold]
    #[inline(never)]
    fn rare(
        &mut self,
        thread: &Thread,
        attachment: &Attachment,
        api: Api,
        words: &[u64],
        index: usize,
    ) {
        let word = words[index];
        let at = word as *const u8;
        match api.signature().params[index].kind {
            ParamKind::InArray { element, count } => {
                let count = words.get(usize::from(count)).copied().unwrap_or(0);
                let bytes = count.saturating_mul(u64::from(element));
                if bytes > 0 && bytes <= MOST_ARRAY {
                    self.add(index as u32, at, bytes as usize);
                }
            }
            ParamKind::InBytes { count } => {
                let count = words.get(usize::from(count)).copied().unwrap_or(0);
                // The destination is the first parameter of all such copies (CUDA driver API,
                // `cuMemcpyHtoD`).
                let is_short = (1..=ParamKind::MOST_BYTES).contains(&count);
                if is_short && variables::may_lie_in(words[0], count) {
                    self.add_bytes(index as u32, word, count as usize);
                }
            }
            ParamKind::PerDimension { element, less } => {
                // The driver refuses a larger rank without reading.
                let rank = words.get(ParamKind::RANK).copied().unwrap_or(0);
                let count = rank.saturating_sub(u64::from(less));
                if rank <= ParamKind::MOST_DIMENSIONS && count > 0 {
                    self.add(index as u32, at, count as usize * usize::from(element));
                }
            }
            ParamKind::InOut(len) => self.add(index as u32, at, usize::from(len)),
            ParamKind::Launches { count } => {
                let count = words.get(usize::from(count)).map_or(0, |c| *c as usize);
                if count <= MOST_MEMBERS {
                    self.add(index as u32, at, count * LAUNCH_PARAMS);
                    // SAFETY: the driver would read this list too.
                    unsafe { self.add_members(thread, attachment, at, count) };
                }
            }
            ParamKind::InString => {
                // SAFETY: the driver would read this string too.
                let len = unsafe { libc::strnlen(at.cast(), LONGEST_STRING) };
                self.add(index as u32, at, len);
            }
            ParamKind::Graph => graphs::graph(thread, attachment, word),
            ParamKind::NodeParams(kind) => {
                let first_version = api == Api::cuGraphExecKernelNodeSetParams;
                graphs::node_params(thread, attachment, kind, at, first_version);
            }
            ParamKind::HostFunction | ParamKind::StreamCallback => {
                self.hands_over_function = true;
            }
            _ => {}
        }
    }

    fn add(&mut self, tag: u32, from: *const u8, len: usize) {
        if let Some(blob) = self.blobs.get_mut(self.count) {
            blob.write(Blob { tag, from, len });
            self.count += 1;
        }
    }

    /// Takes a copy at once, if there is something: the driver may get an address of the device
    /// here, or one that it refuses.
    fn add_bytes(&mut self, tag: u32, from: u64, len: usize) {
        let bytes = self.bytes.write([0; ParamKind::MOST_BYTES as usize]);
        if memory::read_if_there(from, &mut bytes[..len]).is_ok() {
            self.add(tag, core::ptr::null(), len);
        }
    }

    /// Looks at the kernels of a launch on several devices.
    ///
    /// # Safety
    /// `list` points to `count` structures of the program.
    unsafe fn add_members(
        &mut self,
        thread: &Thread,
        attachment: &Attachment,
        list: *const u8,
        count: usize,
    ) {
        for index in 0..count {
            // SAFETY: inside the list (caller).
            let (function, array) = unsafe {
                let at = list.add(index * LAUNCH_PARAMS);
                let params = at.add(LAUNCH_PARAMS_KERNEL_PARAMS);
                (
                    at.cast::<u64>().read_unaligned(),
                    params.cast::<*const *const u8>().read_unaligned(),
                )
            };
            let layout = layouts::of(thread, attachment, function);
            if let (Some(layout), false) = (layout, array.is_null())
                && let Some(member) = self.members.get_mut(self.member_count)
            {
                member.write(Member { index: index as u32, layout, array });
                self.member_count += 1;
            }
        }
    }

    fn blobs(&self) -> impl Iterator<Item = &Blob> {
        // SAFETY: `add` has written the first `count`.
        self.blobs[..self.count].iter().map(|blob| unsafe { blob.assume_init_ref() })
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        // SAFETY: `add_members` has written the first `member_count`.
        self.members[..self.member_count].iter().map(|m| unsafe { m.assume_init_ref() })
    }

    /// Bytes that [`Plan::write`] appends.
    pub(crate) fn bytes(&self) -> usize {
        let blobs: usize = self.blobs().map(|blob| Body::blob_bytes(blob.len)).sum();
        let members: usize = self.members().map(|m| Body::blob_bytes(m.layout.bytes())).sum();
        blobs + members + self.params.bytes()
    }

    /// Copies.
    pub(crate) fn write(&self, body: &mut Body) {
        for blob in self.blobs() {
            let from = if blob.from.is_null() { self.bytes.as_ptr().cast() } else { blob.from };
            // SAFETY: the program gave the driver these bytes to read, or they were copied here.
            unsafe { body.blob(blob.tag, from, blob.len) };
        }
        self.params.write(body);
        for member in self.members() {
            let tag = BlobTag::MEMBER_PARAMS + member.index;
            // SAFETY: `kernelParams` holds a pointer for each parameter of the kernel.
            unsafe { write_params(body, tag, member.layout, member.array) };
        }
    }
}

impl Params {
    /// Bytes that [`Params::write`] appends.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Params::None => 0,
            Params::Separate { layout, .. } => Body::blob_bytes(layout.bytes()),
            Params::Packed { len, .. } => Body::blob_bytes(*len),
        }
    }

    /// The parameters by words that may be addresses: each eight bytes at a multiple of eight.
    pub(crate) fn each_word(&self, tell: &mut dyn FnMut(u64)) {
        let mut each = |from: *const u8, bytes: usize| {
            for index in 0..if from.is_null() { 0 } else { bytes / 8 } {
                // SAFETY: inside a parameter that the program gave the driver to read.
                tell(unsafe { from.cast::<u64>().add(index).read_unaligned() });
            }
        };
        match *self {
            Params::None => {}
            Params::Packed { from, len } => each(from, len),
            Params::Separate { layout, array } => {
                for (index, (_, size)) in layout.pairs().enumerate() {
                    // SAFETY: `kernelParams` holds a pointer for each parameter of the kernel.
                    each(unsafe { *array.add(index) }, size as usize);
                }
            }
        }
    }

    /// Copies.
    #[inline]
    pub(crate) fn write(&self, body: &mut Body) {
        match *self {
            Params::None => {}
            Params::Packed { from, len } => {
                // SAFETY: the program gave the driver these bytes to read.
                unsafe { body.blob(BlobTag::KERNEL_PARAMS, from, len) };
            }
            Params::Separate { layout, array } => {
                // SAFETY: `kernelParams` holds a pointer for each parameter of the kernel.
                unsafe { write_params(body, BlobTag::KERNEL_PARAMS, layout, array) };
            }
        }
    }
}

/// The parameters that `kernelParams` (`separate`) or `extra` (`packed`) of a launch or a node
/// give; publishes a Kernel record before a handle's first use.
pub(crate) fn params_of(
    thread: &Thread,
    attachment: &Attachment,
    function: u64,
    separate: u64,
    packed: u64,
) -> Params {
    match layouts::of(thread, attachment, function) {
        Some(layout) if separate != 0 => {
            Params::Separate { layout, array: separate as *const *const u8 }
        }
        // SAFETY: the driver would read this array too.
        _ if separate == 0 && packed != 0 => unsafe {
            packed_params(packed as *const *const c_void)
        },
        _ => Params::None,
    }
}

/// Appends the parameters of a kernel as a blob.
///
/// # Safety
/// `array` holds a pointer for each parameter in `layout`: null, or to the parameter.
#[inline]
unsafe fn write_params(
    body: &mut Body,
    tag: u32,
    layout: &ParameterLayout,
    array: *const *const u8,
) {
    let len = layout.bytes();
    body.blob_head(tag, len);
    let Some(packed) = body.gather(len) else { return };
    if !layout.is_dense() {
        // SAFETY: `packed` has `len` writable bytes.
        unsafe { packed.write_bytes(0, len) };
    }
    for (index, (offset, size)) in layout.pairs().enumerate() {
        // SAFETY: promised by the caller, and `offset + size` is at most `len` (Layout).
        unsafe { copy_param(*array.add(index), packed.add(offset as usize), size) };
    }
    body.align(len);
}

/// Copies one parameter, zeroes for a null pointer; the usual sizes without a call.
///
/// # Safety
/// `to` is valid for writes of `size` bytes and `from`, unless null, for reads.
#[inline]
unsafe fn copy_param(from: *const u8, to: *mut u8, size: u32) {
    // SAFETY: promised by the caller.
    unsafe {
        match size {
            _ if from.is_null() => to.write_bytes(0, size as usize),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => to.copy_from_nonoverlapping(from, size as usize),
        }
    }
}

/// Reads `extra`: pairs of a key and a value, ended by CU_LAUNCH_PARAM_END.
///
/// # Safety
/// `extra` is what a program gave the driver.
unsafe fn packed_params(extra: *const *const c_void) -> Params {
    const END: usize = 0;
    const BUFFER_POINTER: usize = 1;
    const BUFFER_SIZE: usize = 2;
    let (mut from, mut len) = (core::ptr::null::<u8>(), 0usize);
    // Two known keys; the bound keeps a malformed array from leading us far.
    for pair in 0..8 {
        // SAFETY: the array reaches to its END (caller).
        let key = unsafe { *extra.add(2 * pair) } as usize;
        if key == END {
            break;
        }
        // SAFETY: every key but END is followed by its value.
        let value = unsafe { *extra.add(2 * pair + 1) };
        match key {
            BUFFER_POINTER => from = value.cast(),
            // SAFETY: documented as a pointer to `size_t`.
            BUFFER_SIZE if !value.is_null() => len = unsafe { *value.cast::<usize>() },
            _ => break,
        }
    }
    if from.is_null() || len > MOST_PARAMS {
        return Params::None;
    }
    Params::Packed { from, len }
}
