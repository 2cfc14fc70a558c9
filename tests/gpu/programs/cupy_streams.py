"""CuPy on two non-blocking streams with an event between, and a kernel from source."""

import cupy

fill = cupy.RawKernel(
    r"""
extern "C" __global__ void fill(int *out, int value, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        out[index] = value + index;
}
""",
    "fill",
)

COUNT = 1 << 14
producer = cupy.cuda.Stream(non_blocking=True)
consumer = cupy.cuda.Stream(non_blocking=True)
data = cupy.zeros(COUNT, dtype=cupy.int32)
cupy.cuda.get_current_stream().synchronize()
totals = []
for round_ in range(4):
    with producer:
        fill((COUNT // 256,), (256,), (data, cupy.int32(round_), cupy.int32(COUNT)))
        filled = producer.record()
    consumer.wait_event(filled)
    with consumer:
        total = data.sum(dtype=cupy.int64)
        totals.append(int(total.get()))
print(f"cupy: {totals}")
