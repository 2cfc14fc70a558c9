// Kernels whose accesses are known, and the tensor maps of one of them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        int code = (int)(call);                                                            \
        if (code != 0) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code);           \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

extern "C" {

__global__ void copies(const uint8_t *from, uint8_t *to, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[at] = from[at] + 1;
}

__global__ void strides(const double *from, float2 *to, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[3 * at] = make_float2((float)from[2 * at], 1.0f);
}

__global__ void atomics(unsigned *sum, unsigned *largest, const unsigned *values)
{
    atomicAdd(&sum[threadIdx.x % 8], values[threadIdx.x]);
    values[0] == atomicMax(largest, values[threadIdx.x]) ? (void)0 : __nanosleep(1);
}

__device__ unsigned counter[4];

__global__ void module_variable() { counter[threadIdx.x] = threadIdx.x + 7; }

__global__ void asynchronous(const float4 *from, float4 *to)
{
    __shared__ float4 stage[64];
    uint32_t shared = (uint32_t)__cvta_generic_to_shared(&stage[threadIdx.x]);
    // The last thread copies 8 of its 16 bytes; the others come as zeros.
    int size = threadIdx.x == 63 ? 8 : 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\ncp.async.wait_all;\n"
                 ::"r"(shared), "l"(from + threadIdx.x), "r"(size) : "memory");
    __syncthreads();
    to[threadIdx.x] = stage[threadIdx.x];
}

__global__ void bulk(const uint8_t *from, uint8_t *to)
{
    __shared__ alignas(128) uint8_t stage[512];
    __shared__ alignas(8) uint64_t barrier;
    uint32_t data = (uint32_t)__cvta_generic_to_shared(stage);
    uint32_t done = (uint32_t)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 512, [%0];\n"
                     "{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
                     "@!p bra AGAIN;\n}\n"
                     "fence.proxy.async;\n"
                     "cp.async.bulk.global.shared::cta.bulk_group [%3], [%1], 256;\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                     ::"r"(done), "r"(data), "l"(from), "l"(to) : "memory");
    }
}

__global__ void tensor(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                       int x, int y)
{
    __shared__ alignas(128) float stage[8][16];
    __shared__ alignas(8) uint64_t barrier;
    uint32_t data = (uint32_t)__cvta_generic_to_shared(stage);
    uint32_t done = (uint32_t)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;\n"
                     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%1], [%2, {%4, %5}], [%0];\n"
                     "{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
                     "@!p bra AGAIN;\n}\n"
                     "fence.proxy.async;\n"
                     "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%3, {%4, %5}], [%1];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                     ::"r"(done), "r"(data), "l"(&from), "l"(&to), "r"(x), "r"(y) : "memory");
    }
}

} // extern "C"

static CUtensorMap encode(void *address, uint64_t width, uint64_t height, uint64_t pitch)
{
    CUtensorMap map;
    cuuint64_t sizes[] = {width, height}, strides[] = {pitch};
    cuuint32_t box[] = {16, 8}, steps[] = {1, 1};
    CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, sizes, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}
