"""An upload and a download in two streams, over the driver API by ctypes."""

import ctypes

LENGTH = 4096
NON_BLOCKING = 1


def _driver():
    return ctypes.CDLL("libcuda.so.1")


def _must(result):
    assert result == 0, f"the driver answered {result}"


def _stream(cuda):
    stream = ctypes.c_void_p()
    _must(cuda.cuStreamCreate(ctypes.byref(stream), NON_BLOCKING))
    return stream


def _pinned(cuda):
    memory = ctypes.c_void_p()
    _must(cuda.cuMemAllocHost_v2(ctypes.byref(memory), ctypes.c_size_t(LENGTH)))
    return memory


def round_trip(with_wait):
    """Uploads in one stream and downloads in another one, which waits for the first, or does not."""
    cuda = _driver()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _must(cuda.cuInit(0))
    _must(cuda.cuDeviceGet(ctypes.byref(device), 0))
    _must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _must(cuda.cuCtxSetCurrent(context))
    upload, download = _stream(cuda), _stream(cuda)
    source, destination = _pinned(cuda), _pinned(cuda)
    memory, event = ctypes.c_uint64(), ctypes.c_void_p()
    length = ctypes.c_size_t(LENGTH)
    _must(cuda.cuMemAlloc_v2(ctypes.byref(memory), length))
    _must(cuda.cuEventCreate(ctypes.byref(event), 0))
    _must(cuda.cuMemcpyHtoDAsync_v2(memory, source, length, upload))
    if with_wait:
        _must(cuda.cuEventRecord(event, upload))
        _must(cuda.cuStreamWaitEvent(download, event, 0))
    _must(cuda.cuMemcpyDtoHAsync_v2(destination, memory, length, download))
    for stream in (upload, download):
        _must(cuda.cuStreamSynchronize(stream))
