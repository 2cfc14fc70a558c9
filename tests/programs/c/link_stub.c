/* Something to link with where no libcuda.so.1 is installed. Built as a shared object under that
 * name and never loaded: the programs load the real driver or the simulated one. */
#define STUB(name) int name(void) { return 999; }
STUB(cuInit)
STUB(cuDeviceGet)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuCtxSetCurrent)
STUB(cuCtxSynchronize)
STUB(cuMemAlloc_v2)
STUB(cuMemFree_v2)
STUB(cuMemsetD8Async)
STUB(cuStreamCreate)
STUB(cuStreamSynchronize)
STUB(cuStreamDestroy_v2)
STUB(cuGetProcAddress_v2)
