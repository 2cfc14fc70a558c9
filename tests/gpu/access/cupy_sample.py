"""CuPy: elementwise, reductions, kernels from source, sort, FFT, sparse matrices."""

import cupy
import cupyx.scipy.sparse as sparse

cupy.random.seed(1)
saxpy = cupy.RawKernel(
    r"""
extern "C" __global__ void saxpy(const float *x, float *y, float factor, int count)
{
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x)
        y[at] += factor * x[at];
}
""",
    "saxpy",
)
transpose = cupy.RawKernel(
    r"""
extern "C" __global__ void transpose(const float *from, float *to, int width, int height)
{
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = from[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width)
        to[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
""",
    "transpose",
)
square_sum = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "square_sum")
blend = cupy.ElementwiseKernel("T x, T y, T share", "T z", "z = x * share + y * (1 - share)", "blend")

x = cupy.random.rand(5000, dtype=cupy.float32)
y = cupy.arange(5000, dtype=cupy.float32)
saxpy((8,), (128,), (x, y, cupy.float32(2), cupy.int32(5000)))
m = x[:4900].reshape(70, 70)
t = cupy.empty((70, 70), dtype=cupy.float32)
transpose((5, 5), (16, 16), (m, t, cupy.int32(70), cupy.int32(70)))
assert bool((t == m.T).all())
values = [
    float(square_sum(x)),
    float(blend(x, y, cupy.float32(0.25)).sum()),
    float(m.sum(axis=0).max()),
    float(m.sum(axis=1).min()),
    float((m @ m).trace()),
    int(cupy.argmax(y)),
    float(cupy.sort(x)[17]),
    int(cupy.argsort(x)[3]),
    float(cupy.cumsum(x)[-1]),
    float(cupy.where(x > 0.5, x, y)[:100].mean()),
    float(y[::7].sum()),
    float(cupy.concatenate([x, y])[::-1].std()),
    float(abs(cupy.fft.fft(x[:4096]))[1]),
    float(abs(cupy.fft.fft2(m))[2, 3]),
    int(cupy.unique((x * 50).astype(cupy.int32)).size),
    int(cupy.histogram(x, bins=10)[0][4]),
]
matrix = sparse.csr_matrix((m > 0.9).astype(cupy.float32))
values.append(float((matrix @ x[:70]).sum()))
values.append(float((matrix @ m).sum()))
values.append(int(matrix.T.tocsr().nnz))
print("cupy: " + " ".join(f"{value:.4g}" for value in values))
