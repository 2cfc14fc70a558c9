"""The kind of objects, and the bytes that they have, against a count byte by byte."""

import ctypes
import itertools

import pytest
from streamsan import _objects

START = 0x1000


class Tensor:
    """An object like PyTorch's tensors."""

    def __init__(self, shape, stride, size):
        self.shape, self._stride, self._size = shape, stride, size

    def data_ptr(self):
        return START

    def element_size(self):
        return self._size

    def stride(self):
        return self._stride


class Array:
    """An object like the arrays of NumPy, CuPy and Numba."""

    def __init__(self, name, shape, strides, size):
        interface = {"data": (START, False), "shape": shape, "typestr": f"<f{size}", "version": 3}
        setattr(self, name, {**interface, "strides": strides})


class Stream:
    cuda_stream = 0x77


class ProtocolStream:
    def __cuda_stream__(self):
        return (0, 0x78)


class Event:
    cuda_event = 0x79


def by_bytes(shape, strides, size):
    """The addresses of all bytes of all elements."""
    touched = set()
    for index in itertools.product(*map(range, shape)):
        first = START + sum(at * step for at, step in zip(index, strides))
        touched.update(range(first, first + size))
    return touched


LAYOUTS = [
    (shape, strides)
    for rank in range(4)
    for shape in itertools.product((0, 1, 2, 3), repeat=rank)
    for strides in itertools.product((-3, -1, 0, 1, 2, 4), repeat=rank)
]


@pytest.mark.parametrize("size", [1, 4])
def test_pieces_are_the_bytes_of_the_elements(size):
    for shape, steps in LAYOUTS:
        strides = tuple(step * size for step in steps)
        pieces = list(_objects._pieces(START, size, shape, strides))
        told = set()
        for address, count in pieces:
            told.update(range(address, address + count))
        assert told == by_bytes(shape, strides, size), (shape, steps)


def test_what_is_contiguous_is_one_piece():
    assert list(_objects.ranges(Tensor((2, 3, 5), (15, 5, 1), 4))) == [(START, 120)]
    # Transposed: the same bytes.
    assert list(_objects.ranges(Tensor((5, 3, 2), (1, 5, 15), 4))) == [(START, 120)]
    assert list(_objects.ranges(Tensor((), (), 8))) == [(START, 8)]


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
def test_arrays(name):
    assert list(_objects.ranges(Array(name, (2, 3), None, 4))) == [(START, 24)]
    every_second = Array(name, (2,), (8,), 4)
    assert list(_objects.ranges(every_second)) == [(START, 4), (START + 8, 4)]


def test_memory_of_python_itself():
    numbers = (ctypes.c_int * 4)()
    assert list(_objects.ranges(numbers)) == [(ctypes.addressof(numbers), 16)]
    letters = bytearray(b"letters")
    ((address, count),) = _objects.ranges(letters)
    assert ctypes.string_at(address, count) == b"letters"


def test_streams_and_events():
    assert _objects.stream(Stream()) == 0x77
    assert _objects.stream(ProtocolStream()) == 0x78
    assert _objects.event(Event()) == 0x79
    for other in (Tensor((1,), (1,), 1), 5, "text", None, b"constant"):
        assert _objects.stream(other) is None
        assert _objects.event(other) is None


@pytest.mark.parametrize("value", [5, "text", None, b"constant", object()])
def test_what_has_no_memory(value):
    assert _objects.address(value) is None
    with pytest.raises(TypeError, match="has no memory"):
        _objects.ranges(value)
