"""Calls the library of this test in all the ways in which Python code comes to run, and compares
the frames that the library reports with those of the interpreter's own frame objects.

Runs on every CPython from 3.9 on. Arguments: the library, then the part to run."""

import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import sys
import tempfile
import threading
import types

LIBRARY = sys.argv[1]
RELEASING = ctypes.CDLL(LIBRARY)  # Gives up the lock during a call.
HOLDING = ctypes.PyDLL(LIBRARY)
for library in (RELEASING, HOLDING):
    library.frames_text.restype = ctypes.c_size_t
    library.frames_text.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    library.walk_for.argtypes = [ctypes.c_uint64]
    library.walk_for.restype = ctypes.c_uint64

# Names of functions are qualified from 3.11 on.
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"
LIMIT = 400
failures = []
seen = 0


class State(threading.local):
    def __init__(self):
        self.text = ctypes.create_string_buffer(1 << 20)
        self.function = RELEASING.frames_text
        self.by_stack = 1
        self.latest = []


STATE = State()


def expected(frame):
    """What the interpreter says of the frame and its callers."""
    frames = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, NAME).encode("utf-8", "replace").decode()
        frames.append((code.co_filename, name, frame.f_lineno or 0))
        frame = frame.f_back
    return frames


def probe(buffer, limit=LIMIT):
    # One line, so that both see the same.
    wanted, size = expected(sys._getframe()), STATE.function(ctypes.addressof(buffer), len(buffer), limit, STATE.by_stack)
    return wanted, buffer.raw[:size].decode().splitlines()


def check(label="", limit=LIMIT):
    """Compares in all four modes; gives the merged stack."""
    for function in (RELEASING.frames_text, HOLDING.frames_text):
        for by_stack in (0, 1):
            STATE.function, STATE.by_stack = function, by_stack
            wanted, lines = probe(STATE.text, limit)
            found = [tuple(line.split("\t")[1:]) for line in lines if line.startswith("P\t")]
            found = [(file, name, int(line)) for file, name, line in found]
            compare(label, wanted[:limit], found)
            cut = "cut" in lines
            if cut != (len(wanted) > limit):
                failures.append(f"{label}: cut: {cut}, of {len(wanted)} frames with {limit}")
            natives = [line.split("\t")[1] for line in lines if line.startswith("N\t")]
            if not cut and "_PyEval_EvalFrameDefault" in natives:
                failures.append(f"{label}: a call of the evaluation function is left over: {lines}")
    STATE.latest = lines
    return lines


def compare(label, wanted, found):
    global seen
    seen += 1
    if wanted == found:
        return
    failures.append(f"{label}:")
    for index in range(max(len(wanted), len(found))):
        one = wanted[index] if index < len(wanted) else None
        other = found[index] if index < len(found) else None
        mark = " " if one == other else "!"
        failures.append(f"  {mark} {one}\n  {mark} {other}")


# The ways to run code.


def in_function():
    def inner():
        check("inner function")

    check("function")
    inner()


class Thing:
    check("class body")

    def __init__(self):
        check("constructor")

    def method(self):
        check("method")

    @classmethod
    def of_class(cls):
        check("class method")

    @staticmethod
    def of_nothing():
        check("static method")

    @property
    def value(self):
        return check("property")

    def __add__(self, other):
        return check("operator")

    def __getattr__(self, name):
        return check("attribute")

    def __enter__(self):
        check("enter")

    def __exit__(self, *exception):
        check("exit")

    def __iter__(self):
        return self

    def __next__(self):
        check("next")
        raise StopIteration

    def __lt__(self, other):
        check("less than")
        return False

    def __del__(self):
        check("finaliser")


def in_class():
    thing = Thing()
    thing.method()
    Thing.of_class()
    thing.of_nothing()
    thing.value
    thing + 1
    thing.no_such
    with thing:
        check("with")
    for _ in thing:
        pass
    sorted([thing, thing])
    max([1, 2], key=lambda value: check("key of max") and value)
    del thing
    cycle = Thing()
    cycle.itself = cycle
    del cycle
    gc.collect()


def warm():
    # Often enough that the interpreter replaces instructions by quicker ones.
    for _ in range(60):
        Thing()
        next(numbers(1))
        sum(numbers(2))


def numbers(count):
    for index in range(count):
        check("generator")
        yield index


def delegating():
    yield from numbers(2)
    for value in numbers(1):
        yield value


def in_generators():
    for _ in numbers(2):
        check("between")
    list(delegating())
    stopped = delegating()
    next(stopped)
    stopped.send(None)
    with contextlib.suppress(ValueError):
        stopped.throw(ValueError())
    stopped.close()
    list(check("generator expression") for _ in range(2))
    with managed():
        check("in a context")


@contextlib.contextmanager
def managed():
    check("before a context")
    try:
        yield
    finally:
        check("after a context")


async def waiting(depth):
    if depth:
        await waiting(depth - 1)
    await asyncio.sleep(0)
    check("coroutine")


async def ticking():
    for index in range(2):
        check("asynchronous generator")
        yield index


async def in_coroutines():
    await waiting(3)
    await asyncio.gather(waiting(0), waiting(1))
    async for _ in ticking():
        check("asynchronous loop")
    [value async for value in ticking()]


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        check("decorator")
        return function(*arguments, **named)

    return wrapper


@decorated
@functools.lru_cache(None)
@functools.partial
def through_c():
    check("behind functions in C")


def in_expressions():
    (lambda: check("lambda"))()
    [check("list comprehension") for _ in range(2)]
    {check("set comprehension") and 1 for _ in range(2)}
    {index: check("dict comprehension") for index in range(2)}
    [[check("nested comprehension") for _ in range(1)] for _ in range(1)]
    list(map(lambda value: check("map"), [1, 2]))
    list(filter(lambda value: check("filter"), [1]))
    sorted([2, 1], key=lambda value: check("key of sorted") and value)
    functools.reduce(lambda one, other: check("reduce") and 1, [1, 2, 3])
    functools.partial(check, "partial")()
    functools.partial(functools.partial(lambda: check("partial lambda")))()
    through_c()
    check(
        "a call"
        + " of"
        + str(
            len("several lines"),
        )
    )
    check("a tail", **dict(limit=LIMIT)); check("of the same line")
    try:
        raise ValueError
    except ValueError:
        check("handler")
    finally:
        check("finally")


def in_text():
    exec("check('text')\n\n\ncheck('later line')", globals())
    eval("check('value')")
    exec(compile("def made():\n  check('made')\nmade()", "<made>", "exec"), globals())
    # Names and paths in characters of one, two and four bytes.
    for name in ("café.py", "жук.py", "🐍.py", "ascii only.py"):
        stem = name.split(".")[0].replace(" ", "_").replace("🐍", "𝔭")
        source = "\n" * 300 + f"def {stem}():\n    check('names')\n{stem}()"
        exec(compile(source, name, "exec"), globals())
    # Lines far apart, and one before the other.
    exec(compile("if 1:\n  check('a'); \\\n  check('b')\n" + "\n" * 5000 + "check('c')", "<far>", "exec"), globals())
    # A function of many instructions.
    source = "def long():\n" + "    x = [1, 2, 3]\n" * 3000 + "    check('long')\n" + "    x = 1\n" * 3000
    exec(source + "    check('longer')\nlong()", globals())
    # The code of one function for another.
    moved = types.FunctionType(in_text.__code__.replace(co_name="moved"), globals())
    moved.__code__ = in_function.__code__
    moved()


def in_modules():
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "imported_here.py"), "w") as file:
            file.write("import __main__\n\n__main__.check('import')\n")
        sys.path.insert(0, directory)
        import imported_here
        sys.path.pop(0)


def in_threads():
    threads = [threading.Thread(target=lambda: [in_class(), in_generators()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A thread that Python did not start.
    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(foreign)
    libc = ctypes.CDLL(None)
    for _ in range(3):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, callback, None)
        libc.pthread_join(thread, None)
    # One that runs no Python: no frames, and the library's function straight.
    for _ in range(3):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, RELEASING.walk_for, ctypes.c_void_p(1))
        count = ctypes.c_void_p(1)
        libc.pthread_join(thread, ctypes.byref(count))
        if count.value:
            failures.append(f"{count.value} frames in a thread without Python")


def foreign(argument):
    check("foreign thread")
    return 0


def recursion(depth, limit):
    if depth:
        recursion(depth - 1, limit)
    else:
        check("recursion", limit)


def in_depth():
    for limit in (1, 5, 64, 119, 120, 121, 122, 123, LIMIT):
        recursion(118, limit)


def in_order():
    """Native and Python frames between one another."""
    found = []
    items = (ctypes.c_int * 2)(2, 1)

    def less(one, other):
        inner = check("comparison in C")
        found.append(inner)
        return 0

    compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    comparison = compare_type(less)

    def sorting():
        ctypes.CDLL(None).qsort(items, 2, 4, comparison)

    sorting()
    lines = [line.split("\t") for line in found[0]]
    kinds = [line[2].split(".")[-1] if line[0] == "P" else line[1] for line in lines]
    order = [kind for kind in kinds if kind in ("probe", "less", "qsort", "qsort_r", "sorting", "frames_text", "in_order")]
    if order[0] != "frames_text" or [kind for kind in order[1:] if kind[:5] != "qsort"] != ["probe", "less", "sorting", "in_order"]:
        failures.append(f"order: {kinds}")
    first = next((index for index, kind in enumerate(order) if kind[:5] == "qsort"), -1)
    if order[first - 1] != "less":
        failures.append(f"order around qsort: {kinds}")


def watched():
    """With functions that the interpreter calls for each event."""
    for install in (sys.setprofile, sys.settrace):
        install(lambda *event: None)
        try:
            in_function()
            in_class()
            in_expressions()
        finally:
            install(None)
    # The call itself comes from such a function.
    once = []

    def observe(frame, event, argument):
        if not once:
            once.append(check("observer"))

    sys.setprofile(observe)
    in_function()
    sys.setprofile(None)


def frames():
    in_function()
    in_class()
    in_generators()
    in_expressions()
    in_text()
    in_modules()
    in_threads()
    in_depth()
    in_order()
    asyncio.run(in_coroutines())
    watched()
    warm()
    print(f"{seen} stacks", file=sys.stderr)


class Late:
    def __del__(self):
        RELEASING.walk_for(1)
        HOLDING.walk_for(1)


def shutdown():
    """The interpreter ends while threads walk."""
    import atexit

    def forever():
        while True:
            RELEASING.walk_for(7)

    globals()["late"] = Late()
    sys.modules["late"] = Late()
    atexit.register(lambda: RELEASING.walk_for(2))
    for _ in range(8):
        threading.Thread(target=forever, daemon=True).start()
    RELEASING.walk_for(5)


def refused():
    """Prints the reason, for builds that give no frames."""
    failures.clear()
    _, lines = probe(STATE.text)
    print("\n".join(line for line in lines if not line.startswith("N")))


{"frames": frames, "shutdown": shutdown, "refused": refused}[sys.argv[2]]()
if failures:
    sys.exit("\n".join(failures[:60]))
