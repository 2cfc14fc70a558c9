"""A training step captured whole into a CUDA graph, after the warm-up in a side stream that PyTorch's
notes on CUDA graphs prescribe, and replayed on new inputs. Prints the number of replays."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.Dropout(0.2), torch.nn.Linear(512, 64), torch.nn.Dropout(0.1)
).cuda()
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 256, device="cuda"), torch.randn(64, 64, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    criterion(model(inputs), targets).backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    criterion(model(inputs), targets).backward()
    optimizer.step()
for _ in range(8):
    inputs.copy_(torch.randn(64, 256, device="cuda"))
    targets.copy_(torch.randn(64, 64, device="cuda"))
    graph.replay()
torch.cuda.synchronize()
print(8)
