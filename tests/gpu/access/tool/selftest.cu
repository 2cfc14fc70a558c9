// Launches kernels whose accesses are known and prints what the tool has to report, one JSON line a
// launch: {"name": ..., "read": [[start, length, pitch, count]], ..., "unseen": ...}. Built with
// nvcc -arch=sm_90 -lcuda. check_log.py compares it with the log.

#include "kernels.h"

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
