"""The functions of the runtime that ``streamsan run`` loads into this process.

They are looked up by name among what was loaded at the start of the process, as ``streamsan.h``
does it. Without the runtime there are none, and this module costs one look.
"""

import ctypes
import sys


class Runtime:
    """The runtime's functions. Nothing is read through the addresses that they get."""

    #: The answer of :meth:`issue_index` where nothing is recorded.
    NOTHING = 2**64 - 1

    def __init__(self, library):
        access = (ctypes.c_void_p, ctypes.c_size_t)
        naming = (ctypes.c_void_p, ctypes.c_char_p)
        self.host_read = _function(library, "streamsan_rt_host_read", access)
        self.host_write = _function(library, "streamsan_rt_host_write", access)
        self._name_stream = _function(library, "streamsan_rt_name_stream", naming)
        self._name_event = _function(library, "streamsan_rt_name_event", naming)
        self._name_memory = _function(library, "streamsan_rt_name_memory", naming)
        #: The index that the next driver call of the run gets, in whatever process.
        self.issue_index = _function(library, "streamsan_rt_issue_index", (), ctypes.c_uint64)

    def name_stream(self, handle, name):
        self._name_stream(handle, _text(name))

    def name_event(self, handle, name):
        self._name_event(handle, _text(name))

    def name_memory(self, address, name):
        self._name_memory(address, _text(name))


def _function(library, name, arguments, result=None):
    function = getattr(library, name)
    function.argtypes = arguments
    function.restype = result
    return function


def _text(name):
    # A name with a NUL inside is cut there.
    return str(name).split("\0", 1)[0].encode("utf-8", "replace")


def _find():
    if not sys.platform.startswith("linux"):
        return None
    try:
        # Without a file: the program with all that was loaded at its start. The interpreter's lock
        # is kept, so that the stack of an access is the one that made it.
        runtime = Runtime(ctypes.PyDLL(None))
    except (AttributeError, OSError):
        return None
    return None if runtime.issue_index() == Runtime.NOTHING else runtime


#: The runtime, or ``None`` where this process is not recorded.
RUNTIME = _find()
