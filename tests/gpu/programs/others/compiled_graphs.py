"""A small network compiled with torch.compile(mode="reduce-overhead"), which replays CUDA graphs, in
inference and in training. Nothing in it is unordered. Prints a checksum."""

import torch

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 8)
).cuda()
compiled = torch.compile(network, mode="reduce-overhead")
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(6):
    inputs = torch.randn(32, 64, device="cuda")
    loss = compiled(inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
with torch.no_grad():
    for _ in range(6):
        outputs = compiled(torch.randn(32, 64, device="cuda")).clone()
torch.cuda.synchronize()
print(f"{outputs.double().abs().mean().item():.2f}")
