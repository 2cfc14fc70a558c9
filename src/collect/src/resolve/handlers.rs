//! Which driver call is resolved how: one line a call.

use super::copies::Linear;
use super::resolution::Resolution;
use super::{
    arrays, batches, capture, contexts, copies, graphs, launches, lifetimes, managed, mappings,
    members, modules, sharing, signals, sync_memops, tensor_maps, textures,
};
use streamsan_model::{Action, Mode};
use streamsan_wire::Api;

/// Resolves one call; `None` when there is nothing more to say about it than that it was made.
pub(super) type Handler = fn(&mut Resolution<'_>) -> Option<Action>;

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

/// Which parameters name the ends of a copy with an array.
const A0: Linear = Linear::Array(0);
const A1: Linear = Linear::Array(1);
const A2: Linear = Linear::Array(2);
const D0: Linear = Linear::Address(copies::DEVICE, 0);
const D2: Linear = Linear::Address(copies::DEVICE, 2);
const H0: Linear = Linear::Address(copies::HOST, 0);
const H2: Linear = Linear::Address(copies::HOST, 2);

/// Calls by name, without version and per-thread suffix.
const CALLS: &[(&str, Treatment)] = &[
    at_return("cuCtxCreate", contexts::create),
    at_entry("cuCtxDestroy", contexts::destroy),
    at_entry("cuCtxSynchronize", contexts::synchronize),
    at_entry("cuCtxRecordEvent", contexts::record_event),
    at_entry("cuCtxWaitEvent", contexts::wait_event),
    at_entry("cuCtxSetFlags", sync_memops::set_flags),
    at_entry("cuDevicePrimaryCtxSetFlags", sync_memops::set_primary_flags),
    at_return("cuGreenCtxCreate", contexts::green_create),
    at_entry("cuGreenCtxDestroy", contexts::green_destroy),
    at_return("cuCtxFromGreenCtx", contexts::from_green),
    at_entry("cuGreenCtxRecordEvent", contexts::green_record_event),
    at_entry("cuGreenCtxWaitEvent", contexts::green_wait_event),
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
    at_entry("cuStreamSynchronize", |resolution| {
        Some(Action::StreamSynchronize { stream: resolution.stream(resolution.call.arg(0))? })
    }),
    at_entry("cuStreamQuery", |resolution| {
        Some(Action::StreamQuery { stream: resolution.stream(resolution.call.arg(0))? })
    }),
    at_entry("cuStreamWaitEvent", capture::stream_wait),
    at_entry("cuStreamWriteValue32", |resolution| signals::write_value(resolution, 4)),
    at_entry("cuStreamWriteValue64", |resolution| signals::write_value(resolution, 8)),
    at_entry("cuStreamWaitValue32", |resolution| signals::wait_value(resolution, 4)),
    at_entry("cuStreamWaitValue64", |resolution| signals::wait_value(resolution, 8)),
    at_entry("cuStreamBatchMemOp", signals::batch),
    at_return("cuImportExternalSemaphore", signals::import),
    at_entry("cuDestroyExternalSemaphore", signals::destroy),
    at_entry("cuSignalExternalSemaphoresAsync", |resolution| signals::semaphores(resolution, true)),
    at_entry("cuWaitExternalSemaphoresAsync", |resolution| signals::semaphores(resolution, false)),
    at_return("cuStreamBeginCapture", capture::begin),
    at_return("cuStreamBeginCaptureToGraph", capture::begin),
    at_return("cuStreamEndCapture", capture::end),
    //
    at_return("cuEventCreate", contexts::event_create),
    at_entry("cuEventDestroy", contexts::event_destroy),
    at_entry("cuEventRecord", capture::event_record),
    at_entry("cuEventRecordWithFlags", capture::event_record),
    at_entry("cuEventQuery", |resolution| {
        Some(Action::EventQuery { event: resolution.event(resolution.call.arg(0))? })
    }),
    at_entry("cuEventSynchronize", |resolution| {
        Some(Action::EventSynchronize { event: resolution.event(resolution.call.arg(0))? })
    }),
    at_entry("cuEventElapsedTime", |resolution| {
        let start = resolution.event(resolution.call.arg(1))?;
        Some(Action::EventElapsedTime { start, end: resolution.event(resolution.call.arg(2))? })
    }),
    //
    at_return("cuMemAlloc", lifetimes::alloc),
    at_return("cuMemAllocPitch", lifetimes::alloc_pitch),
    at_return("cuMemAllocManaged", lifetimes::alloc_managed),
    at_return("cuMemAllocHost", lifetimes::alloc_host),
    at_return("cuMemHostAlloc", lifetimes::alloc_host),
    at_entry("cuMemHostRegister", lifetimes::host_register),
    at_return("cuMemHostGetDevicePointer", sharing::host_alias),
    at_return("cuMemAllocAsync", |resolution| lifetimes::alloc_async(resolution, 2)),
    at_return("cuMemAllocFromPoolAsync", |resolution| lifetimes::alloc_async(resolution, 3)),
    at_entry("cuMemFree", lifetimes::free),
    at_entry("cuMemFreeHost", lifetimes::free),
    at_entry("cuMemHostUnregister", lifetimes::free),
    at_entry("cuMemFreeAsync", lifetimes::free_async),
    at_return("cuModuleGetGlobal", lifetimes::global),
    at_return("cuLibraryGetGlobal", lifetimes::global),
    at_return("cuLibraryGetManaged", lifetimes::global),
    at_entry("cuModuleUnload", lifetimes::unload),
    at_entry("cuLibraryUnload", lifetimes::unload),
    at_return("cuModuleLoad", modules::load),
    at_return("cuModuleLoadData", modules::load),
    at_return("cuModuleLoadDataEx", modules::load),
    at_return("cuModuleLoadFatBinary", modules::load),
    at_return("cuModuleGetFunction", |resolution| {
        textures::function(resolution);
        modules::function(resolution)
    }),
    at_return("cuLibraryLoadData", modules::load),
    at_return("cuLibraryLoadFromFile", modules::load),
    at_return("cuLibraryGetKernel", modules::function),
    at_return("cuLibraryGetModule", modules::module_of_library),
    at_return("cuKernelGetFunction", modules::function_of_kernel),
    //
    at_return("cuMemAddressReserve", mappings::reserve),
    at_entry("cuMemAddressFree", mappings::unreserve),
    at_return("cuMemCreate", mappings::create),
    at_return("cuMulticastCreate", mappings::multicast),
    at_return("cuMemRetainAllocationHandle", mappings::retain),
    at_return("cuMemExportToShareableHandle", mappings::export),
    at_return("cuMemImportFromShareableHandle", mappings::import),
    at_entry("cuMemMap", mappings::map),
    at_entry("cuMemUnmap", mappings::unmap),
    at_return("cuIpcGetMemHandle", sharing::export_memory),
    at_return("cuIpcOpenMemHandle", sharing::import_memory),
    at_entry("cuIpcCloseMemHandle", sharing::close),
    at_return("cuIpcGetEventHandle", sharing::export_event),
    at_return("cuIpcOpenEventHandle", sharing::import_event),
    at_return("cuMemPoolExportPointer", sharing::export_memory),
    at_return("cuMemPoolImportPointer", sharing::import_memory),
    at_return("cuImportExternalMemory", sharing::import_external),
    at_return("cuExternalMemoryGetMappedBuffer", sharing::external_buffer),
    at_return("cuExternalMemoryGetMappedMipmappedArray", sharing::external_array),
    at_entry("cuDestroyExternalMemory", sharing::destroy_external),
    at_entry("cuMemPrefetchAsync", managed::prefetch),
    at_entry("cuMemPrefetchBatchAsync", managed::prefetch_batch),
    at_entry("cuMemDiscardBatchAsync", managed::discard_batch),
    at_entry("cuMemDiscardAndPrefetchBatchAsync", managed::discard_batch),
    at_entry("cuStreamAttachMemAsync", managed::attach),
    at_entry("cuPointerSetAttribute", sync_memops::set_attribute),
    at_return("cuArrayCreate", |resolution| arrays::create(resolution, 2)),
    at_return("cuArray3DCreate", |resolution| arrays::create(resolution, 3)),
    at_entry("cuArrayDestroy", arrays::destroy),
    at_return("cuMipmappedArrayCreate", arrays::create_mipmapped),
    at_return("cuMipmappedArrayGetLevel", arrays::level),
    at_entry("cuMipmappedArrayDestroy", arrays::destroy_mipmapped),
    at_return("cuTexObjectCreate", textures::create_texture),
    at_return("cuSurfObjectCreate", textures::create_surface),
    at_entry("cuTexObjectDestroy", textures::destroy),
    at_entry("cuSurfObjectDestroy", textures::destroy),
    at_return("cuModuleGetTexRef", textures::reference),
    at_return("cuModuleGetSurfRef", textures::reference),
    at_entry("cuTexRefSetArray", |resolution| textures::bind_array(resolution, Mode::Read)),
    at_entry("cuTexRefSetMipmappedArray", |resolution| {
        textures::bind_array(resolution, Mode::Read)
    }),
    at_entry("cuSurfRefSetArray", |resolution| textures::bind_array(resolution, Mode::MayWrite)),
    at_entry("cuTexRefSetAddress", textures::bind_address),
    at_entry("cuTexRefSetAddress2D", textures::bind_pitched),
    at_return("cuTensorMapEncodeTiled", |resolution| tensor_maps::encode(resolution, 8)),
    at_return("cuTensorMapEncodeIm2col", |resolution| tensor_maps::encode(resolution, 11)),
    at_return("cuTensorMapEncodeIm2colWide", |resolution| tensor_maps::encode(resolution, 11)),
    at_return("cuTensorMapReplaceAddress", tensor_maps::replace_address),
    //
    at_entry("cuMemcpyWithAttributesAsync", batches::with_attributes),
    at_entry("cuMemcpy3DWithAttributesAsync", batches::box_with_attributes),
    at_entry("cuMemcpyBatchAsync", batches::linear_batch),
    at_entry("cuMemcpy3DBatchAsync", batches::box_batch),
    at_entry("cuMemBatchDecompressAsync", batches::decompress),
    at_entry("cuMemcpy", |resolution| copies::linear(resolution, copies::ANY, copies::ANY, None)),
    at_entry("cuMemcpyAsync", |resolution| {
        copies::linear(resolution, copies::ANY, copies::ANY, Some(3))
    }),
    at_entry("cuMemcpyHtoD", |resolution| {
        copies::linear(resolution, copies::DEVICE, copies::HOST, None)
    }),
    at_entry("cuMemcpyHtoDAsync", |resolution| {
        copies::linear(resolution, copies::DEVICE, copies::HOST, Some(3))
    }),
    at_entry("cuMemcpyDtoH", |resolution| {
        copies::linear(resolution, copies::HOST, copies::DEVICE, None)
    }),
    at_entry("cuMemcpyDtoHAsync", |resolution| {
        copies::linear(resolution, copies::HOST, copies::DEVICE, Some(3))
    }),
    at_entry("cuMemcpyDtoD", |resolution| {
        copies::linear(resolution, copies::DEVICE, copies::DEVICE, None)
    }),
    at_entry("cuMemcpyDtoDAsync", |resolution| {
        copies::linear(resolution, copies::DEVICE, copies::DEVICE, Some(3))
    }),
    at_entry("cuMemcpyPeer", |resolution| copies::peer(resolution, None)),
    at_entry("cuMemcpyPeerAsync", |resolution| copies::peer(resolution, Some(5))),
    at_entry("cuMemcpyDtoA", |resolution| copies::array(resolution, A0, D2, 3, None)),
    at_entry("cuMemcpyAtoD", |resolution| copies::array(resolution, D0, A1, 3, None)),
    at_entry("cuMemcpyHtoA", |resolution| copies::array(resolution, A0, H2, 3, None)),
    at_entry("cuMemcpyHtoAAsync", |resolution| copies::array(resolution, A0, H2, 3, Some(4))),
    at_entry("cuMemcpyAtoH", |resolution| copies::array(resolution, H0, A1, 3, None)),
    at_entry("cuMemcpyAtoHAsync", |resolution| copies::array(resolution, H0, A1, 3, Some(4))),
    at_entry("cuMemcpyAtoA", |resolution| copies::array(resolution, A0, A2, 4, None)),
    at_entry("cuMemcpy2D", |resolution| copies::descriptor(resolution, copies::Form::Flat, None)),
    at_entry("cuMemcpy2DUnaligned", |resolution| {
        copies::descriptor(resolution, copies::Form::Flat, None)
    }),
    at_entry("cuMemcpy2DAsync", |resolution| {
        copies::descriptor(resolution, copies::Form::Flat, Some(1))
    }),
    at_entry("cuMemcpy3D", |resolution| copies::descriptor(resolution, copies::Form::Deep, None)),
    at_entry("cuMemcpy3DAsync", |resolution| {
        copies::descriptor(resolution, copies::Form::Deep, Some(1))
    }),
    at_entry("cuMemcpy3DPeer", |resolution| {
        copies::descriptor(resolution, copies::Form::Peer, None)
    }),
    at_entry("cuMemcpy3DPeerAsync", |resolution| {
        copies::descriptor(resolution, copies::Form::Peer, Some(1))
    }),
    //
    at_entry("cuMemsetD8", |resolution| copies::memset(resolution, 1, None)),
    at_entry("cuMemsetD16", |resolution| copies::memset(resolution, 2, None)),
    at_entry("cuMemsetD32", |resolution| copies::memset(resolution, 4, None)),
    at_entry("cuMemsetD8Async", |resolution| copies::memset(resolution, 1, Some(3))),
    at_entry("cuMemsetD16Async", |resolution| copies::memset(resolution, 2, Some(3))),
    at_entry("cuMemsetD32Async", |resolution| copies::memset(resolution, 4, Some(3))),
    at_entry("cuMemsetD2D8", |resolution| copies::memset_rows(resolution, 1, None)),
    at_entry("cuMemsetD2D16", |resolution| copies::memset_rows(resolution, 2, None)),
    at_entry("cuMemsetD2D32", |resolution| copies::memset_rows(resolution, 4, None)),
    at_entry("cuMemsetD2D8Async", |resolution| copies::memset_rows(resolution, 1, Some(5))),
    at_entry("cuMemsetD2D16Async", |resolution| copies::memset_rows(resolution, 2, Some(5))),
    at_entry("cuMemsetD2D32Async", |resolution| copies::memset_rows(resolution, 4, Some(5))),
    //
    at_entry("cuLaunchKernel", |resolution| launches::kernel(resolution, false)),
    at_entry("cuLaunchCooperativeKernel", |resolution| launches::kernel(resolution, true)),
    at_entry("cuLaunchKernelEx", launches::extended),
    at_entry("cuLaunchCooperativeKernelMultiDevice", members::multi_device),
    at_entry("cuLaunch", members::in_default_stream),
    at_entry("cuLaunchGrid", members::in_default_stream),
    at_entry("cuLaunchGridAsync", members::in_stream),
    at_entry("cuParamSetSize", members::set_size),
    at_entry("cuParamSeti", members::set_word),
    at_entry("cuParamSetv", members::set_bytes),
    at_entry("cuParamSetTexRef", textures::give),
    at_entry("cuLaunchHostFunc", launches::host_function),
    at_entry("cuStreamAddCallback", launches::host_function),
    //
    at_return("cuStreamBeginRecaptureToGraph", capture::begin),
    at_entry("cuStreamUpdateCaptureDependencies", nothing),
    at_return("cuGraphAddKernelNode", graphs::add_node),
    at_return("cuGraphAddMemcpyNode", graphs::add_node),
    at_return("cuGraphAddMemsetNode", graphs::add_node),
    at_return("cuGraphAddHostNode", graphs::add_node),
    at_return("cuGraphAddChildGraphNode", graphs::add_node),
    at_return("cuGraphAddEmptyNode", graphs::add_node),
    at_return("cuGraphAddEventRecordNode", graphs::add_node),
    at_return("cuGraphAddEventWaitNode", graphs::add_node),
    at_return("cuGraphAddExternalSemaphoresSignalNode", graphs::add_node),
    at_return("cuGraphAddExternalSemaphoresWaitNode", graphs::add_node),
    at_return("cuGraphAddBatchMemOpNode", graphs::add_node),
    at_return("cuGraphAddMemAllocNode", graphs::add_node),
    at_return("cuGraphAddMemFreeNode", graphs::add_node),
    at_return("cuGraphAddNode", graphs::add_node),
    at_return("cuGraphClone", graphs::clone),
    at_return("cuGraphInstantiate", graphs::instantiate),
    at_return("cuGraphInstantiateWithFlags", graphs::instantiate_with_flags),
    at_return("cuGraphInstantiateWithParams", graphs::instantiate_with_params),
    at_return("cuGraphExecUpdate", graphs::update),
    at_return("cuGraphExecKernelNodeSetParams", graphs::set_params),
    at_return("cuGraphExecMemcpyNodeSetParams", graphs::set_params),
    at_return("cuGraphExecMemsetNodeSetParams", graphs::set_params),
    at_return("cuGraphExecHostNodeSetParams", graphs::set_params),
    at_return("cuGraphExecExternalSemaphoresSignalNodeSetParams", graphs::set_params),
    at_return("cuGraphExecExternalSemaphoresWaitNodeSetParams", graphs::set_params),
    at_return("cuGraphExecBatchMemOpNodeSetParams", graphs::set_params),
    at_return("cuGraphExecNodeSetParams", graphs::set_params),
    at_return("cuGraphExecChildGraphNodeSetParams", graphs::set_child),
    at_return("cuGraphExecEventRecordNodeSetEvent", graphs::set_event),
    at_return("cuGraphExecEventWaitNodeSetEvent", graphs::set_event),
    at_return("cuGraphNodeSetEnabled", graphs::set_enabled),
    at_entry("cuGraphUpload", graphs::upload),
    at_entry("cuGraphLaunch", graphs::launch),
    at_entry("cuGraphExecDestroy", graphs::destroy),
];

/// A call without ordering and without accesses.
fn nothing(_: &mut Resolution<'_>) -> Option<Action> {
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
