//! NCCL: collective operations and point-to-point transfers between GPUs (NCCL user guide, "NCCL
//! API"). Each is an operation of its stream, with the ranges that it sends from and receives into.
//!
//! A direct link finds ours first; a look-up with `dlsym` is routed here if what it found lies in
//! an object whose soname begins with `libnccl.so`. Inside a group nothing is carried out before
//! the outermost `ncclGroupEnd` ("Group Calls"): what was asked for is recorded on the spot, and
//! the group's end once for each of its streams.
//!
//! NCCL's calls of its own functions pass unrecorded; its driver calls stay recorded, but the
//! collector takes the memory that its kernels touch from here.
//!
//! Not seen: a copy of NCCL that binds its own calls, as static ones do, and the aliases `pnccl*`.

use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use streamsan_wire::{CollectivePhase, HostCall, Transfer};

use super::fences;
use super::library::Library;
use super::publish::{publish, publish_return, words};
use crate::call::{current_context, guarded};
use crate::elf::LoadedObject;
use crate::{attach, thread};

/// `ncclInternalError`: what a call answers where no NCCL is loaded.
const INTERNAL_ERROR: i32 = 3;
/// `ncclInProgress`: the call of a non-blocking communicator is under way.
const IN_PROGRESS: i32 = 7;

/// Bytes per element by `ncclDataType_t`.
const ELEMENTS: [u64; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

/// Most streams of a group; calls to further ones are taken to be carried out at once.
const MOST_STREAMS: usize = 32;

macro_rules! functions {
    ($($name:ident,)*) => {
        /// The functions, in the order of their addresses.
        #[derive(Clone, Copy)]
        #[expect(
            non_camel_case_types,
            clippy::enum_variant_names,
            reason = "the names are NCCL's symbols"
        )]
        enum Function {
            $($name,)*
        }

        const NAMES: [&CStr; [$(Function::$name,)*].len()] = [
            $(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("one NUL, at the end"),
            },)*
        ];

        fn hooks() -> [usize; NAMES.len()] {
            [$($name as *const () as usize,)*]
        }
    };
}

functions! {
    ncclSend, ncclRecv, ncclAllReduce, ncclBroadcast, ncclBcast, ncclReduce, ncclAllGather,
    ncclReduceScatter, ncclAlltoAll, ncclGather, ncclScatter, ncclGroupStart, ncclGroupEnd,
    ncclGroupSimulateEnd,
}

static LIBRARY: Library<{ NAMES.len() }> = Library::new("libnccl", NAMES);

/// The address that a program gets that looked `name` up and found `address`; `None` if not ours.
pub(crate) fn substitute(name: &CStr, address: usize) -> Option<usize> {
    LIBRARY.substitute(name, address, &hooks())
}

/// The object that has `name`: NCCL, or another one that exports NCCL's functions.
fn owner(name: &CStr, ours: usize) -> Option<LoadedObject> {
    let other =
        |object: &LoadedObject| object.function(name).is_some_and(|address| address != ours);
    LoadedObject::find(|object| LIBRARY.is(object) && other(object))
        .or_else(|| LoadedObject::find(other))
}

fn real(function: Function) -> Option<usize> {
    let index = function as usize;
    LIBRARY.real(index, |name| owner(name, hooks()[index]))
}

/// A stream that the group at hand uses.
#[derive(Clone, Copy)]
struct Queued {
    stream: u64,
    context: u64,
    /// The call, if there is only one kind.
    call: HostCall,
}

/// The group at hand of a thread, and whether NCCL itself is running in it.
struct Group {
    inside: Cell<bool>,
    depth: Cell<u32>,
    streams: RefCell<Streams>,
}

struct Streams {
    list: [Queued; MOST_STREAMS],
    count: usize,
}

const NO_STREAM: Queued = Queued { stream: 0, context: 0, call: HostCall::NcclGroupEnd };

thread_local! {
    static GROUP: Group = const {
        Group {
            inside: Cell::new(false),
            depth: Cell::new(0),
            streams: RefCell::new(Streams { list: [NO_STREAM; MOST_STREAMS], count: 0 }),
        }
    };
}

impl Streams {
    /// Notes a call; `None` where there is no room for its stream.
    fn note(&mut self, call: HostCall, stream: u64, context: u64) -> Option<()> {
        let known = self.list[..self.count].iter_mut();
        let found = known.into_iter().find(|q| q.stream == stream && q.context == context);
        match found {
            Some(known) if known.call != call => known.call = HostCall::NcclGroupEnd,
            Some(_) => {}
            None => {
                *self.list.get_mut(self.count)? = Queued { stream, context, call };
                self.count += 1;
            }
        }
        Some(())
    }
}

fn is_inside() -> bool {
    GROUP.with(|group| group.inside.get())
}

/// Calls NCCL; what it calls of itself meanwhile is its own doing.
fn inside<R>(call: impl FnOnce() -> R) -> R {
    GROUP.with(|group| group.inside.set(true));
    let result = call();
    GROUP.with(|group| group.inside.set(false));
    result
}

fn publish_now(call: HostCall, list: &[u64]) -> (u64, u64) {
    let mut published = (0, 0);
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        // Inside a driver call it is not the program's own.
        if thread.depth.get() == 0 {
            thread.busy.set(true);
            let host = publish(thread, &attachment, call, (list.len(), &[]), words(list));
            published = (attachment.number, host);
            thread.busy.set(false);
        }
    });
    published
}

fn returned((number, host): (u64, u64), result: i32) {
    if host == 0 {
        return;
    }
    guarded(|thread| {
        // A forked child returning through its parent's call has nothing to end.
        let Some(attachment) = attach::attachment().filter(|a| a.number == number) else { return };
        thread.busy.set(true);
        let result = if result == 0 || result == IN_PROGRESS { 0 } else { -1 };
        publish_return(thread, &attachment, host, result);
        thread.busy.set(false);
    });
}

/// Ranks of a communicator, and which of them this process is.
#[derive(Clone, Copy)]
struct Ranks {
    count: u64,
    own: i32,
}

/// Addresses of `ncclCommCount` and `ncclCommUserRank`, 0 until looked up.
static QUERIES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Asks `function`'s NCCL for the ranks of a communicator.
fn ranks(function: Function, comm: *mut c_void) -> Option<Ranks> {
    type Query = unsafe extern "C" fn(*mut c_void, *mut i32) -> i32;
    let ask = |query: &AtomicUsize, name: &CStr| {
        let mut address = query.load(Ordering::Acquire);
        if address == 0 {
            address = LoadedObject::containing(real(function)?)?.function(name)?;
            query.store(address, Ordering::Release);
        }
        let mut answer = 0;
        // SAFETY: NCCL's function with its documented signature, the program's communicator.
        let result = inside(|| unsafe {
            let query: Query = core::mem::transmute(address);
            query(comm, &mut answer)
        });
        (result == 0).then_some(answer)
    };
    let count = ask(&QUERIES[0], c"ncclCommCount")?;
    let own = ask(&QUERIES[1], c"ncclCommUserRank")?;
    Some(Ranks { count: u64::try_from(count).ok()?, own })
}

/// The memory that a call sends from and receives into: address and number of elements.
struct Ranges {
    send: Option<(u64, u64)>,
    receive: Option<(u64, u64)>,
}

/// Records a call around `run`. `ranges` says what it touches; `None` where NCCL does not tell how
/// many ranks there are.
fn recorded(
    call: HostCall,
    (kind, stream): (i32, *mut c_void),
    ranges: impl FnOnce() -> Option<Ranges>,
    run: impl FnOnce() -> i32,
) -> i32 {
    if is_inside() || attach::attachment().is_none() {
        return run();
    }
    let errno = thread::errno();
    let (stream, context) = (stream as u64, current_context());
    let mut list = [CollectivePhase::Now as u64, stream, context, 0, 0, 0, 0, 0, 0];
    let mut used = 3;
    let element = usize::try_from(kind).ok().and_then(|kind| ELEMENTS.get(kind)).copied();
    match ranges().zip(element) {
        Some((ranges, element)) => {
            let of = |range: Option<(u64, u64)>, transfer| Some((range?, transfer));
            let both = [of(ranges.send, Transfer::Send), of(ranges.receive, Transfer::Receive)];
            for ((start, count), transfer) in both.into_iter().flatten() {
                let bytes = count.saturating_mul(element);
                list[used..used + 3].copy_from_slice(&[start, bytes, transfer as u64]);
                used += 3;
            }
        }
        None => {
            list[used..used + 3].copy_from_slice(&[0, 0, Transfer::Unknown as u64]);
            used += 3;
        }
    }
    let queued = GROUP.with(|group| {
        group.depth.get() > 0 && group.streams.borrow_mut().note(call, stream, context).is_some()
    });
    thread::set_errno(errno);
    if !queued {
        let span = publish_now(call, &list[..used]);
        let result = inside(run);
        returned(span, result);
        return result;
    }
    let result = inside(run);
    if result == 0 || result == IN_PROGRESS {
        list[0] = CollectivePhase::Queued as u64;
        publish_now(HostCall::NcclQueued, &list[..used]);
    }
    result
}

macro_rules! collective {
    ($name:ident($($arg:ident: $type:ty),*), $call:ident, $kind:ident, $stream:ident,
        |$ranks:ident| $send:expr, $receive:expr, $ask:ident($comm:ident)) => {
        /// # Safety
        /// As NCCL documents.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, expect(non_snake_case, reason = "NCCL's symbol"))]
        unsafe extern "C" fn $name($($arg: $type),*) -> i32 {
            type Real = unsafe extern "C" fn($($type),*) -> i32;
            let Some(real) = real(Function::$name) else { return INTERNAL_ERROR };
            let ranges = || {
                let $ranks = $ask(Function::$name, $comm)?;
                Some(Ranges { send: $send, receive: $receive })
            };
            recorded(HostCall::$call, ($kind, $stream), ranges, || {
                // SAFETY: NCCL's function with its documented signature, the program's arguments.
                unsafe {
                    let real: Real = core::mem::transmute(real);
                    real($($arg),*)
                }
            })
        }
    };
}

/// Stands for [`ranks`] where they do not matter.
fn unasked(_: Function, _: *mut c_void) -> Option<()> {
    Some(())
}

collective!(
    ncclSend(buffer: u64, count: u64, kind: i32, peer: i32, comm: *mut c_void, stream: *mut c_void),
    NcclSend, kind, stream, |_ranks| Some((buffer, count)), None, unasked(comm)
);
collective!(
    ncclRecv(buffer: u64, count: u64, kind: i32, peer: i32, comm: *mut c_void, stream: *mut c_void),
    NcclRecv, kind, stream, |_ranks| None, Some((buffer, count)), unasked(comm)
);
collective!(
    ncclAllReduce(send: u64, receive: u64, count: u64, kind: i32, op: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclAllReduce, kind, stream, |_ranks| Some((send, count)), Some((receive, count)), unasked(comm)
);
collective!(
    ncclBroadcast(send: u64, receive: u64, count: u64, kind: i32, root: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclBroadcast, kind, stream,
    |ranks| (ranks.own == root).then_some((send, count)), Some((receive, count)), ranks(comm)
);
collective!(
    ncclBcast(buffer: u64, count: u64, kind: i32, root: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclBcast, kind, stream,
    |ranks| (ranks.own == root).then_some((buffer, count)),
    (ranks.own != root).then_some((buffer, count)), ranks(comm)
);
collective!(
    ncclReduce(send: u64, receive: u64, count: u64, kind: i32, op: i32, root: i32,
        comm: *mut c_void, stream: *mut c_void),
    NcclReduce, kind, stream,
    |ranks| Some((send, count)), (ranks.own == root).then_some((receive, count)), ranks(comm)
);
collective!(
    ncclAllGather(send: u64, receive: u64, count: u64, kind: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclAllGather, kind, stream,
    |ranks| Some((send, count)), Some((receive, count.saturating_mul(ranks.count))), ranks(comm)
);
collective!(
    ncclReduceScatter(send: u64, receive: u64, count: u64, kind: i32, op: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclReduceScatter, kind, stream,
    |ranks| Some((send, count.saturating_mul(ranks.count))), Some((receive, count)), ranks(comm)
);
collective!(
    ncclAlltoAll(send: u64, receive: u64, count: u64, kind: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclAlltoAll, kind, stream,
    |ranks| Some((send, count.saturating_mul(ranks.count))),
    Some((receive, count.saturating_mul(ranks.count))), ranks(comm)
);
collective!(
    ncclGather(send: u64, receive: u64, count: u64, kind: i32, root: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclGather, kind, stream,
    |ranks| Some((send, count)),
    (ranks.own == root).then_some((receive, count.saturating_mul(ranks.count))), ranks(comm)
);
collective!(
    ncclScatter(send: u64, receive: u64, count: u64, kind: i32, root: i32, comm: *mut c_void,
        stream: *mut c_void),
    NcclScatter, kind, stream,
    |ranks| (ranks.own == root).then_some((send, count.saturating_mul(ranks.count))),
    Some((receive, count)), ranks(comm)
);

/// # Safety
/// As NCCL documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "NCCL's symbol"))]
unsafe extern "C" fn ncclGroupStart() -> i32 {
    let Some(real) = real(Function::ncclGroupStart) else { return INTERNAL_ERROR };
    // SAFETY: NCCL's function with its documented signature.
    let real: unsafe extern "C" fn() -> i32 = unsafe { core::mem::transmute(real) };
    if is_inside() {
        // SAFETY: as above.
        return unsafe { real() };
    }
    // SAFETY: as above.
    let result = inside(|| unsafe { real() });
    if result == 0 {
        GROUP.with(|group| group.depth.set(group.depth.get().saturating_add(1)));
    }
    result
}

/// Ends a group; `carried_out` says whether that carries out what was asked for in it.
fn end_group(carried_out: bool, real: impl FnOnce() -> i32) -> i32 {
    if is_inside() {
        return real();
    }
    let last = GROUP.with(|group| {
        let depth = group.depth.get();
        group.depth.set(depth.saturating_sub(1));
        depth == 1
    });
    let mut spans = [(0, 0); MOST_STREAMS];
    if last {
        let (list, count) = GROUP.with(|group| {
            let mut streams = group.streams.borrow_mut();
            (streams.list, core::mem::take(&mut streams.count))
        });
        let list = &list[..count];
        if list.len() > 1 {
            fences::streams_meet(list.iter().map(|queued| queued.stream));
        }
        for (at, (span, queued)) in spans.iter_mut().zip(list).enumerate() {
            if !carried_out {
                let words = [CollectivePhase::Dropped as u64, queued.stream, queued.context];
                publish_now(HostCall::NcclQueued, &words);
            } else if !list[..at].iter().any(|other| other.context == queued.context) {
                // The group orders the streams of a context with each other: one record for them.
                let mut words = [0; 3 + MOST_STREAMS];
                words[..3].copy_from_slice(&[
                    CollectivePhase::GroupEnd as u64,
                    queued.stream,
                    queued.context,
                ]);
                let (mut used, mut call) = (3, queued.call);
                for other in list[at + 1..].iter().filter(|o| o.context == queued.context) {
                    words[used] = other.stream;
                    used += 1;
                    if other.call != call {
                        call = HostCall::NcclGroupEnd;
                    }
                }
                *span = publish_now(call, &words[..used]);
            }
        }
    }
    let result = inside(real);
    // The innermost record returns first.
    for span in spans.into_iter().rev() {
        returned(span, result);
    }
    result
}

/// # Safety
/// As NCCL documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "NCCL's symbol"))]
unsafe extern "C" fn ncclGroupEnd() -> i32 {
    let Some(real) = real(Function::ncclGroupEnd) else { return INTERNAL_ERROR };
    // SAFETY: NCCL's function with its documented signature.
    let real: unsafe extern "C" fn() -> i32 = unsafe { core::mem::transmute(real) };
    // SAFETY: as above.
    end_group(true, || unsafe { real() })
}

/// Ends a group without carrying it out.
///
/// # Safety
/// As NCCL documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "NCCL's symbol"))]
unsafe extern "C" fn ncclGroupSimulateEnd(info: *mut c_void) -> i32 {
    let Some(real) = real(Function::ncclGroupSimulateEnd) else { return INTERNAL_ERROR };
    // SAFETY: NCCL's function with its documented signature and the program's argument.
    let real: unsafe extern "C" fn(*mut c_void) -> i32 = unsafe { core::mem::transmute(real) };
    // SAFETY: as above.
    end_group(false, || unsafe { real(info) })
}
