"""DDP with PyTorch's ZeroRedundancyOptimizer, whose parameters are broadcast after each step.
Started by torchrun, one process a GPU. Nothing in it is unordered. Rank 0 prints the last loss."""

import os

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
network = DistributedDataParallel(network, device_ids=[rank])
optimizer = ZeroRedundancyOptimizer(network.parameters(), torch.optim.AdamW, lr=1e-3)
torch.manual_seed(rank)
for _ in range(5):
    loss = network(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
if rank == 0:
    print(f"{loss.item():.3f}")
dist.destroy_process_group()
