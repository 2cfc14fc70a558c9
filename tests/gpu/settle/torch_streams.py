"""PyTorch on two streams, whose verdict depends on the bytes that kernels touch:
torch_streams.py views|graphs|product|training racy|clean [STEPS]

    views     two strided views of one tensor, written in two streams; the clean form keeps them to
              different rows
    graphs    the same in two CUDA graphs, each replayed in its stream
    product   a product (cuBLAS) reads a buffer in the default stream while a side stream copies the
              next batch into it; the clean form waits in both directions
    training  a training loop, whose batches a side stream fetches; the racy form never waits for them
"""

import sys
import time

import torch

NAME, IS_RACY = sys.argv[1], sys.argv[2] == "racy"
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
side = torch.cuda.Stream()
default = torch.cuda.current_stream()


def views():
    table = torch.zeros(2048, 256, device="cuda")
    torch.cuda.synchronize()
    even, other = table[0::2], table[0::4] if IS_RACY else table[1::2]
    for _ in range(STEPS):
        even.add_(1)
        with torch.cuda.stream(side):
            other.add_(1)


def graphs():
    table = torch.zeros(2048, 256, device="cuda")
    parts = [table[0::2], table[0::4] if IS_RACY else table[1::2]]
    captured = []
    for part in parts:
        part.add_(1)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            part.add_(1)
        captured.append(graph)
    torch.cuda.synchronize()
    for _ in range(STEPS):
        captured[0].replay()
        with torch.cuda.stream(side):
            captured[1].replay()


def product():
    weight = torch.randn(1024, 1024, device="cuda")
    buffer = torch.empty(1024, 1024, device="cuda")
    batch = torch.randn(1024, 1024).pin_memory()
    torch.cuda.synchronize()
    for _ in range(STEPS):
        with torch.cuda.stream(side):
            if not IS_RACY:
                side.wait_stream(default)
            buffer.copy_(batch, non_blocking=True)
        default.wait_stream(side)
        buffer @ weight


def training():
    layers = [torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)]
    network = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(network.parameters())
    batches = [torch.randn(4096, 1024).pin_memory() for _ in range(4)]

    def fetch(step):
        with torch.cuda.stream(side):
            return batches[step % 4].to("cuda", non_blocking=True)

    begin = None
    ahead = fetch(0)
    for step in range(STEPS):
        if step == 3:
            torch.cuda.synchronize()
            begin = time.monotonic()
        if not IS_RACY:
            default.wait_stream(side)
        batch = ahead
        batch.record_stream(default)
        ahead = fetch(step + 1)
        loss = (network(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    if begin is not None:
        print(f"loop: {1000 * (time.monotonic() - begin) / (STEPS - 3):.3f} ms a step")


{"views": views, "graphs": graphs, "product": product, "training": training}[NAME]()
torch.cuda.synchronize()
