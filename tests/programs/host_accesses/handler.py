"""Touches page-locked memory too early, and then makes a real mistake, of which Python's own handler
tells the line. To be run with `-X faulthandler`."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
PAGE = 4096


def must(answered):
    if answered != 0:
        raise SystemExit(f"a call of the driver answered {answered}")


def early():
    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    pinned, memory = ctypes.c_void_p(), ctypes.c_uint64()
    must(cuda.cuInit(0))
    must(cuda.cuDeviceGet(ctypes.byref(device), 0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuMemAllocHost_v2(ctypes.byref(pinned), ctypes.c_size_t(16 * PAGE)))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16 * PAGE)))
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    must(cuda.cuMemcpyDtoHAsync_v2(pinned, memory, ctypes.c_size_t(16 * PAGE), stream))
    ctypes.string_at(pinned.value + PAGE, 1)
    print("read", flush=True)


def mistake():
    ctypes.string_at(8, 1)


early()
mistake()
