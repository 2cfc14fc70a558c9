"""A tensor is changed in a side stream while the current stream reads it: one wait is missing."""

import torch

data = torch.ones(1 << 20, device="cuda")
side = torch.cuda.Stream()
torch.cuda.synchronize()


def produce():
    with torch.cuda.stream(side):
        data.mul_(2)  # the write


def consume():
    return data + 1  # the read


produce()
consume()
torch.cuda.synchronize()
print("done")
