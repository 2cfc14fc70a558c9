"""Marks: which calls of the run belong to a test or a region, told by their issue indices.

The pytest plugin asks for marks by naming a directory in the environment (``DIRECTORY``). Each
process writes a file of its own there, one JSON object a line, so that processes that are killed
leave what they have written and the processes of one run need no lock. The trace itself holds no
marks: an index parts the calls before it from those after it.
"""

import json
import os
import threading

from ._runtime import RUNTIME

#: Names the directory that marks go to.
DIRECTORY = "STREAMSAN_MARKS"

_lock = threading.Lock()
_file = None
_pid = None


def directory():
    """Where marks go; ``None`` where nobody asks for them or this process is not recorded."""
    return os.environ.get(DIRECTORY) if RUNTIME is not None else None


def index():
    """The index that the next call of the run gets."""
    return RUNTIME.issue_index()


def write(mark):
    """Appends a mark to the file of this process."""
    global _file, _pid
    where = directory()
    if where is None:
        return
    with _lock:
        # A forked child has a file of its own.
        if _pid != os.getpid():
            _pid = os.getpid()
            _file = open(os.path.join(where, f"{_pid}.jsonl"), "a", encoding="utf-8")
        _file.write(json.dumps({"pid": _pid, **mark}) + "\n")
        _file.flush()


def read(where):
    """All marks of a directory, those of one process in the order in which they were written."""
    marks = []
    for name in sorted(os.listdir(where)):
        with open(os.path.join(where, name), encoding="utf-8") as file:
            for line in file:
                try:
                    marks.append(json.loads(line))
                except ValueError:
                    # The last line of a process that was killed while it wrote.
                    break
    return marks
