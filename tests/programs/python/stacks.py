"""Calls the driver from all sorts of Python code and writes down, for each call, the stack that
the interpreter itself tells: one JSON object a line, into the file named by the argument.

Two of the calls race: `first_writer` against `second_writer`, on two streams. Runs on every
CPython from 3.9 on."""

import asyncio
import ctypes
import functools
import json
import sys
import threading

cuda = ctypes.CDLL("libcuda.so.1")
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"
BYTES = 4096
calls = []


def stack(frame):
    frames = []
    while frame is not None:
        frames.append([frame.f_code.co_filename, getattr(frame.f_code, NAME), frame.f_lineno])
        frame = frame.f_back
    return frames


def driver(name, *arguments):
    function = getattr(cuda, name)
    # One line, which is the innermost frame's in both.
    here, result = stack(sys._getframe()), function(*arguments)
    calls.append({"api": name, "stack": here})
    if result != 0:
        sys.exit(f"{name} gives {result}")


def made(name, *arguments):
    handle = ctypes.c_uint64()
    driver(name, ctypes.byref(handle), *arguments)
    return ctypes.c_uint64(handle.value)


driver("cuInit", 0)
device = ctypes.c_int()
driver("cuDeviceGet", ctypes.byref(device), 0)
context = made("cuCtxCreate_v2", 0, device)
streams = [made("cuStreamCreate", 1) for _ in range(2)]
buffer = made("cuMemAlloc_v2", ctypes.c_size_t(BYTES))
host = (ctypes.c_uint8 * BYTES)()
size = ctypes.c_size_t(BYTES)


def clear(stream=0):
    driver("cuMemsetD8Async", buffer, 1, size, streams[stream])
    return stream


class Work:
    def __init__(self):
        clear()

    def method(self):
        clear()

    @classmethod
    def of_class(cls):
        clear()

    def __lt__(self, other):
        clear()
        return False

    def __del__(self):
        clear()


def generator():
    for _ in range(2):
        clear()
        yield


async def coroutine(depth):
    if depth:
        return await coroutine(depth - 1)
    await asyncio.sleep(0)
    clear()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


@decorated
@functools.lru_cache(None)
def behind_others():
    clear()


def recursion(depth):
    clear() if depth == 0 else recursion(depth - 1)


def events():
    event = made("cuEventCreate", 2)
    driver("cuEventRecord", event, streams[0])
    driver("cuStreamWaitEvent", streams[1], event, 0)
    driver("cuMemsetD8Async", buffer, 2, size, streams[1])
    driver("cuStreamSynchronize", streams[1])


def ordered():
    work = Work()
    work.method()
    Work.of_class()
    sorted([work, work])
    del work
    list(generator())
    [clear() for _ in range(2)]
    (lambda: clear())()
    list(map(lambda stream: clear(stream), [0]))
    sorted([0, 0], key=clear)
    functools.partial(clear, 0)()
    behind_others()
    asyncio.run(coroutine(3))
    recursion(90)
    exec("clear()")
    thread = threading.Thread(target=clear)
    thread.start()
    thread.join()
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    compare = callback(lambda one, other: clear())
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
    events()


def first_writer():
    driver("cuMemsetD8Async", buffer, 3, size, streams[0])


def second_writer():
    driver("cuMemsetD8Async", buffer, 4, size, streams[1])


ordered()
driver("cuMemcpyHtoD_v2", buffer, host, size)
driver("cuCtxSynchronize")
first_writer()
second_writer()
driver("cuCtxSynchronize")
driver("cuMemFree_v2", buffer)

with open(sys.argv[1], "w") as out:
    for call in calls:
        out.write(json.dumps(call) + "\n")
