"""A Triton kernel, compiled on the spot and launched on a stream of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(left, right, output, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    total = tl.load(left + offsets, mask=inside) + tl.load(right + offsets, mask=inside)
    tl.store(output + offsets, total, mask=inside)


COUNT = 10_000
left = torch.arange(COUNT, device="cuda", dtype=torch.int32)
right = left * 2
output = torch.empty_like(left)
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(5):
        add[(triton.cdiv(COUNT, 256),)](left, right, output, COUNT, BLOCK=256)
stream.synchronize()
print(f"triton: {int(output.sum(dtype=torch.int64))}")
