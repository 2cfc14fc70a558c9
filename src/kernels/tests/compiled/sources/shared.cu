// Kernels that stage data in shared memory.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// kernel transpose: p0=write p1=read
// range: bounded
// why: shape
// launch: block=32,8,1 grid=1..3,1..3,1 p2=0..96 p3=0..96
extern "C" __global__ void transpose(float *to, const float *from, int width, int height)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width)
            to[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// kernel stencil: p0=write p1=read
// range: bounded
// why: shape
// launch: block=64,1,1 grid=1..3,1,1 p2=1..192
extern "C" __global__ void stencil(float *to, const float *from, int n)
{
    __shared__ float cache[64 + 4];
    int i = AT, at = threadIdx.x + 2;
    cache[at] = i < n ? from[i] : 0;
    if (threadIdx.x < 2) {
        cache[at - 2] = i >= 2 ? from[i - 2] : 0;
        cache[at + 64] = i + 64 < n ? from[i + 64] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int j = -2; j <= 2; j++)
        sum += cache[at + j];
    if (i < n)
        to[i] = sum;
}

// kernel stencil_2d: p0=write p1=read
// range: exact
// launch: block=8,8,1 grid=1..4,1..4,1 p2=3..40 p3=3..40
extern "C" __global__ void stencil_2d(float *to, const float *from, int width, int height)
{
    int x = AT + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= width - 1 || y >= height - 1)
        return;
    const float *at = from + y * width + x;
    to[y * width + x] = 0.25f * (at[-1] + at[1] + at[-width] + at[width]);
}

// kernel reduce: p0=write p1=read
// range: exact
// launch: block=64,1,1 p2=0..300
extern "C" __global__ void reduce(float *to, const float *from, int n)
{
    __shared__ float parts[64];
    int i = AT;
    parts[threadIdx.x] = i < n ? from[i] : 0;
    __syncthreads();
    for (int step = 32; step > 0; step >>= 1) {
        if (threadIdx.x < step)
            parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        to[blockIdx.x] = parts[0];
}

// kernel reduce_dynamic: p0=read-write p1=read
// range: exact
// launch: block=32,1,1 grid=1..4,1,1 shared=128
extern "C" __global__ void reduce_dynamic(int *to, const int *from)
{
    extern __shared__ int parts[];
    parts[threadIdx.x] = from[AT];
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < (int)blockDim.x; i++)
            sum += parts[i];
        to[blockIdx.x] += sum;
    }
}

// kernel warp_sum: p0=write p1=read
// range: exact
// launch: block=64,1,1 grid=1..4,1,1
extern "C" __global__ void warp_sum(int *to, const int *from)
{
    int value = from[AT];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0)
        to[AT / 32] = value;
}

// kernel broadcast_index: p0=write p1=read p2=read
// range: anchored
// why: memory
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void broadcast_index(int *to, const int *from, const int *indices)
{
    int index = threadIdx.x == 0 ? indices[blockIdx.x] : 0;
    index = __shfl_sync(0xffffffff, index, 0);
    to[AT] = from[index + threadIdx.x];
}

// kernel scan: p0=write p1=read
// range: exact
// launch: block=64,1,1 grid=1..3,1,1
extern "C" __global__ void scan(int *to, const int *from)
{
    __shared__ int sums[2][64];
    int at = threadIdx.x, side = 0;
    sums[0][at] = from[AT];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        sums[1 - side][at] = sums[side][at] + (at >= step ? sums[side][at - step] : 0);
        side = 1 - side;
        __syncthreads();
    }
    to[AT] = sums[side][at];
}

// kernel gemm: p0=read p1=read p2=write
// range: exact
// launch: block=16,16,1 grid=1..3,1..3,1 p3=1..48 p4=1..48 p5=1..48
extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < (k + 15) / 16; t++) {
        int ak = t * 16 + threadIdx.x, bk = t * 16 + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0;
        bs[threadIdx.y][threadIdx.x] = bk < k && column < n ? b[bk * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}

// kernel gemm_accumulate: p0=read p1=read p2=read-write
// range: exact
// launch: block=8,8,1 grid=1..3,1..3,1 p3=24 p4=24 p5=1..32
extern "C" __global__ void gemm_accumulate(const float *a, const float *b, float *c, int m, int n, int k, float beta)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = AT;
    if (row >= m || column >= n)
        return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum + beta * c[row * n + column];
}

// kernel shared_pointer: p0=write p1=read p2=read
// range: anchored
// why: memory
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void shared_pointer(int *to, const int *a, const int *b)
{
    __shared__ const int *chosen;
    if (threadIdx.x == 0)
        chosen = blockIdx.x & 1 ? a : b;
    __syncthreads();
    to[AT] = chosen[AT];
}

// kernel generic: p0=write p1=read
// range: bounded
// why: choice
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void generic(int *to, const int *from, int which)
{
    __shared__ int cache[64];
    cache[threadIdx.x] = threadIdx.x;
    cache[threadIdx.x + 32] = blockIdx.x;
    __syncthreads();
    const int *at = which > 40 ? cache : from;
    to[AT] = at[threadIdx.x + 1];
}

// kernel generic_store: p0=write p1=write
// range: bounded
// why: choice
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void generic_store(int *to, int *other, int which)
{
    __shared__ int cache[64];
    volatile int *at = which > 40 ? cache : other;
    at[threadIdx.x] = 5;
    __syncthreads();
    to[AT] = cache[threadIdx.x];
}

// kernel swizzled: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void swizzled(int *to, const int *from)
{
    __shared__ int cache[32];
    cache[threadIdx.x ^ (blockIdx.x & 7)] = from[AT];
    __syncthreads();
    to[AT] = cache[threadIdx.x];
}
