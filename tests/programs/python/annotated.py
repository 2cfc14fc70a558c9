"""Names and host accesses by the Python package: `annotated.py early|late|apart`.

The objects offer what those of PyTorch, CUDA Python and NumPy offer; the driver is called by
ctypes. `early` reads a result before its download is known to be over, `late` behind it; `apart`
reads at once, but only the elements that the download leaves alone.
"""

import sys

import streamsan
from driver import LENGTH, Pipeline


class Tensor:
    """Page-locked bytes, from `offset` on, every `step`-th."""

    def __init__(self, address, offset=0, step=1):
        self._address, self._step = address + offset, step
        self.shape = (LENGTH // step,)

    def data_ptr(self):
        return self._address

    def element_size(self):
        return 1

    def stride(self):
        return (self._step,)


class Stream:
    def __init__(self, handle):
        self.cuda_stream = handle.value


class ProtocolStream:
    def __init__(self, handle):
        self._handle = handle.value

    def __cuda_stream__(self):
        return (0, self._handle)


class Event:
    def __init__(self, handle):
        self.cuda_event = handle.value


class DeviceArray:
    def __init__(self, address):
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (LENGTH,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
        }


def main(when):
    pipeline = Pipeline()
    streamsan.name(Stream(pipeline.uploads), "upload")
    streamsan.name(ProtocolStream(pipeline.downloads), "download")
    streamsan.name(Event(pipeline.event), "uploaded")
    streamsan.name(DeviceArray(pipeline.memory.value), "kv")
    result = Tensor(pipeline.destination.value)
    streamsan.name(result, "result")
    streamsan.host_write(Tensor(pipeline.source.value))
    with streamsan.region("step"):
        pipeline.upload()
        pipeline.wait()
        pipeline.download(every_second=when == "apart")
    if when == "late":
        pipeline.synchronize()
    if when == "apart":
        result = Tensor(pipeline.destination.value, offset=1, step=2)
    streamsan.host_read(result)
    pipeline.synchronize()
    print("recorded" if streamsan.is_recorded() else "not recorded")


if __name__ == "__main__":
    main(sys.argv[1])
