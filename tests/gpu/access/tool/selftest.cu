// Launches kernels whose accesses are known and prints what the tool has to report, one JSON line a
// launch: {"name": ..., "read": [[start, length, pitch, count]], ..., "unseen": ...}. Built with
// nvcc -arch=sm_90 -lcuda. check_log.py compares it with the log.

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

// Has the driver encode many maps: the tool reads each back and says so when one is not the same.
static void encode_many()
{
    unsigned state = 1, encoded = 0;
    auto random = [&](unsigned below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
    for (int round = 0; round < 2000; ++round) {
        CUtensorMap map;
        cuuint64_t sizes[5], strides[4], stride = 16 * (1 + random(64));
        cuuint32_t box[5], steps[5];
        for (int at = 0; at < 5; ++at) {
            sizes[at] = 1 + random(round % 2 ? 100 : 60000);
            box[at] = at == 0 ? 16 : 1 + random(8);
            steps[at] = round % 3 ? 1 : 1 + random(4);
            if (at < 4)
                strides[at] = stride = (stride * (1 + random(9)) + 15) / 16 * 16;
        }
        void *address = (void *)((uint64_t)(1 + random(60000)) << (12 + random(20)));
        encoded += cuTensorMapEncodeTiled(
                       &map, (CUtensorMapDataType)random(13), 1 + random(5), address, sizes, strides, box,
                       steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)random(4),
                       (CUtensorMapL2promotion)random(4), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == 0;
    }
    if (encoded < 500) {
        fprintf(stderr, "only %u tensor maps were encoded\n", encoded);
        exit(1);
    }
}

static void expect(const char *line, unsigned long a, unsigned long b = 0, unsigned long c = 0)
{
    printf(line, a, b, c);
    putchar('\n');
}

int main()
{
    uint8_t *one, *two;
    CHECK(cudaMalloc(&one, 1 << 16));
    CHECK(cudaMalloc(&two, 1 << 16));
    CHECK(cudaMemset(one, 0x40, 1 << 16));
    CHECK(cudaMemset(two, 0x55, 1 << 16));
    unsigned long a = (unsigned long)one, b = (unsigned long)two;

    copies<<<4, 64>>>(one + 3, two + 5, 201);
    expect("{\"name\":\"copies\",\"read\":[[%lu,201,0,1]],\"write\":[[%lu,201,0,1]]}", a + 3, b + 5);
    strides<<<2, 32>>>((double *)one, (float2 *)two, 50);
    expect("{\"name\":\"strides\",\"read\":[[%lu,8,16,50]],\"write\":[[%lu,8,24,50]]}", a, b);
    atomics<<<1, 64>>>((unsigned *)two, (unsigned *)two + 100, (unsigned *)one);
    expect("{\"name\":\"atomics\",\"read\":[[%lu,256,0,1]],\"atomic\":[[%lu,32,0,1],[%lu,4,0,1]]}", a, b,
           b + 400);
    void *variable;
    CHECK(cudaGetSymbolAddress(&variable, counter));
    module_variable<<<1, 3>>>();
    expect("{\"name\":\"module_variable\",\"write\":[[%lu,12,0,1]]}", (unsigned long)variable);
    asynchronous<<<1, 64>>>((float4 *)one, (float4 *)two);
    expect("{\"name\":\"asynchronous\",\"read\":[[%lu,1016,0,1]],\"write\":[[%lu,1024,0,1]]}", a, b);
    bulk<<<1, 32>>>(one + 1024, two + 2048);
    expect("{\"name\":\"bulk\",\"read\":[[%lu,512,0,1]],\"write\":[[%lu,256,0,1]]}", a + 1024, b + 2048);
    // 100 by 20 elements at a pitch of 512 bytes; the box of 16 by 8 at (88, 15) is cut at both ends.
    CHECK(cudaDeviceSynchronize());
    encode_many();
    tensor<<<1, 32>>>(encode(one, 100, 20, 512), encode(two + 4096, 100, 20, 512), 88, 15);
    expect("{\"name\":\"tensor\",\"read\":[[%lu,48,512,5]],\"unseen\":[[%lu,48,512,5]]}",
           a + 15 * 512 + 88 * 4, b + 4096 + 15 * 512 + 88 * 4);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetLastError());
    return 0;
}
