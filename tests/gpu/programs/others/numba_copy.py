"""numba: an array of 4 MiB goes to the device by to_device, from pageable memory in the default
stream, and a kernel in another stream adds one to it. The copy may still be on its way when the call
returns, but numba's streams are blocking ones, which wait for the default stream: nothing is
unordered. Prints the first numbers."""

import numpy

if not hasattr(numpy, "row_stack"):  # numba names it, NumPy has dropped it
    numpy.row_stack = numpy.vstack
from numba import cuda


@cuda.jit
def add_one(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


stream = cuda.stream()
values = cuda.to_device(numpy.zeros(1 << 20, dtype=numpy.float32))
add_one[4096, 256, stream](values)
stream.synchronize()
print(values.copy_to_host()[:3])
