//! The meaning of each driver call to the fences.

use core::sync::atomic::{AtomicU8, Ordering};

use streamsan_wire::{Api, ParamKind};

use super::clock::Stream;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The meaning of a call to the fences.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Class {
            $($(#[$doc])* $name,)*
        }

        const CLASSES: &[Class] = &[$(Class::$name,)*];
    };
}

classes! {
    /// Nothing.
    Nothing,
    /// A copy or memset that may run after the call has returned.
    Copy,
    /// A synchronous copy or memset.
    Synchronous,
    Kernel,
    Graph,
    HostFunction,
    /// Anything else that is put into a stream.
    Submission,
    /// It makes its stream wait for something that is not tracked.
    WaitsForAnything,
    /// The same for several streams.
    AllWaitForAnything,
    Record,
    /// A record, or a wait, of all streams of a context.
    RecordContext,
    WaitContext,
    Wait,
    SynchronizeStream,
    SynchronizeEvent,
    Elapsed,
    SynchronizeAll,
    /// The same, and memory goes with it.
    Destroy,
    /// Host memory goes.
    Free,
    Register,
    AttachMemory,
    AllocateHost,
    AllocateManaged,
    FindVariable,
    MakeStream,
    GraphWithEvent,
    /// `(executable, graph...)`
    MakeGraph,
    UpdateGraph,
    ChangeGraph,
    DestroyGraph,
}

static KNOWN: [AtomicU8; Api::COUNT] = [const { AtomicU8::new(u8::MAX) }; Api::COUNT];

/// The class of a call.
#[inline]
pub(super) fn class(api: Api) -> Class {
    let known = &KNOWN[api as usize];
    match CLASSES.get(usize::from(known.load(Ordering::Relaxed))) {
        Some(class) => *class,
        None => {
            let class = classify(api);
            known.store(class as u8, Ordering::Relaxed);
            class
        }
    }
}

#[cold]
fn classify(api: Api) -> Class {
    let full = api.name();
    let base = full.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    let name =
        ["_v2", "_v3", "_v4"].iter().fold(base, |name, v| name.strip_suffix(v).unwrap_or(name));
    let asynchronous = name.contains("Async");
    match name {
        _ if name.starts_with("cuMemcpy") && name.contains("Peer") => {
            if asynchronous {
                Class::WaitsForAnything
            } else {
                Class::SynchronizeAll
            }
        }
        "cuMemBatchDecompressAsync" => Class::Submission,
        _ if name.starts_with("cuMemcpy") || name.starts_with("cuMemsetD") => {
            if asynchronous {
                Class::Copy
            } else {
                Class::Synchronous
            }
        }
        "cuLaunchKernel" | "cuLaunchKernelEx" | "cuLaunchCooperativeKernel" => Class::Kernel,
        "cuLaunch" | "cuLaunchGrid" | "cuLaunchGridAsync" => Class::Submission,
        "cuLaunchCooperativeKernelMultiDevice" => Class::AllWaitForAnything,
        "cuLaunchHostFunc" | "cuStreamAddCallback" => Class::HostFunction,
        "cuGraphLaunch" => Class::Graph,
        "cuEventRecord" | "cuEventRecordWithFlags" => Class::Record,
        "cuCtxRecordEvent" | "cuGreenCtxRecordEvent" => Class::RecordContext,
        "cuCtxWaitEvent" | "cuGreenCtxWaitEvent" => Class::WaitContext,
        "cuStreamWaitEvent" => Class::Wait,
        "cuStreamSynchronize" | "cuStreamQuery" => Class::SynchronizeStream,
        "cuEventSynchronize" | "cuEventQuery" => Class::SynchronizeEvent,
        "cuEventElapsedTime" => Class::Elapsed,
        "cuCtxSynchronize" => Class::SynchronizeAll,
        "cuCtxDestroy"
        | "cuCtxDetach"
        | "cuGreenCtxDestroy"
        | "cuDevicePrimaryCtxReset"
        | "cuDevicePrimaryCtxRelease" => Class::Destroy,
        "cuStreamWaitValue32"
        | "cuStreamWaitValue64"
        | "cuStreamBatchMemOp"
        | "cuWaitExternalSemaphoresAsync" => Class::WaitsForAnything,
        "cuMemFreeHost" | "cuMemFree" | "cuMemHostUnregister" => Class::Free,
        "cuMemHostRegister" => Class::Register,
        "cuStreamAttachMemAsync" => Class::AttachMemory,
        "cuMemAllocHost" | "cuMemHostAlloc" => Class::AllocateHost,
        "cuMemAllocManaged" => Class::AllocateManaged,
        "cuModuleGetGlobal" | "cuLibraryGetManaged" | "cuLibraryGetGlobal" => Class::FindVariable,
        "cuStreamCreate" | "cuStreamCreateWithPriority" | "cuGreenCtxStreamCreate" => {
            Class::MakeStream
        }
        "cuGraphAddEventRecordNode" | "cuGraphExecEventRecordNodeSetEvent" => Class::GraphWithEvent,
        "cuGraphExecUpdate" => Class::UpdateGraph,
        "cuGraphExecDestroy" => Class::DestroyGraph,
        _ if name.starts_with("cuGraphInstantiate") => Class::MakeGraph,
        _ if name.starts_with("cuGraphExec") => Class::ChangeGraph,
        _ if stream_index(api).is_some() => Class::Submission,
        _ => Class::Nothing,
    }
}

/// Which parameter is the stream, by what [`where_stream`] says, once it was asked.
static STREAMS: [AtomicU8; Api::COUNT] = [const { AtomicU8::new(u8::MAX) }; Api::COUNT];

/// A bit of what is kept there: the default stream is the calling thread's.
const PER_THREAD: u8 = 0x80;
/// The stream stands in a `CUlaunchConfig`, whose parameter's number is in the other bits.
const IN_CONFIG: u8 = 0x40;
/// No parameter is one.
const NOWHERE: u8 = 0x3f;

fn where_stream(api: Api) -> u8 {
    let known = STREAMS[api as usize].load(Ordering::Relaxed);
    if known != u8::MAX {
        return known;
    }
    let params = api.signature().params;
    let config = || params.iter().position(|param| param.kind == ParamKind::LaunchConfig);
    let place = match (stream_index(api), config()) {
        (Some(index), _) => index as u8,
        (None, Some(index)) => index as u8 | IN_CONFIG,
        _ => NOWHERE,
    };
    let per_thread = api.name().ends_with("_ptsz") || api.name().ends_with("_ptds");
    let place = place | if per_thread { PER_THREAD } else { 0 };
    STREAMS[api as usize].store(place, Ordering::Relaxed);
    place
}

fn stream_index(api: Api) -> Option<usize> {
    let signature = api.signature();
    signature.index_of("hStream").or_else(|| signature.index_of("stream"))
}

/// Where `CUlaunchConfig` keeps the stream.
const CONFIG_STREAM: usize = 32;

/// The stream that a call is about: the default stream where it names none.
pub(super) fn stream(api: Api, words: &[u64]) -> Stream {
    let place = where_stream(api);
    let per_thread = place & PER_THREAD != 0;
    let index = place & NOWHERE;
    let word = words.get(usize::from(index)).copied().filter(|_| index != NOWHERE);
    let handle = word.and_then(|word| {
        if place & IN_CONFIG == 0 {
            return Some(word);
        }
        let at = word as *const u8;
        // SAFETY: the driver reads this structure too.
        (!at.is_null()).then(|| unsafe { at.add(CONFIG_STREAM).cast::<u64>().read_unaligned() })
    });
    match handle.unwrap_or(0) {
        0 if !per_thread => Stream::Legacy,
        1 => Stream::Legacy,
        // SAFETY: no preconditions.
        0 | 2 => Stream::PerThread(unsafe { libc::pthread_self() }),
        handle => Stream::Handle(handle),
    }
}

/// Whether the stream's name is one of a per-thread default stream's calls.
pub(super) fn is_per_thread(api: Api) -> bool {
    api.name().ends_with("_ptsz")
}

/// The handle that a call names its stream by.
pub(super) fn handle(api: Api, words: &[u64]) -> u64 {
    match stream(api, words) {
        Stream::Handle(handle) => handle,
        Stream::Legacy => 1,
        Stream::PerThread(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_means_what_its_base_means() {
        for api in Api::ALL {
            for twin in ["_ptsz", "_ptds"] {
                let base = api.name().strip_suffix(twin);
                let base = base.and_then(|name| Api::ALL.iter().find(|api| api.name() == name));
                if let Some(base) = base {
                    assert_eq!(class(*api), class(*base), "{}", api.name());
                }
            }
        }
    }

    #[test]
    fn each_call_names_its_stream_where_its_signature_says() {
        let words = [0u64, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x7777];
        for api in Api::ALL {
            let config = api.signature().params.iter().any(|p| p.kind == ParamKind::LaunchConfig);
            let place = where_stream(*api);
            assert_eq!(place & IN_CONFIG != 0, config && stream_index(*api).is_none());
            if let Some(index) = stream_index(*api).filter(|index| (1..8).contains(index)) {
                let named = Stream::Handle(words[index]);
                // Once found out, and once kept.
                assert_eq!((stream(*api, &words), stream(*api, &words)), (named, named));
            }
        }
        assert_eq!(stream(Api::cuCtxSynchronize, &[]), Stream::Legacy);
        assert!(matches!(stream(Api::cuMemcpyDtoH_v2_ptds, &[0, 0, 0]), Stream::PerThread(_)));
    }

    #[test]
    fn calls_that_make_the_host_wait_are_known() {
        for (api, wanted) in [
            (Api::cuMemcpyDtoHAsync_v2_ptsz, Class::Copy),
            (Api::cuMemcpyDtoH_v2, Class::Synchronous),
            (Api::cuMemsetD32_v2_ptds, Class::Synchronous),
            (Api::cuMemsetD2D8Async, Class::Copy),
            (Api::cuStreamWaitEvent_ptsz, Class::Wait),
            (Api::cuStreamWaitValue32_v2_ptsz, Class::WaitsForAnything),
            (Api::cuEventElapsedTime_v2, Class::Elapsed),
            (Api::cuMemFree_v2, Class::Free),
            (Api::cuCtxSynchronize_v2, Class::SynchronizeAll),
            (Api::cuMemPrefetchAsync, Class::Submission),
            (Api::cuMemcpyPeerAsync, Class::WaitsForAnything),
        ] {
            assert_eq!(class(api), wanted, "{}", api.name());
        }
    }
}
