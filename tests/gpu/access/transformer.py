"""A small transformer trained for a few steps in PyTorch: attention, layer norm, GELU, AdamW."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 97, 64, 4, 32, 8


class Block(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.first = nn.LayerNorm(WIDTH)
        self.second = nn.LayerNorm(WIDTH)
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.attention(self.first(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            mixed = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.second(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(False), Block(True)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
losses = []
for step in range(6):
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), device="cuda")
    half = step >= 3
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
print(f"transformer: losses {' '.join(f'{loss:.2f}' for loss in losses)}")
