//! Entry points that are exported, because programs link against them, and not simulated: they
//! answer CUDA_ERROR_NOT_SUPPORTED. With `STREAMSAN_SIM_LOG=1` the first call of each is named on
//! standard error.

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Entry;
use super::enter::enter;
use crate::driver::say;
use crate::errors::{CuError, Outcome};

fn refuse(name: &str, said: &AtomicBool) -> Outcome {
    static LOG: OnceLock<bool> = OnceLock::new();
    let log = *LOG.get_or_init(|| env::var_os("STREAMSAN_SIM_LOG").is_some_and(|set| set == "1"));
    if log && !said.swap(true, Ordering::Relaxed) {
        say(&format!("{name} is not simulated"));
    }
    Err(CuError::NOT_SUPPORTED)
}

// The callers pass arguments, which the C calling convention lets a function ignore.
macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $name() -> u32 {
                static SAID: AtomicBool = AtomicBool::new(false);
                enter(stringify!($name), |_| refuse(stringify!($name), &SAID))
            }
        )*
        pub(super) const TABLE: &[Entry] =
            &[$(Entry { name: stringify!($name), address: $name as *const () },)*];
    };
}

unsupported! {
    cuArray3DCreate
    cuArray3DGetDescriptor
    cuArrayCreate
    cuArrayGetDescriptor
    cuArrayGetMemoryRequirements
    cuArrayGetPlane
    cuArrayGetSparseProperties
    cuCheckpointOperationComplete
    cuCheckpointProcessCheckpoint
    cuCheckpointProcessGetRestoreThreadId
    cuCheckpointProcessGetState
    cuCheckpointProcessLock
    cuCheckpointProcessRestore
    cuCheckpointProcessUnlock
    cuCoredumpDeregisterCompleteCallback
    cuCoredumpDeregisterStartCallback
    cuCoredumpGetAttribute
    cuCoredumpGetAttributeGlobal
    cuCoredumpRegisterCompleteCallback
    cuCoredumpRegisterStartCallback
    cuCoredumpSetAttribute
    cuCoredumpSetAttributeGlobal
    cuCtxAttach
    cuCtxDetach
    cuCtxGetExecAffinity
    cuDestroyExternalMemory
    cuDestroyExternalSemaphore
    cuDevSmResourceSplit
    cuDeviceGetCliqueCount
    cuDeviceGetCliqueInfo
    cuDeviceGetFabricClusterUuid
    cuDeviceGetGraphMemAttribute
    cuDeviceGetHostAtomicCapabilities
    cuDeviceGetLuid
    cuDeviceGetNvSciSyncAttributes
    cuDeviceGetP2PAtomicCapabilities
    cuDeviceGetTexture1DLinearMaxWidth
    cuDeviceGraphMemTrim
    cuDeviceRegisterAsyncNotification
    cuDeviceSetGraphMemAttribute
    cuDeviceTotalMem
    cuDeviceUnregisterAsyncNotification
    cuExternalMemoryGetMappedBuffer
    cuExternalMemoryGetMappedMipmappedArray
    cuFlushGPUDirectRDMAWrites
    cuFuncSetBlockShape
    cuFuncSetSharedSize
    cuGraphAddExternalSemaphoresSignalNode
    cuGraphAddExternalSemaphoresWaitNode
    cuGraphDebugDotPrint
    cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExecGetId
    cuGraphExternalSemaphoresSignalNodeGetParams
    cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams
    cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphGetId
    cuGraphNodeGetLocalId
    cuGraphNodeGetToolsId
    cuGraphReleaseUserObject
    cuGraphRetainUserObject
    cuGraphicsMapResources
    cuGraphicsMapResources_ptsz
    cuGraphicsResourceGetMappedMipmappedArray
    cuGraphicsResourceGetMappedPointer
    cuGraphicsResourceGetMappedPointer_v2
    cuGraphicsResourceSetMapFlags
    cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray
    cuGraphicsUnmapResources
    cuGraphicsUnmapResources_ptsz
    cuGraphicsUnregisterResource
    cuImportExternalMemory
    cuImportExternalSemaphore
    cuIpcCloseMemHandle
    cuIpcGetEventHandle
    cuIpcGetMemHandle
    cuIpcOpenEventHandle
    cuIpcOpenMemHandle
    cuIpcOpenMemHandle_v2
    cuLaunch
    cuLaunchGrid
    cuLaunchGridAsync
    cuLibraryGetManaged
    cuLibraryGetUnifiedFunction
    cuLinkAddData
    cuLinkAddData_v2
    cuLinkAddFile
    cuLinkAddFile_v2
    cuLinkComplete
    cuLinkCreate
    cuLinkCreate_v2
    cuLinkDestroy
    cuLogicalEndpointAddDevice
    cuLogicalEndpointBindAddr
    cuLogicalEndpointBindMem
    cuLogicalEndpointCreate
    cuLogicalEndpointDestroy
    cuLogicalEndpointExport
    cuLogicalEndpointGetLimits
    cuLogicalEndpointIdRelease
    cuLogicalEndpointIdReserve
    cuLogicalEndpointImport
    cuLogicalEndpointQuery
    cuLogicalEndpointUnbind
    cuLogsCurrent
    cuLogsDumpToFile
    cuLogsDumpToMemory
    cuLogsRegisterCallback
    cuLogsUnregisterCallback
    cuMemAlloc
    cuMemAllocHost
    cuMemAllocPitch
    cuMemBatchDecompressAsync
    cuMemBatchDecompressAsync_ptsz
    cuMemFree
    cuMemGetAddressRange
    cuMemGetDefaultMemPool
    cuMemGetHandleForAddressRange
    cuMemGetInfo
    cuMemGetLocationInfo
    cuMemGetMemPool
    cuMemHostGetDevicePointer
    cuMemHostRegister
    cuMemMapArrayAsync
    cuMemMapArrayAsync_ptsz
    cuMemPoolExportPointer
    cuMemPoolExportToShareableHandle
    cuMemPoolImportFromShareableHandle
    cuMemPoolImportPointer
    cuMemRangeGetAttribute
    cuMemRangeGetAttributes
    cuMemSetMemPool
    cuMemcpy2D
    cuMemcpy2DAsync
    cuMemcpy2DUnaligned
    cuMemcpy3D
    cuMemcpy3DAsync
    cuMemcpyAtoA
    cuMemcpyAtoD
    cuMemcpyAtoH
    cuMemcpyAtoHAsync
    cuMemcpyDtoA
    cuMemcpyDtoD
    cuMemcpyDtoDAsync
    cuMemcpyDtoH
    cuMemcpyDtoHAsync
    cuMemcpyHtoA
    cuMemcpyHtoAAsync
    cuMemcpyHtoD
    cuMemcpyHtoDAsync
    cuMemsetD16
    cuMemsetD2D16
    cuMemsetD2D32
    cuMemsetD2D8
    cuMemsetD32
    cuMemsetD8
    cuMipmappedArrayCreate
    cuMipmappedArrayDestroy
    cuMipmappedArrayGetLevel
    cuMipmappedArrayGetMemoryRequirements
    cuMipmappedArrayGetSparseProperties
    cuModuleGetGlobal
    cuModuleGetSurfRef
    cuModuleGetTexRef
    cuMulticastAddDevice
    cuMulticastBindAddr
    cuMulticastBindAddr_v2
    cuMulticastBindMem
    cuMulticastBindMem_v2
    cuMulticastCreate
    cuMulticastGetGranularity
    cuMulticastUnbind
    cuOccupancyMaxActiveClusters
    cuOccupancyMaxPotentialClusterSize
    cuParamSetSize
    cuParamSetTexRef
    cuParamSetf
    cuParamSeti
    cuParamSetv
    cuSignalExternalSemaphoresAsync
    cuSignalExternalSemaphoresAsync_ptsz
    cuStreamBeginCaptureToCig
    cuStreamBeginCaptureToCig_ptsz
    cuStreamBeginRecaptureToGraph
    cuStreamBeginRecaptureToGraph_ptsz
    cuStreamEndCaptureToCig
    cuStreamEndCaptureToCig_ptsz
    cuStreamGetDevResource
    cuStreamGetDevResource_ptsz
    cuSurfObjectCreate
    cuSurfObjectDestroy
    cuSurfObjectGetResourceDesc
    cuSurfRefGetArray
    cuSurfRefSetArray
    cuTensorMapEncodeIm2col
    cuTensorMapEncodeIm2colWide
    cuTensorMapEncodeTiled
    cuTensorMapReplaceAddress
    cuTexObjectCreate
    cuTexObjectDestroy
    cuTexObjectGetResourceDesc
    cuTexObjectGetResourceViewDesc
    cuTexObjectGetTextureDesc
    cuTexRefCreate
    cuTexRefDestroy
    cuTexRefGetAddress
    cuTexRefGetAddressMode
    cuTexRefGetAddress_v2
    cuTexRefGetArray
    cuTexRefGetBorderColor
    cuTexRefGetFilterMode
    cuTexRefGetFlags
    cuTexRefGetFormat
    cuTexRefGetMaxAnisotropy
    cuTexRefGetMipmapFilterMode
    cuTexRefGetMipmapLevelBias
    cuTexRefGetMipmapLevelClamp
    cuTexRefGetMipmappedArray
    cuTexRefSetAddress
    cuTexRefSetAddress2D
    cuTexRefSetAddress2D_v2
    cuTexRefSetAddress2D_v3
    cuTexRefSetAddressMode
    cuTexRefSetAddress_v2
    cuTexRefSetArray
    cuTexRefSetBorderColor
    cuTexRefSetFilterMode
    cuTexRefSetFlags
    cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy
    cuTexRefSetMipmapFilterMode
    cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp
    cuTexRefSetMipmappedArray
    cuUserObjectCreate
    cuUserObjectRelease
    cuUserObjectRetain
    cuWaitExternalSemaphoresAsync
    cuWaitExternalSemaphoresAsync_ptsz
}
