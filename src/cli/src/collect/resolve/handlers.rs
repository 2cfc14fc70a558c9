//! Which driver call is resolved how: one line a call.

use super::lookup::Lookup;
use super::{capture, contexts, copies, launches, lifetimes};
use streamsan_model::Action;
use streamsan_wire::Api;

/// Resolves one call; `None` when there is nothing more to say about it than that it was made.
pub(super) type Handler = fn(&mut Lookup<'_>) -> Option<Action>;

/// How a call is resolved.
#[derive(Clone, Copy)]
pub(super) struct Treatment {
    pub(super) handler: Handler,
    /// Whether its meaning lies in what it returns, so that it cannot be handed over while it runs.
    pub(super) needs_return: bool,
    /// Whether its effect is modelled.
    pub(super) understood: bool,
}

/// Resolved from the parameters alone.
const fn at_entry(base: &'static str, handler: Handler) -> (&'static str, Treatment) {
    (base, Treatment { handler, needs_return: false, understood: true })
}

/// Resolved from what it returns.
const fn at_return(base: &'static str, handler: Handler) -> (&'static str, Treatment) {
    (base, Treatment { handler, needs_return: true, understood: true })
}

/// Calls by name, without version and per-thread suffix.
const CALLS: &[(&str, Treatment)] = &[
    at_return("cuCtxCreate", contexts::create),
    at_entry("cuCtxDestroy", contexts::destroy),
    at_entry("cuCtxSynchronize", contexts::synchronize),
    at_entry("cuCtxRecordEvent", contexts::record_event),
    at_entry("cuCtxWaitEvent", contexts::wait_event),
    at_entry("cuCtxPushCurrent", nothing),
    at_entry("cuCtxPopCurrent", nothing),
    at_entry("cuCtxSetCurrent", nothing),
    at_return("cuDevicePrimaryCtxRetain", contexts::primary_retain),
    at_entry("cuDevicePrimaryCtxRelease", contexts::primary_release),
    at_entry("cuDevicePrimaryCtxReset", contexts::primary_reset),
    //
    at_return("cuStreamCreate", contexts::stream_create),
    at_return("cuStreamCreateWithPriority", contexts::stream_create),
    at_return("cuGreenCtxStreamCreate", contexts::green_stream_create),
    at_entry("cuStreamDestroy", contexts::stream_destroy),
    at_entry("cuStreamSynchronize", |l| {
        Some(Action::StreamSynchronize { stream: l.stream(l.call.arg(0))? })
    }),
    at_entry("cuStreamQuery", |l| Some(Action::StreamQuery { stream: l.stream(l.call.arg(0))? })),
    at_entry("cuStreamWaitEvent", capture::stream_wait),
    at_return("cuStreamBeginCapture", capture::begin),
    at_return("cuStreamBeginCaptureToGraph", capture::begin),
    at_return("cuStreamEndCapture", capture::end),
    //
    at_return("cuEventCreate", contexts::event_create),
    at_entry("cuEventDestroy", contexts::event_destroy),
    at_entry("cuEventRecord", capture::event_record),
    at_entry("cuEventRecordWithFlags", capture::event_record),
    at_entry("cuEventQuery", |l| Some(Action::EventQuery { event: l.event(l.call.arg(0))? })),
    at_entry("cuEventSynchronize", |l| {
        Some(Action::EventSynchronize { event: l.event(l.call.arg(0))? })
    }),
    at_entry("cuEventElapsedTime", |l| {
        let start = l.event(l.call.arg(1))?;
        Some(Action::EventElapsedTime { start, end: l.event(l.call.arg(2))? })
    }),
    //
    at_return("cuMemAlloc", lifetimes::alloc),
    at_return("cuMemAllocPitch", lifetimes::alloc_pitch),
    at_return("cuMemAllocManaged", lifetimes::alloc_managed),
    at_return("cuMemAllocHost", lifetimes::alloc_host),
    at_return("cuMemHostAlloc", lifetimes::alloc_host),
    at_entry("cuMemHostRegister", lifetimes::host_register),
    at_return("cuMemHostGetDevicePointer", lifetimes::host_alias),
    at_return("cuMemAllocAsync", |l| lifetimes::alloc_async(l, 2)),
    at_return("cuMemAllocFromPoolAsync", |l| lifetimes::alloc_async(l, 3)),
    at_entry("cuMemFree", lifetimes::free),
    at_entry("cuMemFreeHost", lifetimes::free),
    at_entry("cuMemHostUnregister", lifetimes::free),
    at_entry("cuMemFreeAsync", lifetimes::free_async),
    at_return("cuModuleGetGlobal", lifetimes::global),
    at_return("cuLibraryGetGlobal", lifetimes::global),
    at_return("cuLibraryGetManaged", lifetimes::global),
    at_entry("cuModuleUnload", lifetimes::unload),
    at_entry("cuLibraryUnload", lifetimes::unload),
    at_entry("cuModuleLoad", nothing),
    at_entry("cuModuleLoadData", nothing),
    at_entry("cuModuleLoadDataEx", nothing),
    at_entry("cuModuleLoadFatBinary", nothing),
    at_entry("cuModuleGetFunction", nothing),
    at_entry("cuLibraryLoadData", nothing),
    at_entry("cuLibraryLoadFromFile", nothing),
    at_entry("cuLibraryGetKernel", nothing),
    at_entry("cuLibraryGetModule", nothing),
    at_entry("cuKernelGetFunction", nothing),
    //
    at_entry("cuMemcpy", |l| copies::linear(l, copies::ANY, copies::ANY, None)),
    at_entry("cuMemcpyAsync", |l| copies::linear(l, copies::ANY, copies::ANY, Some(3))),
    at_entry("cuMemcpyHtoD", |l| copies::linear(l, copies::DEVICE, copies::HOST, None)),
    at_entry("cuMemcpyHtoDAsync", |l| copies::linear(l, copies::DEVICE, copies::HOST, Some(3))),
    at_entry("cuMemcpyDtoH", |l| copies::linear(l, copies::HOST, copies::DEVICE, None)),
    at_entry("cuMemcpyDtoHAsync", |l| copies::linear(l, copies::HOST, copies::DEVICE, Some(3))),
    at_entry("cuMemcpyDtoD", |l| copies::linear(l, copies::DEVICE, copies::DEVICE, None)),
    at_entry("cuMemcpyDtoDAsync", |l| copies::linear(l, copies::DEVICE, copies::DEVICE, Some(3))),
    at_entry("cuMemcpyPeer", |l| copies::peer(l, None)),
    at_entry("cuMemcpyPeerAsync", |l| copies::peer(l, Some(5))),
    at_entry("cuMemcpyDtoA", |l| copies::array(l, None, Some((2, copies::DEVICE)), 3, None)),
    at_entry("cuMemcpyAtoD", |l| copies::array(l, Some((0, copies::DEVICE)), None, 3, None)),
    at_entry("cuMemcpyHtoA", |l| copies::array(l, None, Some((2, copies::HOST)), 3, None)),
    at_entry("cuMemcpyHtoAAsync", |l| copies::array(l, None, Some((2, copies::HOST)), 3, Some(4))),
    at_entry("cuMemcpyAtoH", |l| copies::array(l, Some((0, copies::HOST)), None, 3, None)),
    at_entry("cuMemcpyAtoHAsync", |l| copies::array(l, Some((0, copies::HOST)), None, 3, Some(4))),
    at_entry("cuMemcpyAtoA", |l| copies::array(l, None, None, 4, None)),
    at_entry("cuMemcpy2D", |l| copies::descriptor(l, copies::Form::Flat, None)),
    at_entry("cuMemcpy2DUnaligned", |l| copies::descriptor(l, copies::Form::Flat, None)),
    at_entry("cuMemcpy2DAsync", |l| copies::descriptor(l, copies::Form::Flat, Some(1))),
    at_entry("cuMemcpy3D", |l| copies::descriptor(l, copies::Form::Deep, None)),
    at_entry("cuMemcpy3DAsync", |l| copies::descriptor(l, copies::Form::Deep, Some(1))),
    at_entry("cuMemcpy3DPeer", |l| copies::descriptor(l, copies::Form::Peer, None)),
    at_entry("cuMemcpy3DPeerAsync", |l| copies::descriptor(l, copies::Form::Peer, Some(1))),
    //
    at_entry("cuMemsetD8", |l| copies::memset(l, 1, None)),
    at_entry("cuMemsetD16", |l| copies::memset(l, 2, None)),
    at_entry("cuMemsetD32", |l| copies::memset(l, 4, None)),
    at_entry("cuMemsetD8Async", |l| copies::memset(l, 1, Some(3))),
    at_entry("cuMemsetD16Async", |l| copies::memset(l, 2, Some(3))),
    at_entry("cuMemsetD32Async", |l| copies::memset(l, 4, Some(3))),
    at_entry("cuMemsetD2D8", |l| copies::memset_rows(l, 1, None)),
    at_entry("cuMemsetD2D16", |l| copies::memset_rows(l, 2, None)),
    at_entry("cuMemsetD2D32", |l| copies::memset_rows(l, 4, None)),
    at_entry("cuMemsetD2D8Async", |l| copies::memset_rows(l, 1, Some(5))),
    at_entry("cuMemsetD2D16Async", |l| copies::memset_rows(l, 2, Some(5))),
    at_entry("cuMemsetD2D32Async", |l| copies::memset_rows(l, 4, Some(5))),
    //
    at_entry("cuLaunchKernel", |l| launches::kernel(l, false)),
    at_entry("cuLaunchCooperativeKernel", |l| launches::kernel(l, true)),
    at_entry("cuLaunchKernelEx", launches::extended),
    at_entry("cuLaunchHostFunc", launches::host_function),
    at_entry("cuStreamAddCallback", launches::host_function),
];

/// A call without ordering and without accesses.
fn nothing(_: &mut Lookup<'_>) -> Option<Action> {
    None
}

/// How a hooked call is resolved, and whether it is a per-thread twin.
pub(super) fn treatment(api: Api) -> (Treatment, bool) {
    let name = api.name();
    let plain = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
    let base = without_version(plain.unwrap_or(name));
    let found = CALLS.iter().find(|(call, _)| *call == base).map(|(_, treatment)| *treatment);
    let unknown = Treatment { handler: nothing, needs_return: false, understood: false };
    (found.unwrap_or(unknown), plain.is_some())
}

fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, version)) if version.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_twins_share_a_line() {
        for (name, base) in [
            ("cuMemcpyHtoD_v2", "cuMemcpyHtoD"),
            ("cuMemcpy", "cuMemcpy"),
            ("cuCtxCreate_v4", "cuCtxCreate"),
        ] {
            assert_eq!(without_version(name), base);
        }
        let (_, twin) = treatment(Api::cuLaunchKernel_ptsz);
        assert!(twin);
    }

    /// A hook without a line would be recorded and then forgotten.
    #[test]
    fn every_hooked_call_has_a_line() {
        for &api in Api::ALL {
            // Deprecated since CUDA 4.0, and gone from its headers: the verdict is INCOMPLETE.
            let counted = ["cuCtxAttach", "cuCtxDetach"].contains(&api.name());
            let (treatment, _) = treatment(api);
            assert_eq!(treatment.understood, !counted, "{}", api.name());
        }
    }

    #[test]
    fn no_line_is_for_a_call_that_does_not_exist() {
        for (base, _) in CALLS {
            let exists = Api::ALL.iter().any(|api| {
                let name = api.name();
                let plain = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
                without_version(plain.unwrap_or(name)) == *base
            });
            assert!(exists, "{base}");
        }
    }
}
