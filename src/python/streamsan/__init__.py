"""Tells streamsan what a Python program does and what things are called.

The functions call the runtime that ``streamsan run`` loads into the process. Without the command
they do nothing, so that they can stay in the program::

    import streamsan

    streamsan.name(cache, "kv")              # a tensor, a stream or an event
    streamsan.host_read(pinned)              # ordinary code reads its bytes now
    with streamsan.region("step"):           # said beside a race that pytest --streamsan reports
        ...

Objects are recognised by what they offer (``data_ptr``, ``__cuda_array_interface__``,
``__cuda_stream__``, ``cuda_stream``, ``cuda_event``, ...); no package is imported for them. The
functions are those of the C header ``streamsan.h``, whose documentation is docs/host-side.md.
"""

import contextlib
import threading

from . import _marks, _objects
from ._runtime import RUNTIME

__all__ = ["host_read", "host_write", "is_recorded", "name", "region"]


def is_recorded():
    """Whether this process runs under ``streamsan run``."""
    return RUNTIME is not None


def name(value, text):
    """Names a stream, an event, or the allocation that the object's memory lies in, in reports.

    A stream pool that gives a stream a new name each time it hands it out also tells by it that the
    stream has a new user. A name is at most 256 bytes of UTF-8.

    Raises ``TypeError`` for an object that is none of these; without the command nothing is looked
    at, and nothing is raised.
    """
    if RUNTIME is None:
        return
    stream = _objects.stream(value)
    if stream is not None:
        RUNTIME.name_stream(stream, text)
        return
    event = _objects.event(value)
    if event is not None:
        RUNTIME.name_event(event, text)
        return
    address = _objects.address(value)
    if address is None:
        kind = type(value).__name__
        raise TypeError(f"{kind} is no stream, event or memory that streamsan knows")
    RUNTIME.name_memory(address, text)


def host_read(value):
    """The calling thread reads the bytes of an object in host memory now. Elements that lie apart
    (a slice with a step, a column) are told one by one.

    Raises ``TypeError`` for an object without memory; without the command nothing is looked at.
    """
    if RUNTIME is not None:
        for address, count in _objects.ranges(value):
            RUNTIME.host_read(address, count)


def host_write(value):
    """The calling thread writes the bytes of an object in host memory now; see ``host_read``."""
    if RUNTIME is not None:
        for address, count in _objects.ranges(value):
            RUNTIME.host_write(address, count)


class region(contextlib.ContextDecorator):  # noqa: N801 - used like a function
    """A stretch of the program with a name, for ``with`` or as a decorator.

    A race that ``pytest --streamsan`` reports names the regions that its accesses were issued in.
    Elsewhere a region does nothing. Regions may lie inside each other.
    """

    def __init__(self, text):
        self._text = str(text)
        self._begun = threading.local()

    def __enter__(self):
        if _marks.directory() is not None:
            stack = getattr(self._begun, "stack", None)
            if stack is None:
                stack = self._begun.stack = []
            stack.append(_marks.index())
        return self

    def __exit__(self, *raised):
        stack = getattr(self._begun, "stack", None)
        if stack:
            _marks.write(
                {
                    "region": self._text,
                    "thread": threading.get_native_id(),
                    "begin": stack.pop(),
                    "end": _marks.index(),
                }
            )
        return False
