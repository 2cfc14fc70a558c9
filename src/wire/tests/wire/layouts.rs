//! The sizes in the hook table are those of the driver's structures, as far as the bindings of
//! `cudarc` for CUDA 12.4 have them. Later structures (`CUmemcpyAttributes`,
//! `CUDA_MEMCPY3D_BATCH_OP`, `CUmemDecompressParams`) rest on the reference alone.

use cudarc::driver::sys;
use std::mem::{offset_of, size_of};
use streamsan_wire::{Api, ParamKind};

#[test]
fn structures_are_as_long_as_the_table_says() {
    for (api, parameter, size) in [
        (Api::cuMemcpy2D_v2, "pCopy", size_of::<sys::CUDA_MEMCPY2D>()),
        (Api::cuMemcpy3D_v2, "pCopy", size_of::<sys::CUDA_MEMCPY3D>()),
        (Api::cuMemcpy3DPeer, "pCopy", size_of::<sys::CUDA_MEMCPY3D_PEER>()),
        (Api::cuArrayCreate_v2, "pAllocateArray", size_of::<sys::CUDA_ARRAY_DESCRIPTOR>()),
        (Api::cuArray3DCreate_v2, "pAllocateArray", size_of::<sys::CUDA_ARRAY3D_DESCRIPTOR>()),
        (
            Api::cuMipmappedArrayCreate,
            "pMipmappedArrayDesc",
            size_of::<sys::CUDA_ARRAY3D_DESCRIPTOR>(),
        ),
        (Api::cuTexObjectCreate, "pResDesc", size_of::<sys::CUDA_RESOURCE_DESC>()),
        (Api::cuSurfObjectCreate, "pResDesc", size_of::<sys::CUDA_RESOURCE_DESC>()),
        (Api::cuTexRefSetAddress2D_v3, "desc", size_of::<sys::CUDA_ARRAY_DESCRIPTOR>()),
        (
            Api::cuImportExternalMemory,
            "memHandleDesc",
            size_of::<sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC>(),
        ),
        (
            Api::cuExternalMemoryGetMappedBuffer,
            "bufferDesc",
            size_of::<sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC>(),
        ),
        (
            Api::cuExternalMemoryGetMappedMipmappedArray,
            "mipmapDesc",
            size_of::<sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC>(),
        ),
        (
            Api::cuImportExternalSemaphore,
            "semHandleDesc",
            size_of::<sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>(),
        ),
        (
            Api::cuSignalExternalSemaphoresAsync,
            "paramsArray",
            size_of::<sys::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>(),
        ),
        (
            Api::cuWaitExternalSemaphoresAsync,
            "paramsArray",
            size_of::<sys::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>(),
        ),
        (Api::cuStreamBatchMemOp_v2, "paramArray", size_of::<sys::CUstreamBatchMemOpParams>()),
        (Api::cuIpcOpenMemHandle_v2, "handle", size_of::<sys::CUipcMemHandle>()),
        (Api::cuIpcOpenEventHandle, "handle", size_of::<sys::CUipcEventHandle>()),
        (Api::cuIpcGetMemHandle, "pHandle", size_of::<sys::CUipcMemHandle>()),
        (Api::cuIpcGetEventHandle, "pHandle", size_of::<sys::CUipcEventHandle>()),
        (Api::cuMemPoolExportPointer, "shareData_out", size_of::<sys::CUmemPoolPtrExportData>()),
        (Api::cuMemPoolImportPointer, "shareData", size_of::<sys::CUmemPoolPtrExportData>()),
        (Api::cuTensorMapEncodeTiled, "tensorMap", size_of::<sys::CUtensorMap>()),
        (Api::cuTensorMapReplaceAddress, "tensorMap", size_of::<sys::CUtensorMap>()),
        (
            Api::cuLaunchCooperativeKernelMultiDevice,
            "launchParamsList",
            size_of::<sys::CUDA_LAUNCH_PARAMS>(),
        ),
    ] {
        let signature = api.signature();
        let index = signature.index_of(parameter).expect("a parameter of this name");
        let recorded = match signature.params[index].kind {
            ParamKind::InStruct(size) | ParamKind::InArray { element: size, .. } => {
                usize::from(size)
            }
            ParamKind::Out(size) | ParamKind::InOut(size) => usize::from(size),
            ParamKind::Launches { .. } => 56,
            other => panic!("{other:?}"),
        };
        assert_eq!(recorded, size, "{} {parameter}", api.name());
    }
}

/// Where the collector and the runtime look for fields.
#[test]
fn fields_lie_where_they_are_read() {
    assert_eq!(offset_of!(sys::CUDA_LAUNCH_PARAMS, hStream), 40);
    assert_eq!(offset_of!(sys::CUDA_LAUNCH_PARAMS, kernelParams), 48);
    assert_eq!(offset_of!(sys::CUDA_RESOURCE_DESC, res), 8);
    assert_eq!(offset_of!(sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc), 8);
    assert_eq!(offset_of!(sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels), 48);
    assert_eq!(offset_of!(sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size), 8);
    assert_eq!(offset_of!(sys::CUDA_ARRAY_DESCRIPTOR, Format), 16);
    assert_eq!(offset_of!(sys::CUDA_ARRAY3D_DESCRIPTOR, Format), 24);
    assert_eq!(offset_of!(sys::CUDA_ARRAY3D_DESCRIPTOR, Flags), 32);
    assert_eq!(offset_of!(sys::CUDA_MEMCPY2D, srcArray), 40);
    assert_eq!(offset_of!(sys::CUDA_MEMCPY2D, dstArray), 96);
    assert_eq!(offset_of!(sys::CUDA_MEMCPY3D, srcArray), 56);
    assert_eq!(offset_of!(sys::CUDA_MEMCPY3D, dstArray), 144);
    type Wait = sys::CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st;
    assert_eq!(offset_of!(Wait, address), 8);
    assert_eq!(offset_of!(Wait, flags), 24);
    type Barrier = sys::CUstreamBatchMemOpParams_union_CUstreamMemOpMemoryBarrierParams_st;
    assert_eq!(offset_of!(Barrier, flags), 4);
}
