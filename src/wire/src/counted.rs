//! The driver's other entry points: counted by name, not recorded.
//!
//! `orders` lists those that could order work or touch memory: without their records a run cannot
//! be called clean. A call that only builds or asks (a graph's nodes, attributes, occupancy) is
//! `inert`: the built object takes effect by a call that is hooked or listed under `orders`.
//! Binding memory to a multicast object is `inert` too: it takes effect where the object is mapped
//! and used.

use crate::entry::Effect;

/// Calls `$callback!` with the names of all counted entry points.
#[macro_export]
macro_rules! for_each_counted {
    ($callback:ident) => {
        $callback! {
            orders:
            cuCheckpointProcessCheckpoint cuCheckpointProcessLock cuCheckpointProcessRestore
            cuCheckpointProcessUnlock cuEGLStreamConsumerAcquireFrame
            cuEGLStreamConsumerReleaseFrame cuEGLStreamProducerPresentFrame
            cuEGLStreamProducerReturnFrame cuEventCreateFromEGLSync cuFabricCpyBatchAsync
            cuFabricCpyBatchAsync_ptsz cuFlushGPUDirectRDMAWrites cuGLCtxCreate cuGLCtxCreate_v2
            cuGLMapBufferObject cuGLMapBufferObjectAsync cuGLMapBufferObjectAsync_v2
            cuGLMapBufferObjectAsync_v2_ptsz cuGLMapBufferObject_v2 cuGLMapBufferObject_v2_ptds
            cuGLUnmapBufferObject cuGLUnmapBufferObjectAsync cuGraphicsMapResources
            cuGraphicsMapResources_ptsz cuGraphicsResourceGetMappedEglFrame
            cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer
            cuGraphicsResourceGetMappedPointer_v2 cuGraphicsSubResourceGetMappedArray
            cuGraphicsUnmapResources cuGraphicsUnmapResources_ptsz cuLogicalEndpointBindAddr
            cuLogicalEndpointBindMem cuLogicalEndpointUnbind cuMemMapArrayAsync
            cuMemMapArrayAsync_ptsz cuStreamBeginCaptureToCig cuStreamBeginCaptureToCig_ptsz
            cuStreamEndCaptureToCig cuStreamEndCaptureToCig_ptsz cuTensorMapSetAllocationClass
            cuVDPAUCtxCreate cuVDPAUCtxCreate_v2;
            inert:
            cuArray3DGetDescriptor cuArray3DGetDescriptor_v2 cuArrayGetDescriptor
            cuArrayGetDescriptor_v2 cuArrayGetMemoryRequirements cuArrayGetPlane
            cuArrayGetSparseProperties cuCheckpointOperationComplete
            cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState
            cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback
            cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpRegisterCompleteCallback
            cuCoredumpRegisterStartCallback cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal
            cuCtxDisablePeerAccess cuCtxEnablePeerAccess cuCtxGetApiVersion cuCtxGetCacheConfig
            cuCtxGetCurrent cuCtxGetDevResource cuCtxGetDevice cuCtxGetDevice_v2
            cuCtxGetExecAffinity cuCtxGetFlags cuCtxGetId cuCtxGetLimit cuCtxGetSharedMemConfig
            cuCtxGetStreamPriorityRange cuCtxResetPersistingL2Cache cuCtxSetCacheConfig
            cuCtxSetLimit cuCtxSetSharedMemConfig cuDevResourceGenerateDesc cuDevSmResourceSplit
            cuDevSmResourceSplitByCount cuDeviceCanAccessPeer cuDeviceComputeCapability cuDeviceGet
            cuDeviceGetAttribute cuDeviceGetByPCIBusId cuDeviceGetCliqueCount cuDeviceGetCliqueInfo
            cuDeviceGetCount cuDeviceGetDefaultMemPool cuDeviceGetDevResource
            cuDeviceGetExecAffinitySupport cuDeviceGetFabricClusterUuid cuDeviceGetGraphMemAttribute
            cuDeviceGetHostAtomicCapabilities cuDeviceGetLuid cuDeviceGetMemPool cuDeviceGetName
            cuDeviceGetNvSciSyncAttributes cuDeviceGetP2PAtomicCapabilities cuDeviceGetP2PAttribute
            cuDeviceGetPCIBusId cuDeviceGetProperties cuDeviceGetTexture1DLinearMaxWidth
            cuDeviceGetUuid cuDeviceGetUuid_v2 cuDeviceGraphMemTrim cuDevicePrimaryCtxGetState
            cuDeviceRegisterAsyncNotification cuDeviceSetGraphMemAttribute cuDeviceSetMemPool
            cuDeviceTotalMem cuDeviceTotalMem_v2 cuDeviceUnregisterAsyncNotification
            cuDriverGetVersion cuEGLStreamConsumerConnect cuEGLStreamConsumerConnectWithFlags
            cuEGLStreamConsumerDisconnect cuEGLStreamProducerConnect cuEGLStreamProducerDisconnect
            cuFuncGetAttribute cuFuncGetModule cuFuncGetName cuFuncGetParamCount cuFuncGetParamInfo
            cuFuncIsLoaded cuFuncLoad cuFuncSetAttribute cuFuncSetBlockShape cuFuncSetCacheConfig
            cuFuncSetSharedMemConfig cuFuncSetSharedSize cuGLGetDevices cuGLGetDevices_v2 cuGLInit
            cuGLRegisterBufferObject cuGLSetBufferObjectMapFlags cuGLUnregisterBufferObject
            cuGetErrorName cuGetErrorString cuGetExportTable cuGetProcAddress cuGetProcAddress_v2
            cuGraphAddDependencies cuGraphAddDependencies_v2 cuGraphBatchMemOpNodeGetParams
            cuGraphBatchMemOpNodeSetParams cuGraphChildGraphNodeGetGraph
            cuGraphConditionalHandleCreate cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy
            cuGraphDestroyNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent
            cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphExecGetFlags
            cuGraphExecGetId cuGraphExternalSemaphoresSignalNodeGetParams
            cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeGetParams
            cuGraphExternalSemaphoresWaitNodeSetParams cuGraphGetEdges cuGraphGetEdges_v2
            cuGraphGetId cuGraphGetNodes cuGraphGetRootNodes cuGraphHostNodeGetParams
            cuGraphHostNodeSetParams cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute
            cuGraphKernelNodeGetParams cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetAttribute
            cuGraphKernelNodeSetParams cuGraphKernelNodeSetParams_v2 cuGraphMemAllocNodeGetParams
            cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
            cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeFindInClone
            cuGraphNodeGetContainingGraph cuGraphNodeGetDependencies cuGraphNodeGetDependencies_v2
            cuGraphNodeGetDependentNodes cuGraphNodeGetDependentNodes_v2 cuGraphNodeGetEnabled
            cuGraphNodeGetLocalId cuGraphNodeGetParams cuGraphNodeGetToolsId cuGraphNodeGetType
            cuGraphNodeSetParams cuGraphNodeSetParams_v2 cuGraphReleaseUserObject
            cuGraphRemoveDependencies cuGraphRemoveDependencies_v2 cuGraphRetainUserObject
            cuGraphicsEGLRegisterImage cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage
            cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2
            cuGraphicsUnregisterResource cuGraphicsVDPAURegisterOutputSurface
            cuGraphicsVDPAURegisterVideoSurface cuGreenCtxGetDevResource cuGreenCtxGetId cuInit
            cuKernelGetAttribute cuKernelGetLibrary cuKernelGetName cuKernelGetParamCount
            cuKernelGetParamInfo cuKernelSetAttribute cuKernelSetCacheConfig
            cuLibraryEnumerateKernels cuLibraryGetKernelCount cuLibraryGetUnifiedFunction
            cuLinkAddData cuLinkAddData_v2 cuLinkAddFile cuLinkAddFile_v2 cuLinkComplete
            cuLinkCreate cuLinkCreate_v2 cuLinkDestroy cuLogicalEndpointAddDevice
            cuLogicalEndpointCreate cuLogicalEndpointDestroy cuLogicalEndpointExport
            cuLogicalEndpointGetLimits cuLogicalEndpointIdRelease cuLogicalEndpointIdReserve
            cuLogicalEndpointImport cuLogicalEndpointQuery cuLogsCurrent cuLogsDumpToFile
            cuLogsDumpToMemory cuLogsRegisterCallback cuLogsUnregisterCallback cuMemAdvise
            cuMemAdvise_v2 cuMemGetAccess cuMemGetAddressRange cuMemGetAddressRange_v2
            cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle
            cuMemGetDefaultMemPool cuMemGetHandleForAddressRange cuMemGetInfo cuMemGetInfo_v2
            cuMemGetLocationInfo cuMemGetMemPool cuMemHostGetFlags cuMemPoolCreate cuMemPoolDestroy
            cuMemPoolExportToShareableHandle cuMemPoolGetAccess cuMemPoolGetAttribute
            cuMemPoolImportFromShareableHandle cuMemPoolSetAccess cuMemPoolSetAttribute
            cuMemPoolTrimTo cuMemRangeGetAttribute cuMemRangeGetAttributes cuMemRelease
            cuMemSetAccess cuMemSetMemPool cuMipmappedArrayGetMemoryRequirements
            cuMipmappedArrayGetSparseProperties cuModuleEnumerateFunctions cuModuleGetFunctionCount
            cuModuleGetLoadingMode cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2
            cuMulticastBindMem cuMulticastBindMem_v2 cuMulticastGetGranularity cuMulticastUnbind
            cuOccupancyAvailableDynamicSMemPerBlock cuOccupancyMaxActiveBlocksPerMultiprocessor
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cuOccupancyMaxActiveClusters
            cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags
            cuOccupancyMaxPotentialClusterSize cuParamSetf cuPointerGetAttribute
            cuPointerGetAttributes cuProfilerInitialize cuProfilerStart cuProfilerStop
            cuStreamCopyAttributes cuStreamCopyAttributes_ptsz cuStreamGetAttribute
            cuStreamGetAttribute_ptsz cuStreamGetCaptureInfo cuStreamGetCaptureInfo_ptsz
            cuStreamGetCaptureInfo_v2 cuStreamGetCaptureInfo_v2_ptsz cuStreamGetCaptureInfo_v3
            cuStreamGetCaptureInfo_v3_ptsz cuStreamGetCtx cuStreamGetCtx_ptsz cuStreamGetCtx_v2
            cuStreamGetCtx_v2_ptsz cuStreamGetDevResource cuStreamGetDevResource_ptsz
            cuStreamGetDevice cuStreamGetDevice_ptsz cuStreamGetFlags cuStreamGetFlags_ptsz
            cuStreamGetGreenCtx cuStreamGetId cuStreamGetId_ptsz cuStreamGetPriority
            cuStreamGetPriority_ptsz cuStreamIsCapturing cuStreamIsCapturing_ptsz
            cuStreamSetAttribute cuStreamSetAttribute_ptsz cuSurfObjectGetResourceDesc
            cuSurfRefGetArray cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
            cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy cuTexRefGetAddress
            cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor
            cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
            cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp
            cuTexRefGetMipmappedArray cuTexRefSetAddressMode cuTexRefSetBorderColor
            cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat cuTexRefSetMaxAnisotropy
            cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp
            cuThreadExchangeStreamCaptureMode cuUserObjectCreate cuUserObjectRelease
            cuUserObjectRetain cuVDPAUGetDevice;
        }
    };
}

macro_rules! define {
    (orders: $($orders:ident)+; inert: $($inert:ident)+;) => {
        /// A counted entry point by its exact symbol.
        #[expect(non_camel_case_types, reason = "the names are the driver's symbols")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Counted {
            $(
                #[doc = concat!("`", stringify!($orders), "`")]
                $orders,
            )+
            $(
                #[doc = concat!("`", stringify!($inert), "`")]
                $inert,
            )+
        }

        /// Names and effects in the order of [`Counted`].
        pub(crate) const COUNTED: &[(&str, Effect)] = &[
            $((stringify!($orders), Effect::OrdersOrTouchesMemory),)+
            $((stringify!($inert), Effect::Inert),)+
        ];
    };
}

for_each_counted!(define);
