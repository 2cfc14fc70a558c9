// Graphs whose verdict hangs on what their kernels touch; everything lies in one allocation. Built
// with nvcc's default, the static runtime library. The argument names the variant, in pairs:
//
//   branches_racy, branches_joined    a captured fork: the origin's kernel reads what the branch
//                                     writes, before or behind the join
//   input_racy, input_clean           the static input is written in another stream, beside or behind
//                                     the replay
//   output_racy, output_clean         the output is read in another stream, beside or behind it
//   hand_racy, hand_clean             a graph made node by node: two nodes without an edge write the
//                                     same part, or parts of their own
//   set_racy, set_clean               a node of the executable gets other arguments, and another
//                                     stream writes the new part, or the old one
//   update_racy, update_clean         the executable is updated to a graph with another kernel, which
//                                     writes what the other stream reads, or leaves it alone
//   child_racy, child_clean           a captured child graph beside a node without an edge
//   cloned_racy, cloned_clean         a graph and its clone in two streams
//   conditional_racy, conditional_clean  a kernel in the body of a conditional node, captured, and
//                                     another stream
//   packed_racy, packed_clean         a structure of pointers as the argument of a captured kernel
//
// Prints the variant's name.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define MUST(call)                                                                       \
    do {                                                                                 \
        cudaError_t answered = (call);                                                   \
        if (answered != cudaSuccess) {                                                   \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(answered));       \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

constexpr int kWords = 1 << 20;
constexpr int kParts = 6;

__global__ void Fill(int *to, int value, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        to[index] = value;
}

__global__ void Scale(const int *from, int *to, int factor, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        to[index] = from[index] * factor;
}

struct Parts {
    int count;
    const int *from;
    int *to;
};

__global__ void Move(Parts parts)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < parts.count)
        parts.to[index] = parts.from[index];
}

static int *part[kParts];
static cudaStream_t first, second;
static cudaEvent_t forked, joined;

static void fill(cudaStream_t stream, int *to)
{
    Fill<<<kWords / 256, 256, 0, stream>>>(to, 7, kWords);
    MUST(cudaGetLastError());
}

static void scale(cudaStream_t stream, const int *from, int *to)
{
    Scale<<<kWords / 256, 256, 0, stream>>>(from, to, 3, kWords);
    MUST(cudaGetLastError());
}

static void wait(cudaStream_t waiting, cudaStream_t awaited, cudaEvent_t event)
{
    MUST(cudaEventRecord(event, awaited));
    MUST(cudaStreamWaitEvent(waiting, event, 0));
}

static void begin()
{
    MUST(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
}

static cudaGraph_t end()
{
    cudaGraph_t graph;
    MUST(cudaStreamEndCapture(first, &graph));
    return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static cudaGraphNode_t onlyNode(cudaGraph_t graph)
{
    cudaGraphNode_t node;
    size_t count = 1;
    MUST(cudaGraphGetNodes(graph, &node, &count));
    return node;
}

// The parameters of a node that fills a part.
struct FillNode {
    int *to;
    int value = 9, count = kWords;
    void *arguments[3] = {&to, &value, &count};
    cudaKernelNodeParams params = {};

    explicit FillNode(int *part) : to(part)
    {
        params.func = reinterpret_cast<void *>(Fill);
        params.gridDim = dim3(kWords / 256);
        params.blockDim = dim3(256);
        params.kernelParams = arguments;
    }
};

static void branches(bool racy)
{
    begin();
    fill(first, part[0]);
    wait(second, first, forked);
    scale(second, part[0], part[1]);
    MUST(cudaEventRecord(joined, second));
    scale(first, part[0], part[2]);
    if (racy)
        scale(first, part[1], part[3]);
    MUST(cudaStreamWaitEvent(first, joined, 0));
    if (!racy)
        scale(first, part[1], part[3]);
    MUST(cudaGraphLaunch(instantiate(end()), first));
}

static cudaGraphExec_t scaling()
{
    fill(first, part[0]);
    begin();
    scale(first, part[0], part[1]);
    return instantiate(end());
}

static void input(bool racy)
{
    cudaGraphExec_t exec = scaling();
    wait(second, first, forked);
    MUST(cudaGraphLaunch(exec, first));
    fill(second, part[2]);  // Not touched by the graph.
    if (!racy)
        wait(second, first, joined);
    fill(second, part[0]);
}

static void output(bool racy)
{
    cudaGraphExec_t exec = scaling();
    wait(second, first, forked);
    MUST(cudaGraphLaunch(exec, first));
    scale(second, part[0], part[2]);  // The input, which the graph reads too.
    if (!racy)
        wait(second, first, joined);
    scale(second, part[1], part[3]);
}

static void hand(bool racy)
{
    cudaGraph_t graph;
    cudaGraphNode_t node;
    FillNode one(part[0]), other(part[racy ? 0 : 1]);
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &one.params));
    MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &other.params));
    MUST(cudaGraphLaunch(instantiate(graph), first));
}

static void set(bool racy)
{
    begin();
    fill(first, part[0]);
    cudaGraph_t graph = end();
    cudaGraphExec_t exec = instantiate(graph);
    MUST(cudaGraphLaunch(exec, first));
    wait(second, first, joined);
    FillNode changed(part[1]);
    MUST(cudaGraphExecKernelNodeSetParams(exec, onlyNode(graph), &changed.params));
    MUST(cudaGraphLaunch(exec, first));
    fill(second, part[racy ? 1 : 0]);
}

static void update(bool racy)
{
    cudaGraphExec_t exec = scaling();
    MUST(cudaGraphLaunch(exec, first));
    wait(second, first, joined);
    begin();
    fill(first, part[0]);
    cudaGraphExecUpdateResultInfo result;
    MUST(cudaGraphExecUpdate(exec, end(), &result));
    MUST(cudaGraphLaunch(exec, first));
    scale(second, part[racy ? 0 : 1], part[2]);
}

static void child(bool racy)
{
    begin();
    fill(first, part[0]);
    cudaGraph_t captured = end(), graph;
    cudaGraphNode_t node;
    FillNode beside(part[racy ? 0 : 1]);
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, captured));
    MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &beside.params));
    MUST(cudaGraphLaunch(instantiate(graph), first));
}

static void cloned(bool racy)
{
    begin();
    fill(first, part[0]);
    cudaGraph_t graph = end(), clone;
    MUST(cudaGraphClone(&clone, graph));
    FillNode changed(part[1]);
    if (!racy)
        MUST(cudaGraphKernelNodeSetParams(onlyNode(clone), &changed.params));
    MUST(cudaGraphLaunch(instantiate(graph), first));
    MUST(cudaGraphLaunch(instantiate(clone), second));
}

static void conditional(bool racy)
{
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphConditionalHandle handle;
    cudaGraphNodeParams params = {};
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
#if CUDART_VERSION >= 13000
    MUST(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
    MUST(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
    cudaGraph_t body = params.conditional.phGraph_out[0];
    MUST(cudaStreamBeginCaptureToGraph(first, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    fill(first, part[0]);
    MUST(cudaStreamEndCapture(first, &body));
    MUST(cudaGraphLaunch(instantiate(graph), first));
    fill(second, part[racy ? 0 : 1]);
}

static void packed(bool racy)
{
    fill(first, part[0]);
    begin();
    Move<<<kWords / 256, 256, 0, first>>>(Parts{kWords, part[0], part[1]});
    MUST(cudaGetLastError());
    cudaGraphExec_t exec = instantiate(end());
    MUST(cudaGraphLaunch(exec, first));
    fill(second, part[racy ? 1 : 2]);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(bool);
    } variants[] = {
        {"branches", branches}, {"input", input},   {"output", output},
        {"hand", hand},         {"set", set},       {"update", update},
        {"child", child},       {"cloned", cloned}, {"conditional", conditional},
        {"packed", packed},
    };
    const char *given = count > 1 ? arguments[1] : "", *line = std::strchr(given, '_');
    int *memory;
    MUST(cudaMalloc(&memory, kParts * kWords * sizeof *memory));
    for (int i = 0; i < kParts; i++)
        part[i] = memory + i * kWords;
    MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    for (const auto &variant : variants) {
        size_t length = std::strlen(variant.name);
        if (!line || static_cast<size_t>(line - given) != length
            || std::strncmp(given, variant.name, length) != 0)
            continue;
        variant.run(std::strcmp(line, "_racy") == 0);
        MUST(cudaDeviceSynchronize());
        std::printf("%s\n", given);
        return 0;
    }
    std::fprintf(stderr, "no such variant: %s\n", given);
    return 2;
}
