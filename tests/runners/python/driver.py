"""An upload and a download in two streams, over the driver API by ctypes."""

import ctypes

LENGTH = 4096
NON_BLOCKING = 1
HOST, DEVICE = 1, 2


class _Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        (f"{end}_{name}", kind)
        for end in ("source", "destination")
        for name, kind in (
            ("x", ctypes.c_size_t),
            ("y", ctypes.c_size_t),
            ("type", ctypes.c_uint),
            ("host", ctypes.c_void_p),
            ("device", ctypes.c_uint64),
            ("array", ctypes.c_void_p),
            ("pitch", ctypes.c_size_t),
        )
    ] + [("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


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


class Pipeline:
    """A device buffer that one stream fills from page-locked memory and another one reads."""

    def __init__(self):
        self._cuda = cuda = _driver()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _must(cuda.cuInit(0))
        _must(cuda.cuDeviceGet(ctypes.byref(device), 0))
        _must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        _must(cuda.cuCtxSetCurrent(context))
        self.uploads, self.downloads = _stream(cuda), _stream(cuda)
        self.source, self.destination = _pinned(cuda), _pinned(cuda)
        self.memory, self.event = ctypes.c_uint64(), ctypes.c_void_p()
        self._length = ctypes.c_size_t(LENGTH)
        _must(cuda.cuMemAlloc_v2(ctypes.byref(self.memory), self._length))
        _must(cuda.cuEventCreate(ctypes.byref(self.event), 0))

    def upload(self):
        _must(self._cuda.cuMemcpyHtoDAsync_v2(self.memory, self.source, self._length, self.uploads))

    def wait(self):
        """Downloads from now on are behind the uploads so far."""
        _must(self._cuda.cuEventRecord(self.event, self.uploads))
        _must(self._cuda.cuStreamWaitEvent(self.downloads, self.event, 0))

    def download(self, every_second=False):
        """All bytes, or every second one, from the first on."""
        destination, memory = self.destination, self.memory
        if not every_second:
            _must(
                self._cuda.cuMemcpyDtoHAsync_v2(destination, memory, self._length, self.downloads)
            )
            return
        copy = _Copy2D(
            source_type=DEVICE,
            source_device=memory.value,
            source_pitch=2,
            destination_type=HOST,
            destination_host=destination.value,
            destination_pitch=2,
            width=1,
            height=LENGTH // 2,
        )
        _must(self._cuda.cuMemcpy2DAsync_v2(ctypes.byref(copy), self.downloads))

    def synchronize(self):
        for stream in (self.uploads, self.downloads):
            _must(self._cuda.cuStreamSynchronize(stream))


def round_trip(with_wait):
    """Uploads in one stream, downloads in another one, which waits for the first or does not."""
    pipeline = Pipeline()
    pipeline.upload()
    if with_wait:
        pipeline.wait()
    pipeline.download()
    pipeline.synchronize()
