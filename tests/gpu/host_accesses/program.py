"""Programs of run.py: `program.py NAME racy|clean [STEPS]`. What takes STEPS prints the seconds of its
loop, without what starting takes."""

import os
import sys
import time

import torch

name, racy = sys.argv[1], sys.argv[2] == "racy"
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 0


def to_cpu():
    """A result is brought to the host without waiting, and compared at once."""
    x = torch.ones(1 << 20, device="cuda")
    pinned = torch.empty(1 << 20, pin_memory=True)
    for _ in range(4):
        pinned.copy_(x, non_blocking=racy)
        bool((pinned[:16] == 1).all())
        torch.cuda.synchronize()
    y = x.to("cpu", non_blocking=racy)
    bool((y == 1).all())


def refilled():
    """A page-locked buffer is filled again while its upload may run."""
    side = torch.cuda.Stream()
    pinned = torch.empty(1 << 20, pin_memory=True)
    device = torch.empty(1 << 20, device="cuda")
    event = torch.cuda.Event()
    for step in range(8):
        if not racy and step:
            event.synchronize()
        pinned.fill_(step)
        with torch.cuda.stream(side):
            device.copy_(pinned, non_blocking=True)
            event.record(side)
    torch.cuda.synchronize()


def compiled():
    """Compiled code for the host reads a tensor whose copy from the device nobody has waited for."""

    @torch.compile
    def use(y):
        return (y * 2 + 1).sum()

    use(torch.ones(4096))
    x = torch.ones(4096, device="cuda")
    for _ in range(4):
        y = x.to("cpu", non_blocking=True)
        if not racy:
            torch.cuda.synchronize()
        use(y)
        torch.cuda.synchronize()


def fsdp_hook():
    """FSDP2 brings gradients to the host; a hook reads one while that copy may run."""
    import torch.distributed as dist
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29577")
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=0, world_size=1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    for layer in (model[0], model[2]):
        fully_shard(layer, offload_policy=CPUOffloadPolicy())
    fully_shard(model, offload_policy=CPUOffloadPolicy())

    def hook(parameter):
        if not racy:
            torch.cuda.synchronize()
        float(parameter.grad.to_local().flatten()[0])

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    best = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(4):
        best.zero_grad()
        model(torch.ones(64, 512, device="cuda")).square().mean().backward()
        best.step()
    torch.cuda.synchronize()
    dist.destroy_process_group()


def training(workers=0):
    """A training whose loader hands out page-locked batches; prints a loss now and then."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024))
    model = model.cuda()
    best = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 1024))

    def epoch(last):
        loader = torch.utils.data.DataLoader(data, batch_size=128, pin_memory=True, num_workers=workers)
        for step, (batch,) in enumerate(loader):
            if step >= last:
                break
            batch = batch.cuda(non_blocking=True)
            loss = (model(batch) - batch).square().mean()
            best.zero_grad()
            loss.backward()
            best.step()
        return loss

    # Modules are loaded, and the caching allocators have what they need.
    epoch(8)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    left = steps or 64
    while left > 0:
        loss = epoch(left)
        left -= 32
    torch.cuda.synchronize()
    if steps:
        print(f"seconds {time.perf_counter() - begin:.6f}")
    else:
        print(f"loss {loss.item():.4f}")


def device_only():
    """Nothing of the host's memory is used asynchronously."""
    x = torch.randn(2048, 2048, device="cuda")
    x = torch.tanh(x @ x)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        x = torch.tanh(x @ x)
    torch.cuda.synchronize()
    print(f"seconds {time.perf_counter() - begin:.6f}")


programs = {
    "to_cpu": to_cpu,
    "refilled": refilled,
    "compiled": compiled,
    "fsdp_hook": fsdp_hook,
    "training": training,
    "training_workers": lambda: training(2),
    "device_only": device_only,
}
if __name__ == "__main__":
    programs[name]()
