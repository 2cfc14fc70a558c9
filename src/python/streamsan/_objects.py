"""The kind of an object: stream, event or memory, told by what it offers and not by its type.

Nothing here imports PyTorch, CuPy or NumPy, and the objects of other packages that offer the same
are recognised too:

- a stream: ``__cuda_stream__`` (CUDA Python's protocol), ``cuda_stream`` (PyTorch);
- an event: ``cuda_event`` (PyTorch);
- memory: ``data_ptr`` (PyTorch), ``__cuda_array_interface__`` (Numba's protocol, which CuPy and JAX
  have too), ``__array_interface__`` (NumPy), an object of ``ctypes``, buffers that can be written.

Sources: <https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html>,
<https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>,
<https://numpy.org/doc/stable/reference/arrays.interface.html>.
"""

import ctypes


def stream(value):
    """The handle of a stream, ``None`` where the object is none."""
    protocol = getattr(value, "__cuda_stream__", None)
    if protocol is not None:
        # A method of current versions, an attribute of older ones.
        version_and_handle = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    handle = getattr(value, "cuda_stream", None)
    return None if handle is None else int(handle)


def event(value):
    """The handle of an event, ``None`` where the object is none. PyTorch makes the event of the
    driver when it is first recorded; before that the handle is 0."""
    handle = getattr(value, "cuda_event", None)
    return None if handle is None else int(getattr(handle, "value", handle) or 0)


def address(value):
    """The first byte of an object's memory, ``None`` where it has none."""
    ranges = _layout(value)
    return None if ranges is None else ranges[0]


def ranges(value):
    """The bytes of an object as ``(address, bytes)``, one piece a run of bytes without a gap.

    Raises ``TypeError`` where the object has no memory that is known.
    """
    layout = _layout(value)
    if layout is None:
        raise TypeError(f"{type(value).__name__} has no memory that streamsan knows")
    start, size, shape, strides = layout
    return _pieces(start, size, shape, strides)


def _layout(value):
    """``(address, bytes of an element, shape, strides in bytes)``."""
    for find in (_tensor, _array, _ctypes, _buffer):
        layout = find(value)
        if layout is not None:
            return layout
    return None


def _tensor(value):
    data_ptr = getattr(value, "data_ptr", None)
    if not callable(data_ptr):
        return None
    start = int(data_ptr())
    if hasattr(value, "element_size") and hasattr(value, "stride"):
        size = int(value.element_size())
        strides = tuple(int(step) * size for step in value.stride())
        return start, size, tuple(int(length) for length in value.shape), strides
    # A storage: bytes without a shape. PyTorch has `nbytes` as a method there.
    nbytes = getattr(value, "nbytes", 0)
    return start, 1, (int(nbytes() if callable(nbytes) else nbytes),), (1,)


def _array(value):
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(value, name, None)
        if isinstance(interface, dict) and isinstance(interface.get("data"), tuple):
            # `<f4`: the order of bytes, the kind, and the bytes of an element.
            size = int(interface["typestr"][2:])
            shape = tuple(int(length) for length in interface["shape"])
            strides = interface.get("strides") or _contiguous(shape, size)
            return int(interface["data"][0]), size, shape, tuple(int(step) for step in strides)
    return None


def _ctypes(value):
    try:
        return ctypes.addressof(value), 1, (ctypes.sizeof(value),), (1,)
    except TypeError:
        return None


def _buffer(value):
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if view.readonly or not view.c_contiguous or view.nbytes == 0:
        return None
    byte = ctypes.c_char.from_buffer(view.cast("B"))
    return ctypes.addressof(byte), 1, (view.nbytes,), (1,)


def _contiguous(shape, size):
    strides = []
    for length in reversed(shape):
        strides.append(size)
        size *= length
    return tuple(reversed(strides))


def _pieces(start, size, shape, strides):
    """Runs of bytes without a gap, of a layout whose strides may be 0 or negative."""
    if 0 in shape:
        return
    axes = []
    for length, step in zip(shape, strides):
        if step < 0:
            start += step * (length - 1)
            step = -step
        # A stride of 0 repeats the same bytes.
        if length > 1 and step > 0:
            axes.append((step, length))
    axes.sort()
    run = size
    while axes and axes[0][0] <= run:
        step, length = axes.pop(0)
        run = max(run, step * (length - 1) + run)
    yield from _runs(start, run, axes[::-1])


def _runs(start, run, axes):
    if not axes:
        yield start, run
        return
    (step, length), inner = axes[0], axes[1:]
    for index in range(length):
        yield from _runs(start + index * step, run, inner)
