// What code for sm_90 and later has.
// targets: 90

#include <cuda_bf16.h>

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

struct alignas(64) TensorMap {
    unsigned long long words[16];
};

static __device__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

static __device__ void start(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ void await(unsigned barrier)
{
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
        "@!done bra again; }" ::"r"(barrier) : "memory");
}

// kernel programmatic: p0=write p1=read waits
// range: exact
extern "C" __global__ void programmatic(float *to, const float *from)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    to[AT] = from[AT];
    asm volatile("griddepcontrol.launch_dependents;");
}

// kernel programmatic_late: p0=write p1=read
// range: exact
extern "C" __global__ void programmatic_late(float *to, const float *from)
{
    float value = from[AT];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    to[AT] = value;
}

// kernel programmatic_warp: p0=write p1=read waits
// range: exact
extern "C" __global__ void programmatic_warp(float *to, const float *from)
{
    if (threadIdx.x / 32 == 0) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    __syncthreads();
    to[AT] = from[AT];
}

// kernel programmatic_shuffled: p0=write p1=read waits
// range: exact
extern "C" __global__ void programmatic_shuffled(float *to, const float *from)
{
    if (__shfl_sync(0xffffffff, threadIdx.x / 32, 0) == 0) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    __syncthreads();
    to[AT] = from[AT];
}

// kernel programmatic_last_warp: p0=write p1=read
// range: exact
extern "C" __global__ void programmatic_last_warp(float *to, const float *from)
{
    if (threadIdx.x / 32 == blockDim.x / 32 - 1) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    __syncthreads();
    to[AT] = from[AT];
}

// kernel bulk_read: p0=read p1=write
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void bulk_read(const float *from, float *to)
{
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long barrier;
    if (threadIdx.x == 0) {
        start(shared_address(&barrier), 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(shared_address(tile)), "l"(from + blockIdx.x * 256), "r"(shared_address(&barrier)) : "memory");
    }
    __syncthreads();
    await(shared_address(&barrier));
    to[AT] = tile[threadIdx.x * 8];
}

// kernel bulk_write: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=1..3,1,1 p2=16|32|64|128
extern "C" __global__ void bulk_write(float *to, const float *from, unsigned bytes)
{
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = from[AT];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + blockIdx.x * 32), "r"(shared_address(tile)), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// kernel bulk_reduce: p0=atomic p1=read
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void bulk_reduce(float *to, const float *from)
{
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = from[AT];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(to), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// kernel tile_read: p0=read:map p1=write
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void tile_read(const __grid_constant__ TensorMap map, float *to)
{
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long barrier;
    if (threadIdx.x == 0) {
        start(shared_address(&barrier), 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(tile)), "l"(&map), "r"(0), "r"((int)blockIdx.x * 16), "r"(shared_address(&barrier)) : "memory");
    }
    __syncthreads();
    await(shared_address(&barrier));
    to[AT] = tile[threadIdx.x];
}

// kernel tile_written: p0=write:map p1=read
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void tile_written(const __grid_constant__ TensorMap map, const float *from)
{
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = from[AT];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"((int)blockIdx.x * 32), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// kernel two_maps: p0=read:map p1=write:map
// range: exact
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void two_maps(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to)
{
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long barrier;
    asm volatile("prefetch.tensormap [%0];" ::"l"(&from));
    if (threadIdx.x == 0) {
        start(shared_address(&barrier), 1024);
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(shared_address(tile)), "l"(&from), "r"(0), "r"(shared_address(&barrier)) : "memory");
        await(shared_address(&barrier));
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];" ::"l"(&to), "r"(0), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// kernel map_in_memory: p0=read+table p1=write anything
// range: anchored
// why: memory
// launch: block=32,1,1 grid=1..3,1,1
extern "C" __global__ void map_in_memory(const TensorMap *map, float *to)
{
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long barrier;
    if (threadIdx.x == 0) {
        start(shared_address(&barrier), 1024);
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(shared_address(tile)), "l"(map), "r"(0), "r"(shared_address(&barrier)) : "memory");
    }
    __syncthreads();
    await(shared_address(&barrier));
    to[AT] = tile[threadIdx.x];
}

// kernel cluster_read: p0=write p1=read
// range: exact
// launch: block=32,1,1 grid=2|4,1,1
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_read(int *to, const int *from)
{
    __shared__ int mine[32];
    mine[threadIdx.x] = from[AT];
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned other;
    int value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(shared_address(&mine[threadIdx.x])), "r"(1 - (blockIdx.x & 1)));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(other) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    to[AT] = value;
}

// kernel vector_reduction: p0=atomic p1=read
// range: exact
extern "C" __global__ void vector_reduction(float4 *to, const float4 *from)
{
    float4 v = from[AT];
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + AT), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

// kernel bfloat_atomics: p0=atomic
// range: exact
extern "C" __global__ void bfloat_atomics(__nv_bfloat162 *to)
{
    atomicAdd(to + AT, __float2bfloat162_rn(1));
}
