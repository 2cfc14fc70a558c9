//! The table of hooked driver calls: adding one is adding a line.
//!
//! A line is `[exact symbols of one C signature] (parameter: kind, ...)`. The kinds are the types
//! of [`crate::kinds`]. Parameter names and types follow the CUDA driver API reference; symbols
//! without `_v2` are the ABIs that older programs link (32-bit `CUdeviceptr` where `Out<4>` and
//! `U32` stand for addresses). `_ptds` and `_ptsz` twins share the line of their base symbol.

/// Calls `$callback!` with the whole table.
#[macro_export]
macro_rules! for_each_hook {
    ($callback:ident) => {
        $callback! {
            // Contexts
            [cuCtxCreate cuCtxCreate_v2] (pctx: OutContext, flags: U32, dev: I32);
            [cuCtxCreate_v3]
                (pctx: OutContext, paramsArray: Ptr, numParams: I32, flags: U32, dev: I32);
            [cuCtxCreate_v4] (pctx: OutContext, ctxCreateParams: Ptr, flags: U32, dev: I32);
            [cuCtxDestroy cuCtxDestroy_v2] (ctx: Ptr);
            [cuCtxAttach] (pctx: Out<8>, flags: U32);
            [cuCtxDetach] (ctx: Ptr);
            [cuCtxPushCurrent cuCtxPushCurrent_v2] (ctx: Ptr);
            [cuCtxPopCurrent cuCtxPopCurrent_v2] (pctx: Out<8>);
            [cuCtxSetCurrent] (ctx: Ptr);
            [cuCtxSynchronize] ();
            [cuCtxSynchronize_v2] (ctx: Ptr);
            [cuCtxRecordEvent cuCtxWaitEvent] (hCtx: Ptr, hEvent: Ptr);
            [cuDevicePrimaryCtxRetain] (pctx: OutContext, dev: I32);
            [cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2] (dev: I32);
            [cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2] (dev: I32);
            [cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2] (dev: I32, flags: U32);
            [cuCtxSetFlags] (flags: U32);
            [cuGreenCtxCreate] (phCtx: OutContext, desc: Ptr, dev: I32, flags: U32);
            [cuGreenCtxDestroy] (hCtx: Ptr);
            [cuCtxFromGreenCtx] (pContext: Out<8>, hCtx: Ptr);
            [cuGreenCtxRecordEvent cuGreenCtxWaitEvent] (hCtx: Ptr, hEvent: Ptr);

            // Streams
            [cuStreamCreate] (phStream: OutStream, Flags: U32);
            [cuStreamCreateWithPriority] (phStream: OutStream, flags: U32, priority: I32);
            [cuGreenCtxStreamCreate]
                (phStream: OutStream, greenCtx: Ptr, flags: U32, priority: I32);
            [cuStreamDestroy cuStreamDestroy_v2] (hStream: Ptr);
            [cuStreamSynchronize cuStreamSynchronize_ptsz] (hStream: Ptr);
            [cuStreamQuery cuStreamQuery_ptsz] (hStream: Ptr);
            [cuStreamWaitEvent cuStreamWaitEvent_ptsz] (hStream: Ptr, hEvent: Ptr, Flags: U32);
            [cuStreamBeginCapture cuStreamBeginCapture_ptsz] (hStream: Capture);
            [cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz] (hStream: Capture, mode: U32);
            [cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz]
                (hStream: Capture, hGraph: Ptr, dependencies: Ptr, dependencyData: Ptr,
                numDependencies: U64, mode: U32);
            [cuStreamEndCapture cuStreamEndCapture_ptsz] (hStream: Capture, phGraph: Out<8>);
            [cuStreamAddCallback cuStreamAddCallback_ptsz]
                (hStream: Ptr, callback: StreamCallback, userData: UserData, flags: U32);

            // Stream memory operations: CUstreamBatchMemOpParams (48 bytes)
            [cuStreamWriteValue32 cuStreamWriteValue32_ptsz cuStreamWriteValue32_v2
                cuStreamWriteValue32_v2_ptsz cuStreamWaitValue32 cuStreamWaitValue32_ptsz
                cuStreamWaitValue32_v2 cuStreamWaitValue32_v2_ptsz]
                (stream: Ptr, addr: U64, value: U32, flags: U32);
            [cuStreamWriteValue64 cuStreamWriteValue64_ptsz cuStreamWriteValue64_v2
                cuStreamWriteValue64_v2_ptsz cuStreamWaitValue64 cuStreamWaitValue64_ptsz
                cuStreamWaitValue64_v2 cuStreamWaitValue64_v2_ptsz]
                (stream: Ptr, addr: U64, value: U64, flags: U32);
            [cuStreamBatchMemOp cuStreamBatchMemOp_ptsz cuStreamBatchMemOp_v2
                cuStreamBatchMemOp_v2_ptsz]
                (stream: Ptr, count: U32, paramArray: Array<48, 1>, flags: U32);

            // External semaphores: descriptor (96 bytes), parameters of one signal or wait (144)
            [cuImportExternalSemaphore] (extSem_out: Out<8>, semHandleDesc: In<96>);
            [cuDestroyExternalSemaphore] (extSem: Ptr);
            [cuSignalExternalSemaphoresAsync cuSignalExternalSemaphoresAsync_ptsz
                cuWaitExternalSemaphoresAsync cuWaitExternalSemaphoresAsync_ptsz]
                (extSemArray: Array<8, 2>, paramsArray: Array<144, 2>, numExtSems: U32,
                stream: Ptr);

            // Events
            [cuEventCreate] (phEvent: Out<8>, Flags: U32);
            [cuEventDestroy cuEventDestroy_v2] (hEvent: Ptr);
            [cuEventRecord cuEventRecord_ptsz] (hEvent: Ptr, hStream: Ptr);
            [cuEventRecordWithFlags cuEventRecordWithFlags_ptsz]
                (hEvent: Ptr, hStream: Ptr, flags: U32);
            [cuEventQuery] (hEvent: Ptr);
            [cuEventSynchronize] (hEvent: Ptr);
            [cuEventElapsedTime cuEventElapsedTime_v2]
                (pMilliseconds: Out<4>, hStart: Ptr, hEnd: Ptr);

            // Memory
            [cuMemAlloc] (dptr: Out<4>, bytesize: U32);
            [cuMemAlloc_v2] (dptr: Out<8>, bytesize: U64);
            [cuMemAllocPitch] (dptr: Out<4>, pPitch: Out<4>, WidthInBytes: U32, Height: U32,
                ElementSizeBytes: U32);
            [cuMemAllocPitch_v2] (dptr: Out<8>, pPitch: Out<8>, WidthInBytes: U64, Height: U64,
                ElementSizeBytes: U32);
            [cuMemAllocHost] (pp: Out<8>, bytesize: U32);
            [cuMemAllocHost_v2] (pp: Out<8>, bytesize: U64);
            [cuMemHostAlloc] (pp: Out<8>, bytesize: U64, Flags: U32);
            [cuMemHostRegister cuMemHostRegister_v2] (p: Ptr, bytesize: U64, Flags: U32);
            [cuMemHostUnregister] (p: Ptr);
            [cuMemHostGetDevicePointer] (pdptr: Out<4>, p: Ptr, Flags: U32);
            [cuMemHostGetDevicePointer_v2] (pdptr: Out<8>, p: Ptr, Flags: U32);
            [cuMemAllocManaged] (dptr: Out<8>, bytesize: U64, flags: U32);
            [cuMemFree] (dptr: U32);
            [cuMemFree_v2] (dptr: U64);
            [cuMemFreeHost] (p: Ptr);
            [cuMemAllocAsync cuMemAllocAsync_ptsz] (dptr: Out<8>, bytesize: U64, hStream: Ptr);
            [cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync_ptsz]
                (dptr: Out<8>, bytesize: U64, pool: Ptr, hStream: Ptr);
            [cuMemFreeAsync cuMemFreeAsync_ptsz] (dptr: U64, hStream: Ptr);

            // Mapped memory
            [cuMemAddressReserve]
                (ptr: Out<8>, size: U64, alignment: U64, addr: U64, flags: U64);
            [cuMemAddressFree] (ptr: U64, size: U64);
            [cuMemCreate] (handle: Out<8>, size: U64, prop: Ptr, flags: U64);
            [cuMemMap] (ptr: U64, size: U64, offset: U64, handle: U64, flags: U64);
            [cuMemUnmap] (ptr: U64, size: U64);
            [cuMemRetainAllocationHandle] (handle: Out<8>, addr: Ptr);
            [cuMulticastCreate] (mcHandle: Out<8>, prop: Ptr);
            [cuMemExportToShareableHandle]
                (shareableHandle: OutShareable, handle: U64, handleType: U32, flags: U64);
            [cuMemImportFromShareableHandle]
                (handle: OutImported, osHandle: Ptr, shHandleType: U32);

            // Memory and events shared between processes and with other interfaces; handles of
            // 64 bytes, CUDA_EXTERNAL_MEMORY_HANDLE_DESC (104), its buffers (88) and arrays (120)
            [cuIpcGetMemHandle] (pHandle: Out<64>, dptr: U64);
            [cuIpcOpenMemHandle cuIpcOpenMemHandle_v2]
                (pdptr: OutAddress, handle: Value64, Flags: U32);
            [cuIpcCloseMemHandle] (dptr: U64);
            [cuIpcGetEventHandle] (pHandle: Out<64>, event: Ptr);
            [cuIpcOpenEventHandle] (phEvent: Out<8>, handle: Value64);
            [cuMemPoolExportPointer] (shareData_out: Out<64>, ptr: U64);
            [cuMemPoolImportPointer] (ptr_out: OutAddress, pool: Ptr, shareData: In<64>);
            [cuImportExternalMemory] (extMem_out: Out<8>, memHandleDesc: In<104>);
            [cuExternalMemoryGetMappedBuffer] (devPtr: Out<8>, extMem: Ptr, bufferDesc: In<88>);
            [cuExternalMemoryGetMappedMipmappedArray]
                (mipmap: Out<8>, extMem: Ptr, mipmapDesc: In<120>);
            [cuDestroyExternalMemory] (extMem: Ptr);

            // Managed memory; a location is two ints, passed like a word
            [cuMemPrefetchAsync cuMemPrefetchAsync_ptsz]
                (devPtr: U64, count: U64, dstDevice: I32, hStream: Ptr);
            [cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2_ptsz]
                (devPtr: U64, count: U64, location: U64, flags: U32, hStream: Ptr);
            [cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz
                cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz]
                (dptrs: Array<8, 2>, sizes: Array<8, 2>, count: U64, prefetchLocs: Ptr,
                prefetchLocIdxs: Ptr, numPrefetchLocs: U64, flags: U64, hStream: Ptr);
            [cuMemDiscardBatchAsync cuMemDiscardBatchAsync_ptsz]
                (dptrs: Array<8, 2>, sizes: Array<8, 2>, count: U64, flags: U64, hStream: Ptr);
            [cuStreamAttachMemAsync cuStreamAttachMemAsync_ptsz]
                (hStream: Ptr, dptr: U64, length: U64, flags: U32);
            [cuPointerSetAttribute] (value: In<1>, attribute: I32, ptr: U64);

            // Arrays: descriptors of 24 bytes (16 in the first ABI), 40 with a depth (24)
            [cuArrayCreate] (pHandle: Out<8>, pAllocateArray: In<16>);
            [cuArrayCreate_v2] (pHandle: Out<8>, pAllocateArray: In<24>);
            [cuArray3DCreate] (pHandle: Out<8>, pAllocateArray: In<24>);
            [cuArray3DCreate_v2] (pHandle: Out<8>, pAllocateArray: In<40>);
            [cuArrayDestroy] (hArray: Ptr);
            [cuMipmappedArrayCreate]
                (pHandle: Out<8>, pMipmappedArrayDesc: In<40>, numMipmapLevels: U32);
            [cuMipmappedArrayDestroy] (hMipmappedArray: Ptr);
            [cuMipmappedArrayGetLevel]
                (pLevelArray: Out<8>, hMipmappedArray: Ptr, level: U32);

            // Textures and surfaces: CUDA_RESOURCE_DESC (144 bytes)
            [cuTexObjectCreate]
                (pTexObject: Out<8>, pResDesc: In<144>, pTexDesc: Ptr, pResViewDesc: Ptr);
            [cuTexObjectDestroy] (texObject: U64);
            [cuSurfObjectCreate] (pSurfObject: Out<8>, pResDesc: In<144>);
            [cuSurfObjectDestroy] (surfObject: U64);
            [cuModuleGetTexRef cuModuleGetSurfRef] (pRef: Out<8>, hmod: Ptr, name: Text);
            [cuTexRefSetArray cuTexRefSetMipmappedArray cuSurfRefSetArray]
                (hRef: Ptr, hArray: Ptr, Flags: U32);
            [cuTexRefSetAddress] (ByteOffset: Ptr, hTexRef: Ptr, dptr: U32, bytes: U32);
            [cuTexRefSetAddress_v2] (ByteOffset: Ptr, hTexRef: Ptr, dptr: U64, bytes: U64);
            [cuTexRefSetAddress2D] (hTexRef: Ptr, desc: In<16>, dptr: U32, Pitch: U32);
            [cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3]
                (hTexRef: Ptr, desc: In<24>, dptr: U64, Pitch: U64);

            // Tensor maps: CUtensorMap (128 bytes)
            [cuTensorMapEncodeTiled] (tensorMap: Out<128>, tensorDataType: U32, tensorRank: U32,
                globalAddress: U64, globalDim: PerDimension<8, 0>,
                globalStrides: PerDimension<8, 1>, boxDim: PerDimension<4, 0>,
                elementStrides: PerDimension<4, 0>, interleave: U32, swizzle: U32,
                l2Promotion: U32, oobFill: U32);
            [cuTensorMapEncodeIm2col] (tensorMap: Out<128>, tensorDataType: U32, tensorRank: U32,
                globalAddress: U64, globalDim: PerDimension<8, 0>,
                globalStrides: PerDimension<8, 1>, pixelBoxLowerCorner: Ptr,
                pixelBoxUpperCorner: Ptr, channelsPerPixel: U32, pixelsPerColumn: U32,
                elementStrides: PerDimension<4, 0>, interleave: U32, swizzle: U32,
                l2Promotion: U32, oobFill: U32);
            [cuTensorMapEncodeIm2colWide] (tensorMap: Out<128>, tensorDataType: U32,
                tensorRank: U32, globalAddress: U64, globalDim: PerDimension<8, 0>,
                globalStrides: PerDimension<8, 1>, pixelBoxLowerCornerWidth: I32,
                pixelBoxUpperCornerWidth: I32, channelsPerPixel: U32, pixelsPerColumn: U32,
                elementStrides: PerDimension<4, 0>, interleave: U32, mode: U32, swizzle: U32,
                l2Promotion: U32, oobFill: U32);
            [cuTensorMapReplaceAddress] (tensorMap: InOut<128>, globalAddress: U64);

            // 1-D copies
            [cuMemcpy cuMemcpy_ptds] (dst: U64, src: U64, ByteCount: U64);
            [cuMemcpyAsync cuMemcpyAsync_ptsz]
                (dst: U64, src: U64, ByteCount: U64, hStream: Ptr);
            [cuMemcpyPeer cuMemcpyPeer_ptds]
                (dstDevice: U64, dstContext: Ptr, srcDevice: U64, srcContext: Ptr, ByteCount: U64);
            [cuMemcpyPeerAsync cuMemcpyPeerAsync_ptsz]
                (dstDevice: U64, dstContext: Ptr, srcDevice: U64, srcContext: Ptr, ByteCount: U64,
                hStream: Ptr);
            [cuMemcpyHtoD] (dstDevice: U32, srcHost: Ptr, ByteCount: U32);
            [cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds]
                (dstDevice: U64, srcHost: Bytes<2>, ByteCount: U64);
            [cuMemcpyHtoDAsync] (dstDevice: U32, srcHost: Ptr, ByteCount: U32, hStream: Ptr);
            [cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2_ptsz]
                (dstDevice: U64, srcHost: Bytes<2>, ByteCount: U64, hStream: Ptr);
            [cuMemcpyDtoH] (dstHost: Ptr, srcDevice: U32, ByteCount: U32);
            [cuMemcpyDtoH_v2 cuMemcpyDtoH_v2_ptds]
                (dstHost: Ptr, srcDevice: U64, ByteCount: U64);
            [cuMemcpyDtoHAsync] (dstHost: Ptr, srcDevice: U32, ByteCount: U32, hStream: Ptr);
            [cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2_ptsz]
                (dstHost: Ptr, srcDevice: U64, ByteCount: U64, hStream: Ptr);
            [cuMemcpyDtoD] (dstDevice: U32, srcDevice: U32, ByteCount: U32);
            [cuMemcpyDtoD_v2 cuMemcpyDtoD_v2_ptds]
                (dstDevice: U64, srcDevice: U64, ByteCount: U64);
            [cuMemcpyDtoDAsync] (dstDevice: U32, srcDevice: U32, ByteCount: U32, hStream: Ptr);
            [cuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync_v2_ptsz]
                (dstDevice: U64, srcDevice: U64, ByteCount: U64, hStream: Ptr);

            // Copies from and to arrays
            [cuMemcpyDtoA] (dstArray: Ptr, dstOffset: U32, srcDevice: U32, ByteCount: U32);
            [cuMemcpyDtoA_v2 cuMemcpyDtoA_v2_ptds]
                (dstArray: Ptr, dstOffset: U64, srcDevice: U64, ByteCount: U64);
            [cuMemcpyAtoD] (dstDevice: U32, srcArray: Ptr, srcOffset: U32, ByteCount: U32);
            [cuMemcpyAtoD_v2 cuMemcpyAtoD_v2_ptds]
                (dstDevice: U64, srcArray: Ptr, srcOffset: U64, ByteCount: U64);
            [cuMemcpyHtoA] (dstArray: Ptr, dstOffset: U32, srcHost: Ptr, ByteCount: U32);
            [cuMemcpyHtoA_v2 cuMemcpyHtoA_v2_ptds]
                (dstArray: Ptr, dstOffset: U64, srcHost: Ptr, ByteCount: U64);
            [cuMemcpyHtoAAsync]
                (dstArray: Ptr, dstOffset: U32, srcHost: Ptr, ByteCount: U32, hStream: Ptr);
            [cuMemcpyHtoAAsync_v2 cuMemcpyHtoAAsync_v2_ptsz]
                (dstArray: Ptr, dstOffset: U64, srcHost: Ptr, ByteCount: U64, hStream: Ptr);
            [cuMemcpyAtoH] (dstHost: Ptr, srcArray: Ptr, srcOffset: U32, ByteCount: U32);
            [cuMemcpyAtoH_v2 cuMemcpyAtoH_v2_ptds]
                (dstHost: Ptr, srcArray: Ptr, srcOffset: U64, ByteCount: U64);
            [cuMemcpyAtoHAsync]
                (dstHost: Ptr, srcArray: Ptr, srcOffset: U32, ByteCount: U32, hStream: Ptr);
            [cuMemcpyAtoHAsync_v2 cuMemcpyAtoHAsync_v2_ptsz]
                (dstHost: Ptr, srcArray: Ptr, srcOffset: U64, ByteCount: U64, hStream: Ptr);
            [cuMemcpyAtoA]
                (dstArray: Ptr, dstOffset: U32, srcArray: Ptr, srcOffset: U32, ByteCount: U32);
            [cuMemcpyAtoA_v2 cuMemcpyAtoA_v2_ptds]
                (dstArray: Ptr, dstOffset: U64, srcArray: Ptr, srcOffset: U64, ByteCount: U64);

            // 2-D and 3-D copies: CUDA_MEMCPY2D (128 bytes, 96 in the first ABI), CUDA_MEMCPY3D
            // (200, 144 in the first ABI), CUDA_MEMCPY3D_PEER (200)
            [cuMemcpy2D cuMemcpy2DUnaligned] (pCopy: In<96>);
            [cuMemcpy2D_v2 cuMemcpy2D_v2_ptds cuMemcpy2DUnaligned_v2 cuMemcpy2DUnaligned_v2_ptds]
                (pCopy: In<128>);
            [cuMemcpy2DAsync] (pCopy: In<96>, hStream: Ptr);
            [cuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2_ptsz] (pCopy: In<128>, hStream: Ptr);
            [cuMemcpy3D] (pCopy: In<144>);
            [cuMemcpy3D_v2 cuMemcpy3D_v2_ptds] (pCopy: In<200>);
            [cuMemcpy3DAsync] (pCopy: In<144>, hStream: Ptr);
            [cuMemcpy3DAsync_v2 cuMemcpy3DAsync_v2_ptsz] (pCopy: In<200>, hStream: Ptr);
            [cuMemcpy3DPeer cuMemcpy3DPeer_ptds] (pCopy: In<200>);
            [cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz] (pCopy: In<200>, hStream: Ptr);

            // Copies by list and with attributes: CUmemcpyAttributes (24 bytes),
            // CUDA_MEMCPY3D_BATCH_OP (112), CUmemDecompressParams (64)
            [cuMemcpyWithAttributesAsync cuMemcpyWithAttributesAsync_ptsz]
                (dst: U64, src: U64, size: U64, attr: In<24>, hStream: Ptr);
            [cuMemcpy3DWithAttributesAsync cuMemcpy3DWithAttributesAsync_ptsz]
                (op: In<112>, flags: U64, hStream: Ptr);
            [cuMemcpyBatchAsync cuMemcpyBatchAsync_ptsz]
                (dsts: Array<8, 3>, srcs: Array<8, 3>, sizes: Array<8, 3>, count: U64,
                attrs: Array<24, 6>, attrsIdxs: Array<8, 6>, numAttrs: U64, failIdx: Ptr,
                hStream: Ptr);
            [cuMemcpyBatchAsync_v2 cuMemcpyBatchAsync_v2_ptsz]
                (dsts: Array<8, 3>, srcs: Array<8, 3>, sizes: Array<8, 3>, count: U64,
                attrs: Array<24, 6>, attrsIdxs: Array<8, 6>, numAttrs: U64, hStream: Ptr);
            [cuMemcpy3DBatchAsync cuMemcpy3DBatchAsync_ptsz]
                (numOps: U64, opList: Array<112, 0>, failIdx: Ptr, flags: U64, hStream: Ptr);
            [cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz]
                (numOps: U64, opList: Array<112, 0>, flags: U64, hStream: Ptr);
            [cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz]
                (paramsArray: Array<64, 1>, count: U64, flags: U32, errorIndex: Ptr, stream: Ptr);

            // Memsets
            [cuMemsetD8] (dstDevice: U32, uc: U8, N: U32);
            [cuMemsetD8_v2 cuMemsetD8_v2_ptds] (dstDevice: U64, uc: U8, N: U64);
            [cuMemsetD8Async cuMemsetD8Async_ptsz]
                (dstDevice: U64, uc: U8, N: U64, hStream: Ptr);
            [cuMemsetD16] (dstDevice: U32, us: U16, N: U32);
            [cuMemsetD16_v2 cuMemsetD16_v2_ptds] (dstDevice: U64, us: U16, N: U64);
            [cuMemsetD16Async cuMemsetD16Async_ptsz]
                (dstDevice: U64, us: U16, N: U64, hStream: Ptr);
            [cuMemsetD32] (dstDevice: U32, ui: U32, N: U32);
            [cuMemsetD32_v2 cuMemsetD32_v2_ptds] (dstDevice: U64, ui: U32, N: U64);
            [cuMemsetD32Async cuMemsetD32Async_ptsz]
                (dstDevice: U64, ui: U32, N: U64, hStream: Ptr);
            [cuMemsetD2D8] (dstDevice: U32, dstPitch: U32, uc: U8, Width: U32, Height: U32);
            [cuMemsetD2D8_v2 cuMemsetD2D8_v2_ptds]
                (dstDevice: U64, dstPitch: U64, uc: U8, Width: U64, Height: U64);
            [cuMemsetD2D8Async cuMemsetD2D8Async_ptsz]
                (dstDevice: U64, dstPitch: U64, uc: U8, Width: U64, Height: U64, hStream: Ptr);
            [cuMemsetD2D16] (dstDevice: U32, dstPitch: U32, us: U16, Width: U32, Height: U32);
            [cuMemsetD2D16_v2 cuMemsetD2D16_v2_ptds]
                (dstDevice: U64, dstPitch: U64, us: U16, Width: U64, Height: U64);
            [cuMemsetD2D16Async cuMemsetD2D16Async_ptsz]
                (dstDevice: U64, dstPitch: U64, us: U16, Width: U64, Height: U64, hStream: Ptr);
            [cuMemsetD2D32] (dstDevice: U32, dstPitch: U32, ui: U32, Width: U32, Height: U32);
            [cuMemsetD2D32_v2 cuMemsetD2D32_v2_ptds]
                (dstDevice: U64, dstPitch: U64, ui: U32, Width: U64, Height: U64);
            [cuMemsetD2D32Async cuMemsetD2D32Async_ptsz]
                (dstDevice: U64, dstPitch: U64, ui: U32, Width: U64, Height: U64, hStream: Ptr);

            // Modules and libraries
            [cuModuleLoad] (module: Out<8>, fname: Text);
            [cuModuleLoadData] (module: Out<8>, image: Ptr);
            [cuModuleLoadDataEx] (module: Out<8>, image: Ptr, numOptions: U32, options: Ptr,
                optionValues: Ptr);
            [cuModuleLoadFatBinary] (module: Out<8>, fatCubin: Ptr);
            [cuModuleUnload] (hmod: Ptr);
            [cuModuleGetFunction] (hfunc: Out<8>, hmod: Ptr, name: Text);
            [cuModuleGetGlobal] (dptr: Out<4>, bytes: Out<4>, hmod: Ptr, name: Text);
            [cuModuleGetGlobal_v2] (dptr: Out<8>, bytes: Out<8>, hmod: Ptr, name: Text);
            [cuLibraryLoadData] (library: Out<8>, code: Ptr, jitOptions: Ptr,
                jitOptionsValues: Ptr, numJitOptions: U32, libraryOptions: Ptr,
                libraryOptionValues: Ptr, numLibraryOptions: U32);
            [cuLibraryLoadFromFile] (library: Out<8>, fileName: Text, jitOptions: Ptr,
                jitOptionsValues: Ptr, numJitOptions: U32, libraryOptions: Ptr,
                libraryOptionValues: Ptr, numLibraryOptions: U32);
            [cuLibraryUnload] (library: Ptr);
            [cuLibraryGetKernel] (pKernel: Out<8>, library: Ptr, name: Text);
            [cuLibraryGetModule] (pMod: Out<8>, library: Ptr);
            [cuLibraryGetGlobal cuLibraryGetManaged]
                (dptr: Out<8>, bytes: Out<8>, library: Ptr, name: Text);
            [cuKernelGetFunction] (pFunc: Out<8>, kernel: Ptr);

            // Launches
            [cuLaunchKernel cuLaunchKernel_ptsz] (f: Function, gridDimX: U32, gridDimY: U32,
                gridDimZ: U32, blockDimX: U32, blockDimY: U32, blockDimZ: U32,
                sharedMemBytes: U32, hStream: Ptr, kernelParams: KernelParams, extra: Extra);
            [cuLaunchKernelEx cuLaunchKernelEx_ptsz] (config: LaunchConfig, f: Function,
                kernelParams: KernelParams, extra: Extra);
            [cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz] (f: Function,
                gridDimX: U32, gridDimY: U32, gridDimZ: U32, blockDimX: U32, blockDimY: U32,
                blockDimZ: U32, sharedMemBytes: U32, hStream: Ptr, kernelParams: KernelParams);
            [cuLaunchCooperativeKernelMultiDevice]
                (launchParamsList: Launches<1>, numDevices: U32, flags: U32);
            [cuLaunch] (f: Function);
            [cuLaunchGrid] (f: Function, grid_width: I32, grid_height: I32);
            [cuLaunchGridAsync] (f: Function, grid_width: I32, grid_height: I32, hStream: Ptr);
            [cuParamSetSize] (hfunc: Ptr, numbytes: U32);
            [cuParamSeti] (hfunc: Ptr, offset: I32, value: U32);
            [cuParamSetv] (hfunc: Ptr, offset: I32, ptr: Array<1, 3>, numbytes: U32);
            [cuParamSetTexRef] (hfunc: Ptr, texunit: I32, hTexRef: Ptr);
            [cuLaunchHostFunc cuLaunchHostFunc_ptsz]
                (hStream: Ptr, fn_: HostFunction, userData: UserData);
            [cuLaunchHostFunc_v2 cuLaunchHostFunc_v2_ptsz]
                (hStream: Ptr, fn_: HostFunction, userData: UserData, syncMode: U32);

            // Graphs: made
            [cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphAddHostNode
                cuGraphAddBatchMemOpNode cuGraphAddExternalSemaphoresSignalNode
                cuGraphAddExternalSemaphoresWaitNode cuGraphAddMemAllocNode]
                (phGraphNode: Out<8>, hGraph: Ptr, dependencies: Ptr, numDependencies: U64,
                nodeParams: Ptr);
            [cuGraphAddMemcpyNode cuGraphAddMemsetNode] (phGraphNode: Out<8>, hGraph: Ptr,
                dependencies: Ptr, numDependencies: U64, params: Ptr, ctx: Ptr);
            [cuGraphAddEventRecordNode cuGraphAddEventWaitNode] (phGraphNode: Out<8>, hGraph: Ptr,
                dependencies: Ptr, numDependencies: U64, event: Ptr);
            [cuGraphAddMemFreeNode] (phGraphNode: Out<8>, hGraph: Ptr, dependencies: Ptr,
                numDependencies: U64, dptr: U64);
            [cuGraphAddEmptyNode]
                (phGraphNode: Out<8>, hGraph: Ptr, dependencies: Ptr, numDependencies: U64);
            [cuGraphAddChildGraphNode] (phGraphNode: Out<8>, hGraph: Ptr, dependencies: Ptr,
                numDependencies: U64, childGraph: Cloned);
            [cuGraphAddNode] (phGraphNode: Out<8>, hGraph: Ptr, dependencies: Ptr,
                numDependencies: U64, nodeParams: NewNode);
            [cuGraphAddNode_v2 cuGraphAddNode_v3] (phGraphNode: Out<8>, hGraph: Ptr,
                dependencies: Ptr, dependencyData: Ptr, numDependencies: U64, nodeParams: NewNode);
            [cuGraphClone] (phGraphClone: Out<8>, originalGraph: Cloned);

            // Graphs: executable
            [cuGraphInstantiate cuGraphInstantiate_v2] (phGraphExec: Out<8>, hGraph: Graph,
                phErrorNode: Ptr, logBuffer: Ptr, bufferSize: U64);
            [cuGraphInstantiateWithFlags] (phGraphExec: Out<8>, hGraph: Graph, flags: U64);
            [cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz]
                (phGraphExec: Out<8>, hGraph: Graph, instantiateParams: In<32>);
            [cuGraphExecUpdate] (hGraphExec: Ptr, hGraph: Graph, hErrorNode_out: Ptr,
                updateResult_out: Ptr);
            [cuGraphExecUpdate_v2] (hGraphExec: Ptr, hGraph: Graph, resultInfo: Ptr);
            [cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2]
                (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<0>);
            [cuGraphExecMemcpyNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, copyParams: NodeParams<1>, ctx: Ptr);
            [cuGraphExecMemsetNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, memsetParams: NodeParams<2>, ctx: Ptr);
            [cuGraphExecHostNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<3>);
            [cuGraphExecChildGraphNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, childGraph: Graph);
            [cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent]
                (hGraphExec: Ptr, hNode: Ptr, event: Ptr);
            [cuGraphExecExternalSemaphoresSignalNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<8>);
            [cuGraphExecExternalSemaphoresWaitNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<9>);
            [cuGraphExecBatchMemOpNodeSetParams]
                (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<12>);
            [cuGraphExecNodeSetParams] (hGraphExec: Ptr, hNode: Ptr, nodeParams: NodeParams<255>);
            [cuGraphNodeSetEnabled] (hGraphExec: Ptr, hNode: Ptr, isEnabled: U32);
            [cuGraphUpload cuGraphUpload_ptsz cuGraphLaunch cuGraphLaunch_ptsz]
                (hGraphExec: Ptr, hStream: Ptr);
            [cuGraphExecDestroy] (hGraphExec: Ptr);

            // Captures whose nodes are read back
            [cuStreamBeginRecaptureToGraph cuStreamBeginRecaptureToGraph_ptsz] (hStream: Capture,
                mode: U32, hGraph: Ptr, callbackFunc: Ptr, userData: Ptr);
            [cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_ptsz]
                (hStream: Ptr, dependencies: Ptr, numDependencies: U64, flags: U32);
            [cuStreamUpdateCaptureDependencies_v2 cuStreamUpdateCaptureDependencies_v2_ptsz]
                (hStream: Ptr, dependencies: Ptr, dependencyData: Ptr, numDependencies: U64,
                flags: U32);
        }
    };
}
