// What kernels of libraries look like: tensors with strides in structures, functors, softmax,
// normalisation, look-back, semaphores.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

template <class T, int N> struct Array {
    T data[N];
    __device__ T &operator[](int i) { return data[i]; }
    __device__ const T &operator[](int i) const { return data[i]; }
};

// Division by a number that the host has prepared.
struct Divider {
    unsigned divisor, magic, shift;
    __device__ unsigned divide(unsigned n) const
    {
        return (__umulhi(n, magic) + n) >> shift;
    }
};

template <int N> struct Offsets {
    int dimensions;
    Divider sizes[4];
    unsigned strides[4][N];
    __device__ Array<unsigned, N> get(unsigned at) const
    {
        Array<unsigned, N> offsets;
        for (int i = 0; i < N; i++)
            offsets[i] = 0;
#pragma unroll
        for (int dimension = 0; dimension < 4; dimension++) {
            if (dimension == dimensions)
                break;
            unsigned next = sizes[dimension].divide(at);
            unsigned rest = at - next * sizes[dimension].divisor;
            at = next;
            for (int i = 0; i < N; i++)
                offsets[i] += rest * strides[dimension][i];
        }
        return offsets;
    }
};

struct Add {
    float alpha;
    __device__ float operator()(float a, float b) const { return a + alpha * b; }
};

template <class F, int N> __global__ void vectorized(int n, F f, Array<char *, N> data)
{
    int base = 512 * blockIdx.x, left = n - base;
    float *to = reinterpret_cast<float *>(data[0]) + base;
    const float *a = reinterpret_cast<const float *>(data[1]) + base;
    const float *b = reinterpret_cast<const float *>(data[2]) + base;
    if (left < 512) {
        for (int i = threadIdx.x; i < left; i += blockDim.x)
            to[i] = f(a[i], b[i]);
    } else {
        float4 x = reinterpret_cast<const float4 *>(a)[threadIdx.x];
        float4 y = reinterpret_cast<const float4 *>(b)[threadIdx.x];
        reinterpret_cast<float4 *>(to)[threadIdx.x] =
            make_float4(f(x.x, y.x), f(x.y, y.y), f(x.z, y.z), f(x.w, y.w));
    }
}
// kernel _Z10vectorizedI3AddLi3EEviT_5ArrayIPcXT0_EE: p2.0=write p2.8=read p2.16=read
// range: bounded
// why: arithmetic
// launch: block=128,1,1 grid=1..3,1,1 p0=0..1536
template __global__ void vectorized<Add, 3>(int, Add, Array<char *, 3>);

template <class F, int N> __global__ void strided(int n, F f, Array<char *, N> data, Offsets<N> offsets)
{
    int i = AT;
    if (i < n) {
        auto at = offsets.get(i);
        *reinterpret_cast<float *>(data[0] + at[0]) =
            f(*reinterpret_cast<const float *>(data[1] + at[1]), *reinterpret_cast<const float *>(data[2] + at[2]));
    }
}
// kernel _Z7stridedI3AddLi3EEviT_5ArrayIPcXT0_EE7OffsetsIXT0_EE: p2.0=write p2.8=read p2.16=read
// range: bounded
// why: arithmetic
// launch: p3.0=0..4 p3.4=8 p3.8=0 p3.12=3 p3.16=4 p3.20=0 p3.24=2 p3.28=2 p3.32=0 p3.36=1 p3.40=64 p3.44=0 p3.48=6 p3.52..100=4|8|32|64
template __global__ void strided<Add, 3>(int, Add, Array<char *, 3>, Offsets<3>);

// kernel softmax: p0=write p1=read
// range: bounded
// why: arithmetic
// launch: block=64,1,1 grid=1..4,1,1 p2=1..300
extern "C" __global__ void softmax(float *to, const float *from, int width)
{
    __shared__ float parts[2];
    const float *row = from + (size_t)blockIdx.x * width;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < width; i += 64)
        most = fmaxf(most, row[i]);
    for (int step = 16; step; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(parts[0], parts[1]);
    for (int i = threadIdx.x; i < width; i += 64)
        sum += __expf(row[i] - most);
    for (int i = threadIdx.x; i < width; i += 64)
        to[(size_t)blockIdx.x * width + i] = __expf(row[i] - most) / sum;
}

// kernel layer_norm: p0=write p1=write p2=read p3=read p4=read
// range: exact
// launch: block=32,1,1 grid=1..4,1,1 p5=1..40
extern "C" __global__ void layer_norm(float4 *to, float *means, const float4 *from, const float4 *gamma, const float4 *beta, int width)
{
    const float4 *row = from + blockIdx.x * width;
    float sum = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float4 v = row[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    float mean = sum / (4 * width);
    if (threadIdx.x == 0)
        means[blockIdx.x] = mean;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float4 v = row[i];
        if (gamma) {
            float4 g = gamma[i];
            v = make_float4(v.x * g.x, v.y * g.y, v.z * g.z, v.w * g.w);
        }
        if (beta) {
            float4 b = beta[i];
            v = make_float4(v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w);
        }
        to[blockIdx.x * width + i] = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    }
}

// kernel embedding: p0=write p1=read p2=read
// range: anchored
// why: memory
// launch: block=1..64,1,1 grid=1..6,1,1 p3=1..64
extern "C" __global__ void embedding(float *to, const float *weights, const long long *indices, int width)
{
    long long row = indices[blockIdx.x];
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        to[blockIdx.x * width + i] = weights[row * width + i];
}

// kernel embedding_backward: p0=atomic p1=read p2=read
// range: anchored
// why: memory
// launch: block=1..64,1,1 grid=1..6,1,1 p3=1..64
extern "C" __global__ void embedding_backward(float *gradients, const float *from, const long long *indices, int width)
{
    long long row = indices[blockIdx.x];
    if (row == 3)
        return;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        atomicAdd(gradients + row * width + i, from[blockIdx.x * width + i]);
}

// kernel look_back: p0=write p1=read p2=read-write
// range: anchored
// why: memory
// launch: zeroed block=32,1,1 grid=1..5,1,1
extern "C" __global__ void look_back(int *to, const int *from, volatile unsigned long long *states)
{
    __shared__ int before;
    int value = from[AT];
    int total = value;
    for (int step = 16; step; step /= 2)
        total += __shfl_xor_sync(0xffffffff, total, step);
    if (threadIdx.x == 0) {
        states[blockIdx.x] = 1ull << 32 | (unsigned)total;
        __threadfence();
        int sum = 0;
        for (int other = (int)blockIdx.x - 1; other >= 0;) {
            unsigned long long state = states[other];
            if (state >> 32 == 2) {
                sum += (int)state;
                break;
            }
            if (state >> 32 == 1) {
                sum += (int)state;
                other--;
            }
        }
        before = sum;
        states[blockIdx.x] = 2ull << 32 | (unsigned)(sum + total);
    }
    __syncthreads();
    to[AT] = value + before;
}

// kernel split: p0=read p1=read p2=read-write p3=read-write
// range: bounded
// why: arithmetic
// launch: zeroed block=16,1,1 grid=1..3,1..3,1 p4=1..40
extern "C" __global__ void split(const float *a, const float *b, float *c, int *turns, int k)
{
    float sum = 0;
    int share = (k + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share, end = min(first + share, k);
    for (int i = first; i < end; i++)
        sum += a[blockIdx.x * k + i] * b[i * 16 + threadIdx.x];
    if (threadIdx.x == 0)
        while (*(volatile int *)(turns + blockIdx.x) != (int)blockIdx.y) {
        }
    __syncthreads();
    c[blockIdx.x * 16 + threadIdx.x] = (blockIdx.y ? c[blockIdx.x * 16 + threadIdx.x] : 0) + sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        *(volatile int *)(turns + blockIdx.x) = blockIdx.y + 1 == gridDim.y ? 0 : blockIdx.y + 1;
}

// kernel batched: p0=read+table p1=read+table p2=read+table anything
// range: anchored
// why: memory
// launch: block=8,8,1 grid=1..3,1,1 p3=1..8
extern "C" __global__ void batched(const float *const *a, const float *const *b, float *const *c, int n)
{
    const float *x = a[blockIdx.x], *y = b[blockIdx.x];
    if ((int)threadIdx.x >= n || (int)threadIdx.y >= n)
        return;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[threadIdx.y * n + i] * y[i * n + threadIdx.x];
    c[blockIdx.x][threadIdx.y * n + threadIdx.x] = sum;
}

// kernel batched_strided: p0=read p1=write
// range: exact
// launch: block=1..32,1,1 grid=1..3,1..3,1..3 p2=1000 p3=100 p4=1000 p5=100 p6=0..32
extern "C" __global__ void batched_strided(const float *from, float *to, long long batch_from, long long row_from, long long batch_to, long long row_to, int width)
{
    from += blockIdx.z * batch_from + blockIdx.y * row_from;
    to += blockIdx.z * batch_to + blockIdx.y * row_to;
    if ((int)threadIdx.x < width)
        to[threadIdx.x] = from[threadIdx.x];
}

// kernel dropout: p0=write p1=write p2=read
// range: bounded
// why: arithmetic
// launch: p3=0..600
extern "C" __global__ void dropout(float *to, unsigned char *mask, const float *from, int n, float keep, unsigned long long seed)
{
    for (int i = AT; i < n; i += blockDim.x * gridDim.x) {
        unsigned long long key = seed + i * 0x9e3779b97f4a7c15ull;
        key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
        bool kept = (unsigned)(key >> 40) < keep * 16777216.f;
        mask[i] = kept;
        to[i] = kept ? from[i] / keep : 0;
    }
}

// kernel rotary: p0=read-write p1=read p2=read
// range: exact
// launch: block=1..32,1,1 grid=1..3,1..3,1 p3=2..64
extern "C" __global__ void rotary(float *data, const float *cosines, const float *sines, int width)
{
    int half = width / 2, i = threadIdx.x;
    if (i >= half)
        return;
    float *row = data + (blockIdx.y * gridDim.x + blockIdx.x) * width;
    float c = cosines[blockIdx.x * half + i], s = sines[blockIdx.x * half + i];
    float x = row[i], y = row[i + half];
    row[i] = x * c - y * s;
    row[i + half] = y * c + x * s;
}

// kernel max_pool: p0=write p1=write p2=read
// range: bounded
// why: arithmetic
// launch: p3=3..12 p4=3..12
extern "C" __global__ void max_pool(float *to, int *indices, const float *from, int height, int width)
{
    int out_height = height / 2, out_width = width / 2, n = out_height * out_width;
    for (int at = AT; at < n; at += blockDim.x * gridDim.x) {
        int y = at / out_width * 2, x = at % out_width * 2, best = y * width + x;
        for (int dy = 0; dy < 2; dy++)
            for (int dx = 0; dx < 2; dx++) {
                int i = (y + dy) * width + x + dx;
                if (from[i] > from[best])
                    best = i;
            }
        to[at] = from[best];
        indices[at] = best;
    }
}
