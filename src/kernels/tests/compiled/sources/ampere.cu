// What code for sm_80 and later has.
// targets: 80

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

static __device__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

// kernel copied_async: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void copied_async(float4 *to, const float4 *from)
{
    __shared__ float4 cache[32];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&cache[threadIdx.x])), "l"(from + AT));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    to[AT] = cache[31 - threadIdx.x];
}

// kernel copied_in_part: p0=write p1=read
// range: bounded
// why: part
// launch: block=32,1,1 grid=1..4,1,1 p2=0..128
extern "C" __global__ void copied_in_part(float *to, const float *from, int n)
{
    __shared__ float cache[32];
    int size = (int)AT < n ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(&cache[threadIdx.x])), "l"(from + AT), "r"(size));
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    to[AT] = cache[threadIdx.x];
}

// kernel pipeline: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=1..3,1,1 p2=1..6
extern "C" __global__ void pipeline(float *to, const float *from, int tiles)
{
    __shared__ float stages[2][32];
    const float *mine = from + blockIdx.x * tiles * 32 + threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stages[0][threadIdx.x])), "l"(mine));
    asm volatile("cp.async.commit_group;");
    float sum = 0;
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stages[(tile + 1) & 1][threadIdx.x])), "l"(mine + (tile + 1) * 32));
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        sum += stages[tile & 1][31 - threadIdx.x];
        __syncthreads();
    }
    to[AT] = sum;
}

// kernel half_pairs: p0=write p1=read
// range: exact
extern "C" __global__ void half_pairs(__half2 *to, const __half2 *from, int n)
{
    int i = AT;
    if (i < n)
        to[i] = __hadd2(from[i], from[i]);
}

// kernel bfloat: p0=write p1=read
// range: exact
extern "C" __global__ void bfloat(__nv_bfloat16 *to, const float *from, int n)
{
    int i = AT;
    if (i < n)
        to[i] = __float2bfloat16(from[i]);
}

// kernel eight_halves: p0=write p1=read
// range: exact
extern "C" __global__ void eight_halves(uint4 *to, const uint4 *from)
{
    uint4 v = from[AT];
    __half2 *parts = reinterpret_cast<__half2 *>(&v);
    for (int i = 0; i < 4; i++)
        parts[i] = __hmul2(parts[i], parts[i]);
    to[AT] = v;
}

// kernel half_atomics: p0=atomic
// range: exact
extern "C" __global__ void half_atomics(__half2 *to)
{
    atomicAdd(to + AT, __float2half2_rn(1));
}

// Machine code has a loop of compare and swap for it, which begins with a plain read.
// kernel half_scalar: p0=atomic
// range: bounded
// why: part
extern "C" __global__ void half_scalar(__half *to)
{
    atomicAdd(to + AT, __float2half(1));
}

// kernel hinted: p0=write p1=read p2=read
// range: exact
extern "C" __global__ void hinted(float *to, const float *a, const float *b)
{
    __stcs(to + AT, __ldcg(a + AT) + __ldg(b + AT));
}

// kernel redux: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void redux(unsigned *to, const unsigned *from)
{
    unsigned most = __reduce_max_sync(0xffffffff, from[AT]);
    if (threadIdx.x == 0)
        to[blockIdx.x] = most;
}

// kernel grid_sync: p0=write p1=read-write p2=read
// range: exact
// launch: cooperative block=1..40,1,1 grid=1..4,1,1
extern "C" __global__ void grid_sync(int *to, int *between, const int *from)
{
    between[AT] = from[AT];
    cooperative_groups::this_grid().sync();
    to[AT] = between[gridDim.x * blockDim.x - 1 - AT];
}

// kernel tensor_cores: p0=read p1=read p2=write
// range: exact
// launch: block=32,1,1 grid=1,1,1
extern "C" __global__ void tensor_cores(const unsigned *a, const unsigned *b, float *c)
{
    int lane = threadIdx.x;
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a[lane * 4]), "r"(a[lane * 4 + 1]), "r"(a[lane * 4 + 2]), "r"(a[lane * 4 + 3]), "r"(b[lane * 2]), "r"(b[lane * 2 + 1]));
    c[lane * 4] = d0;
    c[lane * 4 + 1] = d1;
    c[lane * 4 + 2] = d2;
    c[lane * 4 + 3] = d3;
}

// kernel matrix_loads: p0=read p1=write
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void matrix_loads(const uint4 *from, uint2 *to)
{
    __shared__ uint4 tile[32];
    tile[threadIdx.x] = from[AT];
    __syncthreads();
    uint2 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"(shared_address(&tile[threadIdx.x])));
    to[AT] = r;
}

// kernel prefetched: p0=write p1=read
// range: exact
extern "C" __global__ void prefetched(float *to, const float *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from + AT + 64));
    to[AT] = from[AT];
}
