"""CuPy keeps the plan of a transform, with its work area, and gives it to every stream that asks:
cupy_plan.py racy|clean. The clean form lets the second stream wait for the first."""

import sys

import cupy

IS_RACY = sys.argv[1] == "racy"
LENGTH = 1 << 20
first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
signals = [cupy.random.random((4, LENGTH)).astype(cupy.complex64) for _ in range(2)]
cupy.fft.fft(signals[0])
cupy.cuda.Device().synchronize()
for _ in range(3):
    with first:
        cupy.fft.fft(signals[0])
    if not IS_RACY:
        second.wait_event(first.record())
    with second:
        cupy.fft.fft(signals[1])
    if not IS_RACY:
        first.wait_event(second.record())
cupy.cuda.Device().synchronize()
