"""A sweep of matrix products through cuBLAS and cuBLASLt, as PyTorch calls them."""

import torch

torch.manual_seed(1)
torch.set_num_threads(1)
SIZES = [(64, 64, 64), (128, 256, 64), (127, 65, 33), (512, 512, 512), (1, 1024, 256), (16, 16, 8192)]
done = 0


def matrix(rows, columns, dtype, transposed):
    if transposed:
        return matrix(columns, rows, dtype, False).t()
    if dtype == torch.int8:
        return torch.randint(-8, 8, (rows, columns), dtype=dtype, device="cuda")
    return torch.randn(rows, columns, device="cuda").to(dtype)


for dtype, tf32 in (
    (torch.float32, False),
    (torch.float32, True),
    (torch.float16, False),
    (torch.bfloat16, False),
    (torch.float64, False),
):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    for m, n, k in SIZES:
        for left, right in ((False, False), (True, False), (False, True), (True, True)):
            a, b = matrix(m, k, dtype, left), matrix(k, n, dtype, right)
            torch.mm(a, b)
            done += 1
        # With a bias and an activation: cuBLASLt's epilogues.
        torch.addmm(torch.ones(n, device="cuda", dtype=dtype), a, b)
        done += 1
    batch = torch.randn(5, 48, 40, device="cuda").to(dtype)
    torch.bmm(batch, batch.transpose(1, 2))
    torch.mv(batch[0], batch[1, 0])
    torch.dot(batch[0, 0], batch[1, 0])
    done += 3

for m, n, k in ((64, 64, 64), (128, 256, 512)):
    torch._int_mm(matrix(m, k, torch.int8, False), matrix(n, k, torch.int8, False).t())
    done += 1

one = torch.tensor(1.0, device="cuda")
for m, n, k in ((64, 64, 64), (256, 128, 512)):
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    done += 1
torch.cuda.synchronize()
print(f"cublas: {done} products")
