"""Trains a small transformer and prints the microseconds a step."""

import time

import torch

torch.manual_seed(0)
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0), 4
).cuda()
optimiser = torch.optim.AdamW(model.parameters(), foreach=False)
data = torch.randn(16, 64, 256, device="cuda")


def step():
    optimiser.zero_grad(set_to_none=True)
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimiser.step()


for _ in range(30):
    step()
torch.cuda.synchronize()
begin = time.perf_counter()
STEPS = 200
for _ in range(STEPS):
    step()
torch.cuda.synchronize()
print(f"{(time.perf_counter() - begin) / STEPS * 1e6:.0f}")
