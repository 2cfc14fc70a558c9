// Programmatic dependent launch: programmatic VARIANT
//
// Built with `nvcc -arch=sm_90`. Each variant is right or wrong by the documentation, whatever the
// GPU makes of it; a name with `-captured` behind runs the same calls in a graph. Prints how many
// words of the result are not what the calls in their order would give.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static const int kWords = 1 << 16;
static const int kBlock = 256;
static const dim3 kGrid(kWords / kBlock);

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));            \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

__device__ int Index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Passes time, so that who does not wait comes too early.
__device__ void Delay() {
    for (int i = 0; i < 20; ++i) {
        __nanosleep(10000);
    }
}

// Writes `to`, and never triggers.
__global__ void Produce(int *to) {
    Delay();
    to[Index()] = 1;
}

// Triggers first.
__global__ void ProduceTriggered(int *to) {
    cudaTriggerProgrammaticLaunchCompletion();
    Delay();
    to[Index()] = 1;
}

// Reads `from` late, and never triggers.
__global__ void Read(const int *from, int *to) {
    Delay();
    to[Index()] = from[Index()];
}

__global__ void ReadTriggered(const int *from, int *to) {
    cudaTriggerProgrammaticLaunchCompletion();
    Delay();
    to[Index()] = from[Index()];
}

// The weights before the wait, the activations behind it.
__global__ void Layer(const int *weights, const int *from, int *to) {
    int weight = weights[Index()];
    cudaGridDependencySynchronize();
    to[Index()] = from[Index()] + weight;
}

// One warp waits for all.
__global__ void LayerOfWarp(const int *weights, const int *from, int *to) {
    int weight = weights[Index()];
    if (threadIdx.x / 32 == 0) {
        cudaGridDependencySynchronize();
    }
    __syncthreads();
    to[Index()] = from[Index()] + weight;
}

__global__ void LayerWithoutWait(const int *weights, const int *from, int *to) {
    to[Index()] = from[Index()] + weights[Index()];
}

// Overwrites before the wait.
__global__ void Overwrite(int *to) {
    to[Index()] = 2;
    cudaGridDependencySynchronize();
}

// A kernel in the middle of a chain: triggers before its wait, or behind it.
__global__ void MiddleEarly(const int *from, int *to) {
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    to[Index()] = from[Index()];
}

__global__ void MiddleWaited(const int *from, int *to) {
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
    to[Index()] = from[Index()];
}

struct Launch {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attributes[1] = {};

    explicit Launch(cudaStream_t stream) {
        config.gridDim = kGrid;
        config.blockDim = dim3(kBlock);
        config.stream = stream;
        config.attrs = attributes;
    }
    // May begin before the kernel before it in the stream has ended.
    Launch &Overlapping() {
        attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[0].val.programmaticStreamSerializationAllowed = 1;
        config.numAttrs = 1;
        return *this;
    }
    Launch &Recording(cudaEvent_t event, int at_block_start) {
        attributes[0].id = cudaLaunchAttributeProgrammaticEvent;
        attributes[0].val.programmaticEvent.event = event;
        attributes[0].val.programmaticEvent.flags = 0;
        attributes[0].val.programmaticEvent.triggerAtBlockStart = at_block_start;
        config.numAttrs = 1;
        return *this;
    }
    template <typename... Params, typename... Arguments>
    void operator()(void (*kernel)(Params...), Arguments... arguments) {
        CHECK(cudaLaunchKernelEx(&config, kernel, Params(arguments)...));
    }
};

// Buffers, and what their words are to be in the end; 0 for a buffer that is not looked at.
struct Bench {
    int *weights, *a, *b, *c;
    cudaStream_t first, second;
    cudaEvent_t event, join;
};

// Issues the calls of a variant; returns the buffer to look at and its value, or null.
static const int *Issue(const Bench &t, const char *variant, int *expected) {
    auto is = [variant](const char *name) { return std::strcmp(variant, name) == 0; };
    cudaStream_t s = t.first;
    *expected = 1;
    if (is("weights") || is("warp") || is("early-weights") || is("no-wait")) {
        // The activations come from the primary; in `early-weights` the weights do.
        int *made = is("early-weights") ? t.weights : t.a;
        Launch{s}(ProduceTriggered, made);
        auto *kernel = is("warp") ? LayerOfWarp : is("no-wait") ? LayerWithoutWait : Layer;
        Launch{s}.Overlapping()(kernel, t.weights, t.a, t.b);
        return t.b;
    }
    if (is("overwrite") || is("overwrite-triggered")) {
        // The primary reads what the secondary overwrites before its wait.
        Launch{s}(is("overwrite") ? Read : ReadTriggered, t.a, t.b);
        Launch{s}.Overlapping()(Overwrite, t.a);
        *expected = 0;
        return t.b;
    }
    if (is("chain") || is("chain-early")) {
        // The third kernel loads before its wait what the first one has written.
        Launch{s}(ProduceTriggered, t.a);
        Launch{s}.Overlapping()(is("chain") ? MiddleWaited : MiddleEarly, t.c, t.b);
        Launch{s}.Overlapping()(Layer, t.a, t.b, t.weights);
        return t.weights;
    }
    if (is("event") || is("event-no-wait") || is("event-block-start") || is("event-early")) {
        // A kernel of another stream behind a programmatic event.
        Launch{s}.Recording(t.event, is("event-block-start"))(ProduceTriggered, t.a);
        CHECK(cudaStreamWaitEvent(t.second, t.event));
        if (is("event-early")) {
            Launch{t.second}(Layer, t.a, t.c, t.b);
        } else {
            Launch{t.second}(is("event-no-wait") ? LayerWithoutWait : Layer, t.weights, t.a, t.b);
        }
        CHECK(cudaEventRecord(t.join, t.second));
        CHECK(cudaStreamWaitEvent(s, t.join));
        return t.b;
    }
    if (is("event-read") || is("event-read-triggered")) {
        // The event of a kernel that never triggers fires when it has read.
        auto *kernel = is("event-read") ? Read : ReadTriggered;
        Launch{s}.Recording(t.event, 0)(kernel, t.a, t.b);
        CHECK(cudaStreamWaitEvent(t.second, t.event));
        Launch{t.second}(Produce, t.a);
        CHECK(cudaEventRecord(t.join, t.second));
        CHECK(cudaStreamWaitEvent(s, t.join));
        *expected = 0;
        return t.b;
    }
    if (is("record-between")) {
        // An event that is recorded between the two kernels.
        Launch{s}(ProduceTriggered, t.a);
        CHECK(cudaEventRecord(t.event, s));
        Launch{s}.Overlapping()(LayerWithoutWait, t.weights, t.a, t.b);
        return t.b;
    }
    if (is("wait-between")) {
        // The stream waits for another one between the two kernels.
        Launch{s}(ProduceTriggered, t.a);
        CHECK(cudaEventRecord(t.event, s));
        CHECK(cudaStreamWaitEvent(t.second, t.event));
        CHECK(cudaEventRecord(t.join, t.second));
        CHECK(cudaStreamWaitEvent(s, t.join));
        Launch{s}.Overlapping()(Layer, t.weights, t.a, t.b);
        return t.b;
    }
    std::fprintf(stderr, "no variant %s\n", variant);
    std::exit(2);
}

// Prints port and type of each edge of a captured graph.
static void PrintEdges(cudaGraph_t graph) {
    cudaGraphNode_t from[16], to[16];
    cudaGraphEdgeData data[16];
    size_t count = 16;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphGetEdges(graph, from, to, data, &count));
#else
    CHECK(cudaGraphGetEdges_v2(graph, from, to, data, &count));
#endif
    for (size_t i = 0; i < count; ++i) {
        std::printf("edge: from_port %d, type %d\n", data[i].from_port, data[i].type);
    }
}

int main(int argc, char **argv) {
    char variant[64] = "";
    std::snprintf(variant, sizeof variant, "%s", argc > 1 ? argv[1] : "");
    char *suffix = std::strstr(variant, "-captured");
    if (suffix != nullptr) {
        *suffix = 0;
    }
    Bench t;
    for (int **buffer : {&t.weights, &t.a, &t.b, &t.c}) {
        CHECK(cudaMalloc(buffer, kWords * sizeof(int)));
        CHECK(cudaMemset(*buffer, 0, kWords * sizeof(int)));
    }
    CHECK(cudaStreamCreateWithFlags(&t.first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t.second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&t.event, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&t.join, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
    int expected = 0;
    const int *result;
    if (suffix != nullptr) {
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamBeginCapture(t.first, cudaStreamCaptureModeGlobal));
        result = Issue(t, variant, &expected);
        CHECK(cudaStreamEndCapture(t.first, &graph));
        PrintEdges(graph);
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaGraphLaunch(executable, t.first));
    } else {
        result = Issue(t, variant, &expected);
    }
    CHECK(cudaDeviceSynchronize());
    static int words[kWords];
    CHECK(cudaMemcpy(words, result, sizeof words, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int word : words) {
        wrong += word != expected;
    }
    std::printf("%s: %d of %d words are wrong\n", argv[1], wrong, kWords);
    return 0;
}
