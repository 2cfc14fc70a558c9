"""The example by which PyTorch's notes on CUDA semantics explain what a stream race is: a sum in a
side stream may begin before the default stream has filled its input. Racy."""

import torch

side = torch.cuda.Stream()
values = torch.empty((100, 100), device="cuda").normal_(0.0, 1.0)
with torch.cuda.stream(side):
    total = torch.sum(values)
torch.cuda.synchronize()
print(tuple(total.shape))
