"""Generation with a tiny Llama of Hugging Face transformers with random weights. The argument names
the cache: "default", or "offloaded", which keeps the layers' keys and values on the host and brings
the next layer's in a stream of its own while one computes. Prints the tokens' sum."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
)
model = LlamaForCausalLM(config).cuda().eval()
prompt = torch.randint(0, 512, (2, 32), device="cuda")
options = {} if sys.argv[1] == "default" else {"cache_implementation": "offloaded"}
with torch.no_grad():
    tokens = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False,
        pad_token_id=0, **options,
    )
torch.cuda.synchronize()
print(tokens.sum().item())
