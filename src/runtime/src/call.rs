//! Before and after a hooked call: the BEGIN and END records.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use streamsan_wire::{Api, Counted, EntryPoint, ParamKind, RecordKind};

use crate::attach::{self, Attachment};
use crate::capture::Plan;
use crate::host::fences::{self, GivenMemory, Pending};
use crate::host::interest;
use crate::host_function::{self, Wrapper};
use crate::thread::{self, Outgoing, Thread};
use crate::{file_tags, graphs, images, layouts, measuring, resolve, stacks, variables};

/// Most out values of a call: a tensor map of 128 bytes, or a few words with what is appended to
/// them.
const MOST_OUTS: usize = 16;

/// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`.
const CONCURRENT_MANAGED_ACCESS: i32 = 89;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `..._MINOR`.
const CAPABILITY_MAJOR: i32 = 75;
const CAPABILITY_MINOR: i32 = 76;

/// A hooked call in progress.
pub(crate) struct Call {
    /// The driver's own function; never 0.
    pub(crate) real: usize,
    api: Api,
    /// Attachment that counted the call in, 0 for a call that is not recorded.
    attachment: u64,
    /// `g` of the BEGIN, 0 if it was dropped.
    g: u64,
    /// `g` of the hooked call around this one.
    outer: u64,
    wrapper: *mut Wrapper,
    /// Where the driver puts the size of a variable that the program does not ask for.
    size: Cell<u64>,
    /// The program's function where another one is launched in its place, else 0.
    launched: u64,
    fence: Pending,
    /// Host memory that a kernel was given.
    found: GivenMemory,
}

impl Call {
    /// A call that nothing is known of yet.
    #[inline]
    pub(crate) fn new(api: Api) -> Self {
        let real = resolve::absent as *const () as usize;
        Self {
            real,
            api,
            attachment: 0,
            g: 0,
            outer: 0,
            wrapper: ptr::null_mut(),
            size: Cell::new(0),
            launched: 0,
            fence: Pending::default(),
            found: GivenMemory::nothing(),
        }
    }
}

/// Records that the call is about to enter the driver. May replace a host function and its user
/// data in `words` by our own, and ask for the size of a variable where the program does not.
#[inline(never)]
pub(crate) fn begin(call: &mut Call, words: &mut [u64]) {
    let api = call.api;
    if let Some(entry) = EntryPoint::from_index(api as usize) {
        call.real = resolve::real_or_absent(entry);
    }
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        call.attachment = attachment.number;
        if ends_handles(api) {
            layouts::forget();
        }
        interest::before_call(api, words);
        thread.busy.set(true);
        if thread.depth.get() == 0 {
            fences::before_record(api, words, &mut call.fence);
        }
        record_begin(thread, &attachment, call, words);
        fences::after_record(api, words, &mut call.fence);
        thread.busy.set(false);
        call.outer = thread.op.replace(call.g);
        thread.depth.set(thread.depth.get().saturating_add(1));
        call.launched = measuring::before(api, call.g, words);
    });
}

/// Puts the program's own function back where another one was to be launched in its place and could
/// not be: the call is then made again.
#[cold]
#[inline(never)]
pub(crate) fn takes_back(call: &mut Call, words: &mut [u64], result: i32) -> bool {
    if call.launched == 0 || result == 0 {
        return false;
    }
    guarded(|_| measuring::failed(call.api, call.g, words, result, call.launched));
    call.launched = 0;
    true
}

/// Records that the driver has returned.
#[inline(never)]
pub(crate) fn end(call: &Call, words: &mut [u64], result: i32) {
    if call.attachment == 0 {
        return;
    }
    guarded(|thread| {
        measuring::after(call.api, call.g, words, result, call.launched);
        thread.depth.set(thread.depth.get().saturating_sub(1));
        thread.op.set(call.outer);
        if ends_handles(call.api) {
            layouts::forget();
        }
        if !call.wrapper.is_null() && result != 0 {
            host_function::discard(call.wrapper);
        }
        // A forked child returning through its parent's call has no BEGIN to end.
        let Some(attachment) = attach::attachment().filter(|s| s.number == call.attachment) else {
            return;
        };
        if result == 0 {
            interest::after_call(call.api, words);
            note_variable(call.api, words);
        }
        if call.g != 0 {
            thread.busy.set(true);
            if result == 0 {
                images::after(thread, &attachment, call.api, call.g, words);
            }
            ask_graphs(thread, &attachment, call, words, result);
            record_end(thread, &attachment, call, words, result);
            thread.busy.set(false);
        }
        thread.busy.set(true);
        if result == 0 {
            call.found.place(call.api, words, &call.fence);
        }
        fences::returned(call.api, words, &call.fence, result);
        thread.busy.set(false);
    });
}

/// Runs our own code in the program's thread: keeps `errno`, lets no panic out, and passes over
/// calls that our own code or a signal handler interrupting it makes.
pub(crate) fn guarded(run: impl FnOnce(&Thread)) {
    thread::with(|thread| {
        if thread.busy.get() {
            return;
        }
        let errno = thread::errno();
        if catch_unwind(AssertUnwindSafe(|| run(thread))).is_err() {
            attach::switch_off();
            thread.busy.set(false);
        }
        thread::set_errno(errno);
    });
}

fn record_begin(thread: &Thread, attachment: &Attachment, call: &mut Call, words: &mut [u64]) {
    let context = current_context();
    let stack = stacks::of_call(thread, attachment, call.api);
    if !call.api.signature().captures {
        let record = Outgoing {
            kind: RecordKind::Begin,
            depth: thread.depth.get(),
            api: call.api as u16,
            body: 16 + 8 * words.len(),
        };
        call.g = thread.publish(attachment, record, |body| {
            body.word(context);
            body.word(stack);
            for word in &*words {
                body.word(*word);
            }
        });
        return;
    }
    let mut plan = Plan::empty();
    plan.fill(thread, attachment, call.api, words);
    fences::launched(&plan.params, &call.fence, &mut call.found);
    let record = Outgoing {
        kind: RecordKind::Begin,
        depth: thread.depth.get(),
        api: call.api as u16,
        body: 16 + 8 * words.len() + plan.bytes(),
    };
    call.g = thread.publish(attachment, record, |body| {
        body.word(context);
        body.word(stack);
        for word in &*words {
            body.word(*word);
        }
        plan.write(body);
    });
    if call.g != 0 && plan.hands_over_function {
        call.wrapper = host_function::wrap(call.api, words, call.g, &call.fence);
    }
    if call.g != 0 && finds_variable(call.api) && words[0] != 0 && words[1] == 0 {
        // The size may be left out (CUDA driver API, `cuModuleGetGlobal`).
        words[1] = call.size.as_ptr() as u64;
    }
}

fn record_end(thread: &Thread, attachment: &Attachment, call: &Call, words: &[u64], result: i32) {
    if result != 0 || call.api.signature().outs == 0 {
        return publish_end(thread, attachment, call, result, &[]);
    }
    let mut outs = [0u64; MOST_OUTS];
    let count = read_outs(call.api, words, &mut outs);
    publish_end(thread, attachment, call, result, &outs[..count]);
}

#[inline]
fn publish_end(thread: &Thread, attachment: &Attachment, call: &Call, result: i32, outs: &[u64]) {
    let record = Outgoing {
        kind: RecordKind::End,
        depth: thread.depth.get(),
        api: call.api as u16,
        body: 16 + 8 * outs.len(),
    };
    thread.publish(attachment, record, |body| {
        body.word(call.g);
        body.word(result as u32 as u64);
        for out in outs {
            body.word(*out);
        }
    });
}

/// Records the parts of graphs and captures that belong to the call, before its END.
#[inline]
fn ask_graphs(thread: &Thread, attachment: &Attachment, call: &Call, words: &[u64], result: i32) {
    if call.api.signature().follows {
        graphs::after(thread, attachment, call.api, call.g, words, result);
    }
    if graphs::under_capture() && result == 0 {
        graphs::note_captured(thread, attachment, call.api, call.g, words);
    }
}

/// Reads the out values of a successful call; returns how many.
fn read_outs(api: Api, words: &[u64], outs: &mut [u64; MOST_OUTS]) -> usize {
    let signature = api.signature();
    let mut count = 0;
    let mut appended = None;
    let mut put = |value: u64| {
        if let Some(out) = outs.get_mut(count) {
            *out = value;
            count += 1;
        }
    };
    for (param, word) in signature.params.iter().zip(words) {
        let at = *word as *const u8;
        let bytes = match param.kind {
            ParamKind::Out(bytes) | ParamKind::InOut(bytes) => usize::from(bytes),
            ParamKind::OutShareable => 4,
            ParamKind::OutStream
            | ParamKind::OutContext
            | ParamKind::OutAddress
            | ParamKind::OutImported => 8,
            _ => continue,
        };
        if at.is_null() {
            (0..bytes.div_ceil(8)).for_each(|_| put(0));
            continue;
        }
        if bytes == 4 {
            // SAFETY: the driver has just written a result of this size there.
            let first = unsafe { at.cast::<u32>().read_unaligned() };
            put(u64::from(first));
            if param.kind == ParamKind::OutShareable {
                let mark = || file_tags::mark(first.cast_signed());
                appended = Some(if is_descriptor(words) { mark() } else { 0 });
            }
            continue;
        }
        for index in 0..bytes / 8 {
            // SAFETY: as above.
            put(unsafe { at.cast::<u64>().add(index).read_unaligned() });
        }
        // SAFETY: as above.
        let first = unsafe { at.cast::<u64>().read_unaligned() };
        match param.kind {
            ParamKind::OutStream => appended = Some(stream_id(first)),
            ParamKind::OutAddress => appended = Some(address_range(first)),
            ParamKind::OutImported => {
                let mark = || file_tags::read(words.get(1).copied().unwrap_or(0) as i32);
                appended = Some(if is_descriptor(words) { mark() } else { 0 });
            }
            ParamKind::OutContext => {
                let device = signature.index_of("dev").and_then(|i| words.get(i)).copied();
                appended = Some(device_facts(device.unwrap_or(0) as i32));
            }
            _ => {}
        }
    }
    if let Some(appended) = appended {
        put(appended);
    }
    count
}

/// Whether parameter 2, a `CUmemAllocationHandleType`, is `..._POSIX_FILE_DESCRIPTOR`.
fn is_descriptor(words: &[u64]) -> bool {
    words.get(2) == Some(&1)
}

/// `cuCtxGetCurrent`, 0 where there is none.
pub(crate) fn current_context() -> u64 {
    let mut context = 0u64;
    if let Some(real) = resolve::real_counted(Counted::cuCtxGetCurrent) {
        // SAFETY: the driver's function with its documented signature and a writable result.
        let result = unsafe {
            let query: extern "C" fn(*mut u64) -> i32 = core::mem::transmute(real);
            query(&mut context)
        };
        if result != 0 {
            return 0;
        }
    }
    context
}

/// `cuStreamGetId`, all ones where the driver has none (before CUDA 12.0).
fn stream_id(stream: u64) -> u64 {
    let mut id = u64::MAX;
    if let Some(real) = resolve::real_counted(Counted::cuStreamGetId) {
        // SAFETY: the driver's function with its documented signature and a writable result.
        let result = unsafe {
            let query: extern "C" fn(*mut c_void, *mut u64) -> i32 = core::mem::transmute(real);
            query(stream as *mut c_void, &mut id)
        };
        if result != 0 {
            return u64::MAX;
        }
    }
    id
}

/// Bytes from `address` to the end of the memory that it lies in, by `cuMemGetAddressRange`; 0
/// where the driver does not tell.
fn address_range(address: u64) -> u64 {
    let Some(real) = resolve::real_counted(Counted::cuMemGetAddressRange_v2) else { return 0 };
    let (mut base, mut size) = (0u64, 0usize);
    // SAFETY: the driver's function with its documented signature and writable results.
    let result = unsafe {
        let query: extern "C" fn(*mut u64, *mut usize, u64) -> i32 = core::mem::transmute(real);
        query(&mut base, &mut size, address)
    };
    if result == 0 { (base + size as u64).saturating_sub(address) } else { 0 }
}

/// The facts about the device in the record of a new context ([`ParamKind::OutContext`]).
fn device_facts(device: i32) -> u64 {
    let concurrent = u64::from(attribute(device, CONCURRENT_MANAGED_ACCESS) != Some(0));
    let capability = |number| attribute(device, number).map_or(0, |value| u64::from(value as u8));
    concurrent | capability(CAPABILITY_MAJOR) << 8 | capability(CAPABILITY_MINOR) << 16
}

/// An attribute of a device, `None` where the driver does not tell.
fn attribute(device: i32, number: i32) -> Option<i32> {
    let real = resolve::real_counted(Counted::cuDeviceGetAttribute)?;
    let mut value = 0;
    // SAFETY: the driver's function with its documented signature and a writable result.
    let result = unsafe {
        let query: extern "C" fn(*mut i32, i32, i32) -> i32 = core::mem::transmute(real);
        query(&mut value, number, device)
    };
    (result == 0).then_some(value)
}

/// The same of the current context's device.
pub(crate) fn attribute_of_current(number: i32) -> Option<i32> {
    let real = resolve::real_counted(Counted::cuCtxGetDevice)?;
    let mut device = 0;
    // SAFETY: the driver's function with its documented signature and a writable result.
    let result = unsafe {
        let query: extern "C" fn(*mut i32) -> i32 = core::mem::transmute(real);
        query(&mut device)
    };
    if result == 0 { attribute(device, number) } else { None }
}

/// Whether the call is `(address, size, module, name)` of a variable.
fn finds_variable(api: Api) -> bool {
    matches!(api, Api::cuModuleGetGlobal_v2 | Api::cuLibraryGetGlobal | Api::cuLibraryGetManaged)
}

/// Notes where a variable lies that a successful call has found.
#[inline]
fn note_variable(api: Api, words: &[u64]) {
    if finds_variable(api) && words[0] != 0 && words[1] != 0 {
        // SAFETY: the driver has just written address and size there.
        unsafe {
            let (address, size) = (words[0] as *const u64, words[1] as *const u64);
            variables::found(address.read_unaligned(), size.read_unaligned());
        }
    }
}

/// Whether function handles may mean other kernels after this call.
fn ends_handles(api: Api) -> bool {
    matches!(
        api,
        Api::cuModuleUnload
            | Api::cuLibraryUnload
            | Api::cuCtxDestroy
            | Api::cuCtxDestroy_v2
            | Api::cuCtxDetach
            | Api::cuDevicePrimaryCtxRelease
            | Api::cuDevicePrimaryCtxRelease_v2
            | Api::cuDevicePrimaryCtxReset
            | Api::cuDevicePrimaryCtxReset_v2
    )
}
