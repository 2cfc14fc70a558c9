"""A small network captured into a CUDA graph and replayed, with copies in and out in a stream of
their own, ordered as PyTorch's documentation says. Prints a checksum."""

import torch

torch.manual_seed(0)
device = torch.device("cuda")
network = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)
).to(device)
inputs = torch.randn(32, 256, device=device)

warm_up = torch.cuda.Stream()
warm_up.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm_up), torch.no_grad():
    for _ in range(3):
        network(inputs)
torch.cuda.current_stream().wait_stream(warm_up)

graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    outputs = network(inputs)

copying = torch.cuda.Stream()
host = torch.randn(20, 32, 256).pin_memory()
results = torch.empty(20, 32, 64).pin_memory()
for step in range(20):
    with torch.cuda.stream(copying):
        inputs.copy_(host[step], non_blocking=True)
    torch.cuda.current_stream().wait_stream(copying)
    graph.replay()
    copying.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copying):
        results[step].copy_(outputs, non_blocking=True)
torch.cuda.synchronize()
print(f"{results.double().abs().mean().item():.3f}")
