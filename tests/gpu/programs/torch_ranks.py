"""Programs of several ranks over NCCL, each clean and with one wait missing.

    torchrun --standalone --nproc-per-node N torch_ranks.py KIND (clean|racy)

KIND: `ddp` (DistributedDataParallel; a metric is summed over the ranks beside it), `fsdp2`
(`fully_shard`), `tensor_parallel` (a split pair of linear layers by hand), `send_recv` (each rank
sends to the next one). The racy twin of `ddp`, `tensor_parallel` and `send_recv` starts a collective
with `async_op=True` and does not `wait()` for it; that of `fsdp2` saves the parameters in a side stream
that does not `wait_stream` for the optimizer.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS = 4
BATCH, WIDTH = 64, 512


def model():
    layers = [nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 16)).cuda()


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    data = torch.randn(BATCH, WIDTH, generator=generator).cuda()
    wanted = torch.randint(16, (BATCH,), generator=generator).cuda()
    return data, wanted


def ddp(rank, ranks, racy):
    net = nn.parallel.DistributedDataParallel(model(), device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    total = torch.zeros((), device="cuda")
    for step in range(STEPS):
        data, wanted = batch(step, rank)
        loss = nn.functional.cross_entropy(net(data), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric = loss.detach().clone()
        work = dist.all_reduce(metric, async_op=True)
        if not racy:
            work.wait()
        total += metric
    return total.item() / (STEPS * ranks)


def fsdp2(rank, ranks, racy):
    from torch.distributed.fsdp import fully_shard

    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    # One kernel for each parameter: those over lists of tensors are known to write any of them.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    shapes = [parameter.to_local().shape for parameter in net.parameters()]
    saved = [torch.empty(shape, pin_memory=True) for shape in shapes]
    side = torch.cuda.Stream()
    for step in range(STEPS):
        data, wanted = batch(step, rank)
        loss = nn.functional.cross_entropy(net(data), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not racy:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for copy, parameter in zip(saved, net.parameters()):
                copy.copy_(parameter.to_local(), non_blocking=True)
        # The next step writes the parameters again.
        torch.cuda.current_stream().wait_stream(side)
    side.synchronize()
    return sum(copy.square().sum().item() for copy in saved)


def tensor_parallel(rank, ranks, racy):
    torch.manual_seed(7)
    columns = torch.randn(WIDTH, WIDTH, device="cuda") / WIDTH**0.5
    rows = torch.randn(WIDTH, WIDTH, device="cuda") / WIDTH**0.5
    mine = slice(rank * WIDTH // ranks, (rank + 1) * WIDTH // ranks)
    columns, rows = columns[:, mine].contiguous(), rows[mine].contiguous()
    data, _ = batch(0, 0)
    for _ in range(STEPS):
        part = nn.functional.gelu(data @ columns) @ rows
        work = dist.all_reduce(part, async_op=True)
        if not racy:
            work.wait()
        data = nn.functional.layer_norm(data + part, (WIDTH,))
    return data.abs().mean().item()


def send_recv(rank, ranks, racy):
    own, _ = batch(0, rank)
    result = torch.zeros((), device="cuda")
    for _ in range(STEPS):
        received = torch.empty_like(own)
        if ranks == 1:
            # A rank does not send to itself outside of a group: what it gathers is its own.
            works = [dist.all_gather_into_tensor(received, own, async_op=True)]
        else:
            operations = [
                dist.P2POp(dist.isend, own, (rank + 1) % ranks),
                dist.P2POp(dist.irecv, received, (rank - 1) % ranks),
            ]
            works = dist.batch_isend_irecv(operations)
        if not racy:
            for work in works:
                work.wait()
        result += received.square().mean()
        for work in works:
            work.wait()
        own = received * 0.5
    return result.item()


def main():
    kind, how = sys.argv[1:]
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    dist.init_process_group("nccl", device_id=device)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    programs = {p.__name__: p for p in (ddp, fsdp2, tensor_parallel, send_recv)}
    value = programs[kind](rank, ranks, how == "racy")
    torch.cuda.synchronize()
    if rank == 0:
        print(f"{kind} of {ranks}: {value:.3f}" if how == "clean" else f"{kind} of {ranks}: done")
    dist.destroy_process_group()


main()
