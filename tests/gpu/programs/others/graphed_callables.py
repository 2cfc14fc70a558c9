"""Two modules made into CUDA graphs by torch.cuda.make_graphed_callables and trained together.
Prints the number of steps."""

import itertools
import warnings

import torch

warnings.filterwarnings("ignore")
torch.manual_seed(0)
first = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Dropout(0.1)).cuda()
second = torch.nn.Sequential(torch.nn.Linear(512, 64), torch.nn.Dropout(0.2)).cuda()
optimizer = torch.optim.SGD(itertools.chain(first.parameters(), second.parameters()), lr=0.1)
first = torch.cuda.make_graphed_callables(first, (torch.randn(64, 256, device="cuda"),))
second = torch.cuda.make_graphed_callables(
    second, (torch.randn(64, 512, device="cuda", requires_grad=True),)
)
for _ in range(8):
    optimizer.zero_grad(set_to_none=True)
    outputs = second(first(torch.rand(64, 256, device="cuda")))
    torch.nn.functional.mse_loss(outputs, torch.randn(64, 64, device="cuda")).backward()
    optimizer.step()
torch.cuda.synchronize()
print(8)
