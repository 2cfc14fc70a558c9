"""A small training loop in PyTorch, with a copy stream that feeds it and waits where it must."""

import torch

torch.manual_seed(1)
torch.use_deterministic_algorithms(False)
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
copies = torch.cuda.Stream()
losses = []
for step in range(12):
    batch = torch.full((32, 64), float(step % 4)).pin_memory()
    with torch.cuda.stream(copies):
        on_device = batch.to(device, non_blocking=True)
    torch.cuda.current_stream().wait_stream(copies)
    on_device.record_stream(torch.cuda.current_stream())
    loss = (model(on_device) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
parameters = sum(parameter.numel() for parameter in model.parameters())
print(f"torch: {parameters} parameters, losses {' '.join(f'{loss:.3f}' for loss in losses)}")
