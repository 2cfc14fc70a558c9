"""A tiny Llama of Hugging Face transformers, trained for some steps by its own Trainer-less loop:
pinned batches are uploaded with non_blocking copies, gradients are clipped, AdamW steps. Weights are
random. Nothing in it is unordered. Prints the last loss."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
)
model = LlamaForCausalLM(config).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = [torch.randint(0, 512, (4, 64)).pin_memory() for _ in range(6)]
for batch in batches:
    tokens = batch.cuda(non_blocking=True)
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
torch.cuda.synchronize()
print(f"{loss.item():.3f}")
