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
            [cuCtxCreate cuCtxCreate_v2] (pctx: Out<8>, flags: U32, dev: I32);
            [cuCtxCreate_v3] (pctx: Out<8>, paramsArray: Ptr, numParams: I32, flags: U32, dev: I32);
            [cuCtxCreate_v4] (pctx: Out<8>, ctxCreateParams: Ptr, flags: U32, dev: I32);
            [cuCtxDestroy cuCtxDestroy_v2] (ctx: Ptr);
            [cuCtxAttach] (pctx: Out<8>, flags: U32);
            [cuCtxDetach] (ctx: Ptr);
            [cuCtxPushCurrent cuCtxPushCurrent_v2] (ctx: Ptr);
            [cuCtxPopCurrent cuCtxPopCurrent_v2] (pctx: Out<8>);
            [cuCtxSetCurrent] (ctx: Ptr);
            [cuCtxSynchronize] ();
            [cuCtxSynchronize_v2] (ctx: Ptr);
            [cuCtxRecordEvent cuCtxWaitEvent] (hCtx: Ptr, hEvent: Ptr);
            [cuDevicePrimaryCtxRetain] (pctx: Out<8>, dev: I32);
            [cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2] (dev: I32);
            [cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2] (dev: I32);

            // Streams
            [cuStreamCreate] (phStream: OutStream, Flags: U32);
            [cuStreamCreateWithPriority] (phStream: OutStream, flags: U32, priority: I32);
            [cuGreenCtxStreamCreate]
                (phStream: OutStream, greenCtx: Ptr, flags: U32, priority: I32);
            [cuStreamDestroy cuStreamDestroy_v2] (hStream: Ptr);
            [cuStreamSynchronize cuStreamSynchronize_ptsz] (hStream: Ptr);
            [cuStreamQuery cuStreamQuery_ptsz] (hStream: Ptr);
            [cuStreamWaitEvent cuStreamWaitEvent_ptsz] (hStream: Ptr, hEvent: Ptr, Flags: U32);
            [cuStreamBeginCapture cuStreamBeginCapture_ptsz] (hStream: Ptr);
            [cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz] (hStream: Ptr, mode: U32);
            [cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz]
                (hStream: Ptr, hGraph: Ptr, dependencies: Ptr, dependencyData: Ptr,
                numDependencies: U64, mode: U32);
            [cuStreamEndCapture cuStreamEndCapture_ptsz] (hStream: Ptr, phGraph: Out<8>);
            [cuStreamAddCallback cuStreamAddCallback_ptsz]
                (hStream: Ptr, callback: StreamCallback, userData: UserData, flags: U32);

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
                (dstDevice: U64, srcHost: Ptr, ByteCount: U64);
            [cuMemcpyHtoDAsync] (dstDevice: U32, srcHost: Ptr, ByteCount: U32, hStream: Ptr);
            [cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2_ptsz]
                (dstDevice: U64, srcHost: Ptr, ByteCount: U64, hStream: Ptr);
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
            [cuLaunchHostFunc cuLaunchHostFunc_ptsz]
                (hStream: Ptr, fn_: HostFunction, userData: UserData);
            [cuLaunchHostFunc_v2 cuLaunchHostFunc_v2_ptsz]
                (hStream: Ptr, fn_: HostFunction, userData: UserData, syncMode: U32);
        }
    };
}
