// Programs whose verdict depends on the bytes that their kernels touch:
// programs NAME racy|clean [graph|child]. Two streams without order use one allocation; the clean form
// keeps them to different bytes. With "graph", each stream launches a captured graph of the kernel
// twice, with "child" a graph with that one in a child node.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t code = (call);                                                         \
        if (code != cudaSuccess) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(code));   \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

__global__ void through_table(float *const *table, int entry) { table[entry][threadIdx.x] = 1; }

// The column comes from memory, so that the code does not tell it.
__global__ void strided(float *matrix, const int *column, int pitch)
{
    matrix[threadIdx.x * pitch + *column] = 1;
}

__global__ void cooperative(float *work, const int *from)
{
    auto grid = cooperative_groups::this_grid();
    work[*from + grid.thread_rank()] = 1;
    grid.sync();
    work[*from + grid.size() - 1 - grid.thread_rank()] += 1;
}

int main(int count, char **names)
{
    if (count < 3 || count > 4)
        return 2;
    bool in_child = count == 4 && strcmp(names[3], "child") == 0;
    bool in_graph = count == 4;
    bool racy = strcmp(names[2], "racy") == 0;
    float *memory;
    int *numbers;
    float **table;
    CHECK(cudaMalloc(&memory, 1 << 20));
    CHECK(cudaMalloc(&numbers, 8));
    CHECK(cudaMalloc(&table, 16));
    int places[] = {0, racy ? 0 : 1};
    bool is_cooperative = strcmp(names[1], "cooperative") == 0;
    int offsets[] = {0, racy ? 100 : 1024};
    CHECK(cudaMemcpy(numbers, is_cooperative ? offsets : places, sizeof places, cudaMemcpyHostToDevice));
    float *parts[] = {memory, memory + (racy ? 0 : 4096)};
    CHECK(cudaMemcpy(table, parts, sizeof parts, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t streams[2];
    for (int at = 0; at < 2; ++at)
        CHECK(cudaStreamCreateWithFlags(&streams[at], cudaStreamNonBlocking));
    auto launch = [&](int at) {
        if (strcmp(names[1], "strided") == 0) {
            strided<<<1, 64, 0, streams[at]>>>(memory, numbers + at, 16);
        } else if (is_cooperative) {
            int *from = numbers + at;
            void *list[] = {&memory, &from};
            CHECK(cudaLaunchCooperativeKernel((void *)cooperative, 8, 128, list, 0, streams[at]));
        } else {
            through_table<<<1, 64, 0, streams[at]>>>(table, at);
        }
        CHECK(cudaGetLastError());
    };
    for (int at = 0; at < 2; ++at) {
        if (!in_graph) {
            launch(at);
            continue;
        }
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamBeginCapture(streams[at], cudaStreamCaptureModeGlobal));
        launch(at);
        CHECK(cudaStreamEndCapture(streams[at], &graph));
        if (in_child) {
            cudaGraph_t outer;
            cudaGraphNode_t node;
            CHECK(cudaGraphCreate(&outer, 0));
            CHECK(cudaGraphAddChildGraphNode(&node, outer, nullptr, 0, graph));
            CHECK(cudaGraphDestroy(graph));
            graph = outer;
        }
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        for (int round = 0; round < 2; ++round)
            CHECK(cudaGraphLaunch(executable, streams[at]));
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
}
