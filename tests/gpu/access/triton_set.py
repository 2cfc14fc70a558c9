"""Triton kernels: elementwise, reductions, atomics, matrix products by pointers and tensor maps."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

torch.manual_seed(1)
torch.set_num_threads(1)


@triton.jit
def add(left, right, output, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    total = tl.load(left + offsets, mask=inside) + tl.load(right + offsets, mask=inside)
    tl.store(output + offsets, total, mask=inside)


@triton.jit
def softmax(output, source, pitch, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(source + row * pitch + offsets, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(output + row * pitch + offsets, values / tl.sum(values, axis=0), mask=inside)


@triton.jit
def layer_norm(source, weight, bias, output, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(source + row * columns + offsets, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    y = centred * scale * tl.load(weight + offsets, mask=inside) + tl.load(bias + offsets, mask=inside)
    tl.store(output + row * columns + offsets, y, mask=inside)


@triton.jit
def histogram(keys, counts, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    keys_here = tl.load(keys + offsets, mask=inside, other=0)
    tl.atomic_add(counts + keys_here, 1, mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        left = tl.load(a + rows[:, None] * K + k, mask=(rows[:, None] < M) & (k < K), other=0.0)
        right = tl.load(
            b + k[:, None] * N + columns, mask=(k[:, None] < K) & (columns < N), other=0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns, total, mask=(rows[:, None] < M) & (columns < N))


@triton.jit
def matmul_tensor_maps(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, output, length, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * length * WIDTH
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    width = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + width, mask=rows[:, None] < length, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    mixed = tl.zeros((BM, WIDTH), dtype=tl.float32)
    for start in range(0, length, BN):
        columns = start + tl.arange(0, BN)
        inside = columns[:, None] < length
        key = tl.load(k + head + columns[:, None] * WIDTH + width, mask=inside, other=0.0)
        value = tl.load(v + head + columns[:, None] * WIDTH + width, mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * 0.125
        scores = tl.where(columns[None, :] < length, scores, -float("inf"))
        now = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp(scores - now[:, None])
        keep = tl.exp(largest - now)
        total = total * keep + tl.sum(weights, axis=1)
        mixed = mixed * keep[:, None] + tl.dot(weights.to(tl.float16), value)
        largest = now
    target = output + head + rows[:, None] * WIDTH + width
    tl.store(target, (mixed / total[:, None]).to(tl.float16), mask=rows[:, None] < length)


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def near(what, got, wanted, tolerance):
    error = (got.float() - wanted.float()).abs().max().item()
    assert error < tolerance, f"{what}: {error}"


for count in (10_000, 4096):
    left, right = random(count), random(count)
    output = torch.empty_like(left)
    add[(triton.cdiv(count, 1024),)](left, right, output, count, BLOCK=1024)
    near("add", output, left + right, 1e-6)

source = random(37, 100)
output = torch.empty_like(source)
softmax[(37,)](output, source, source.stride(0), 100, BLOCK=128)
near("softmax", output, source.softmax(1), 1e-5)

weight, bias = random(100), random(100)
layer_norm[(37,)](source, weight, bias, output, 100, BLOCK=128)
near("layer_norm", output, torch.nn.functional.layer_norm(source, (100,), weight, bias), 1e-4)

keys = torch.randint(0, 16, (5000,), device="cuda", dtype=torch.int32)
counts = torch.zeros(16, device="cuda", dtype=torch.int32)
histogram[(triton.cdiv(5000, 512),)](keys, counts, 5000, BLOCK=512)
near("histogram", counts, torch.bincount(keys, minlength=16), 0.5)

for m, n, k in ((128, 128, 128), (100, 75, 90)):
    a, b = random(m, k, dtype=torch.float16), random(k, n, dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float32)
    matmul[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, BM=64, BN=64, BK=32)
    near("matmul", c, a.float() @ b.float(), 0.1)

a, b = random(128, 256, dtype=torch.float16), random(256, 192, dtype=torch.float16)
c = torch.empty(128, 192, device="cuda", dtype=torch.float16)
matmul_tensor_maps[(2, 3)](
    TensorDescriptor.from_tensor(a, [64, 64]),
    TensorDescriptor.from_tensor(b, [64, 64]),
    TensorDescriptor.from_tensor(c, [64, 64]),
    256,
    BM=64,
    BN=64,
    BK=64,
)
near("matmul_tensor_maps", c, a.float() @ b.float(), 0.5)

q, k, v = (random(4, 200, 64, dtype=torch.float16) for _ in range(3))
mixed = torch.empty_like(q)
attention[(triton.cdiv(200, 64), 4)](q, k, v, mixed, 200, WIDTH=64, BM=64, BN=64)
near("attention", mixed, torch.nn.functional.scaled_dot_product_attention(q, k, v), 0.01)
print("triton: 7 kernels agree")
