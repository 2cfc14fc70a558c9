// The measuring library alone, without the runtime: this program exports the runtime's functions, calls
// the library's hooks around its own launches, and compares the bytes that come with those that it
// knows. run.sh builds and starts it: library TEST, one test a process. Prints a line for each check;
// exit code 1 when one fails.

#include "../access/tool/kernels.h"

#include <cooperative_groups.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

// What comes from the library, as src/wire/src/measure_abi.rs and measure_hooks.rs lay it out.
struct Run {
    uint64_t start, width, pitch, rows;
    uint32_t mode, flags;
};
struct Hooks {
    uint64_t size;
    uint64_t (*launching)(uint64_t op, uint64_t function, uint64_t stream);
    void (*launched)(uint64_t op, uint64_t stream, int result);
};

enum { READ, WRITE, ATOMIC };
using Bytes = std::map<std::pair<uint32_t, uint64_t>, uint64_t>; // (mode, start) to end

struct Result {
    Bytes bytes;
    uint32_t flags = 0;
    std::string reason; // why it was not measured
};

static const Hooks *hooks;
static thread_local uint64_t current;
static std::atomic<uint64_t> next_op{1};
static std::mutex mutex;
static std::condition_variable changed;
static std::map<std::pair<uint64_t, uint64_t>, Result> results; // by op and node

static void add(Bytes &bytes, uint32_t mode, uint64_t start, uint64_t end)
{
    auto last = bytes.upper_bound({mode, start});
    if (last != bytes.begin() && (--last)->first.first == mode && last->second >= start)
        last->second = std::max(last->second, end);
    else
        bytes[{mode, start}] = end;
}

static void put(uint64_t op, uint64_t node, const Run *list, size_t count, uint32_t flags)
{
    std::lock_guard<std::mutex> guard(mutex);
    Result &result = results[{op, node}];
    result.flags |= flags;
    for (size_t at = 0; at < count; ++at)
        for (uint64_t row = 0; row < list[at].rows; ++row) {
            uint64_t start = list[at].start + row * list[at].pitch;
            add(result.bytes, list[at].mode, start, start + list[at].width);
        }
    changed.notify_all();
}

extern "C" {
__attribute__((visibility("default"))) int streamsan_measure_attach(const Hooks *given)
{
    hooks = given;
    return given->size != sizeof(Hooks);
}
__attribute__((visibility("default"))) void *streamsan_driver_function(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
__attribute__((visibility("default"))) uint64_t streamsan_current_op(void) { return current; }
__attribute__((visibility("default"))) void streamsan_op_measured(
    uint64_t op, const Run *list, size_t count, uint32_t flags)
{
    put(op, 0, list, count, flags);
}
__attribute__((visibility("default"))) void streamsan_node_accesses(
    uint64_t op, uint64_t node, const Run *list, size_t count, uint32_t flags)
{
    put(op, node, list, count, flags);
}
__attribute__((visibility("default"))) void streamsan_not_measured(
    uint64_t op, uint32_t reason, const char *detail)
{
    std::lock_guard<std::mutex> guard(mutex);
    printf("not measured: op %lu, reason %u: %s\n", (unsigned long)op, reason, detail ? detail : "");
    results[{op, 0}].reason = detail ? detail : "?";
    changed.notify_all();
}
}

static int failures;

static void check(bool holds, const char *what)
{
    printf("%s\t%s\n", holds ? "PASS" : "FAIL", what);
    failures += !holds;
}

static std::string text(const Bytes &bytes, uint64_t base)
{
    std::string words;
    int shown = 0;
    for (auto &[key, end] : bytes) {
        if (++shown > 12)
            return words + " ...";
        char part[80];
        snprintf(part, sizeof part, " %c%ld-%ld", "rwa?"[key.first], (long)(key.second - base),
                 (long)(end - base));
        words += part;
    }
    return words;
}

// Waits for the result of a launch; a second before it gives up, many times what it takes.
static bool result_of(uint64_t op, uint64_t node, Result &result)
{
    std::unique_lock<std::mutex> guard(mutex);
    auto is_there = [&] { return results.count({op, node}) != 0; };
    if (!changed.wait_for(guard, std::chrono::seconds(10), is_there))
        return false;
    result = results[{op, node}];
    return true;
}

static void expect(const char *what, uint64_t op, uint64_t node, const Bytes &wanted, uint64_t base)
{
    Result result;
    bool came = result_of(op, node, result);
    bool same = came && result.reason.empty() && result.bytes == wanted && result.flags == 0;
    check(same, what);
    if (!same)
        printf("\tcame %d, flags %u, reason '%s'\n\twanted%s\n\tgot   %s\n", came, result.flags,
               result.reason.c_str(), text(wanted, base).c_str(), text(result.bytes, base).c_str());
}

static Bytes rows(uint32_t mode, uint64_t start, uint64_t width, uint64_t pitch = 0, uint64_t count = 1)
{
    Bytes bytes;
    for (uint64_t row = 0; row < count; ++row)
        add(bytes, mode, start + row * pitch, start + row * pitch + width);
    return bytes;
}

static Bytes operator+(Bytes one, const Bytes &two)
{
    for (auto &[key, end] : two)
        add(one, key.first, key.second, end);
    return one;
}

// A call as a hook of the runtime surrounds it.
static uint64_t hooked(CUstream stream, const std::function<CUresult()> &call)
{
    uint64_t op = next_op++, handle = stream ? (uint64_t)stream : 1;
    current = op;
    if (hooks)
        hooks->launching(op, 0, handle);
    CUresult result = call();
    if (hooks)
        hooks->launched(op, handle, result);
    current = 0;
    CHECK(result);
    return op;
}

template <typename... Arguments>
static uint64_t launch(CUstream stream, const void *kernel, dim3 grid, dim3 block, Arguments... arguments)
{
    void *list[] = {(void *)&arguments..., nullptr};
    return hooked(stream, [&] {
        return (CUresult)cudaLaunchKernel(kernel, grid, block, list, 0, (cudaStream_t)stream);
    });
}

extern "C" {

__global__ void unasked(uint8_t *to) { to[threadIdx.x] = 1; }

__global__ void vector_copy(const float4 *from, float4 *to, uint64_t count)
{
    uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[at] = from[at];
}

__global__ void unasked_copy(const float4 *from, float4 *to, uint64_t count)
{
    uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[at] = from[at];
}

__global__ void through_table(float *const *table, int entry) { table[entry][threadIdx.x] = 1; }

__global__ void spins(volatile int *released, int *seen)
{
    while (*released == 0)
        __nanosleep(1000);
    *seen = 1;
}

__global__ void scattered(const uint32_t *index, uint8_t *to, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[index[at]] = 1;
}

__global__ void reversed(uint16_t *to) { to[63 - threadIdx.x] = 1; }

__global__ void cooperative(int *work, int *done)
{
    auto grid = cooperative_groups::this_grid();
    work[grid.thread_rank()] = 1;
    grid.sync();
    if (work[grid.size() - 1 - grid.thread_rank()] == 1 && grid.thread_rank() == 0)
        *done = 1;
}

} // extern "C"

static uint8_t *memory(size_t bytes)
{
    void *address;
    CHECK(cudaMalloc(&address, bytes));
    CHECK(cudaMemset(address, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    return (uint8_t *)address;
}

static void known()
{
    uint8_t *one = memory(1 << 16), *two = memory(1 << 16);
    uint64_t a = (uint64_t)one, b = (uint64_t)two;
    expect("copies", launch(0, (void *)copies, 4, 64, one + 3, two + 5, 201), 0,
           rows(READ, a + 3, 201) + rows(WRITE, b + 5, 201), a);
    expect("strides", launch(0, (void *)strides, 2, 32, (double *)one, (float2 *)two, 50), 0,
           rows(READ, a, 8, 16, 50) + rows(WRITE, b, 8, 24, 50), a);
    expect("atomics", launch(0, (void *)atomics, 1, 64, (unsigned *)two, (unsigned *)two + 100, (unsigned *)one),
           0, rows(READ, a, 256) + rows(ATOMIC, b, 32) + rows(ATOMIC, b + 400, 4), a);
    void *variable;
    CHECK(cudaGetSymbolAddress(&variable, counter));
    expect("module variable", launch(0, (void *)module_variable, 1, 3), 0,
           rows(WRITE, (uint64_t)variable, 12), (uint64_t)variable);
    expect("asynchronous copy", launch(0, (void *)asynchronous, 1, 64, (float4 *)one, (float4 *)two), 0,
           rows(READ, a, 1016) + rows(WRITE, b, 1024), a);
    expect("bulk copies", launch(0, (void *)bulk, 1, 32, one + 1024, two + 2048), 0,
           rows(READ, a + 1024, 512) + rows(WRITE, b + 2048, 256), a);
    expect("reversed", launch(0, (void *)reversed, 1, 64, (uint16_t *)(two + 1002)), 0,
           rows(WRITE, b + 1002, 128), b);
    expect("nothing touched", launch(0, (void *)copies, 4, 64, one, two, 0), 0, {}, a);
    CUtensorMap from = encode(one, 100, 20, 512), to = encode(two + 4096, 100, 20, 512);
    expect("tensor load", launch(0, (void *)tensor, 1, 32, from, to, 88, 15), 0,
           rows(READ, a + 15 * 512 + 88 * 4, 48, 512, 5), a);
    float *parts[] = {(float *)two, (float *)(two + 4096)};
    CHECK(cudaMemcpy(one, parts, sizeof parts, cudaMemcpyHostToDevice));
    expect("table of pointers", launch(0, (void *)through_table, 1, 100, (float *const *)one, 1), 0,
           rows(READ, a + 8, 8) + rows(WRITE, b + 4096, 400), a);
    uint64_t op = launch(0, (void *)unasked, 1, 32, one);
    CHECK(cudaDeviceSynchronize());
    launch(0, (void *)copies, 1, 1, one, two, 1);
    Result last;
    result_of(next_op - 1, 0, last);
    std::lock_guard<std::mutex> guard(mutex);
    check(results.count({op, 0}) == 0, "a kernel that was not asked for gives nothing");
}

// More launches than wait for the GPU at a time, in several streams and threads.
static void many()
{
    constexpr int THREADS = 4, LAUNCHES = 4000;
    uint8_t *from = memory(THREADS * LAUNCHES * 8), *to = memory(THREADS * LAUNCHES * 8);
    std::vector<std::thread> threads;
    std::vector<std::pair<uint64_t, uint64_t>> ops[THREADS];
    for (int thread = 0; thread < THREADS; ++thread)
        threads.emplace_back([&, thread] {
            cudaStream_t stream;
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            for (int at = 0; at < LAUNCHES; ++at) {
                uint64_t offset = 8 * (thread * LAUNCHES + at);
                ops[thread].push_back({launch(stream, (void *)copies, 1, 32, from + offset, to + offset, 5),
                                       offset});
            }
            CHECK(cudaStreamSynchronize(stream));
        });
    for (std::thread &thread : threads)
        thread.join();
    int right = 0;
    for (auto &list : ops)
        for (auto [op, offset] : list) {
            Result result;
            Bytes wanted = rows(READ, (uint64_t)from + offset, 5) + rows(WRITE, (uint64_t)to + offset, 5);
            right += result_of(op, 0, result) && result.reason.empty() && result.bytes == wanted;
        }
    check(right == THREADS * LAUNCHES, "each of 16,000 launches of four threads has its own bytes");
    printf("\t%d right\n", right);
}

// A kernel that a later call of the host releases, and others measured while it runs.
static void released()
{
    int *flag;
    CHECK(cudaMallocHost(&flag, 8));
    flag[0] = flag[1] = 0;
    uint8_t *one = memory(4096), *two = memory(4096);
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    // Code is loaded before, since loading waits for running kernels.
    launch(second, (void *)copies, 1, 32, one, two, 0);
    flag[0] = 1;
    launch(second, (void *)spins, 1, 1, (volatile int *)flag, flag + 1);
    CHECK(cudaDeviceSynchronize());
    flag[0] = flag[1] = 0;
    uint64_t spinning = launch(first, (void *)spins, 1, 1, (volatile int *)flag, flag + 1);
    uint64_t other = launch(second, (void *)copies, 1, 32, one, two, 17);
    expect("a launch beside a spinning kernel", other, 0,
           rows(READ, (uint64_t)one, 17) + rows(WRITE, (uint64_t)two, 17), (uint64_t)one);
    check(cudaStreamQuery(first) == cudaErrorNotReady, "the spinning kernel still runs");
    *(volatile int *)flag = 1;
    CHECK(cudaStreamSynchronize(first));
    expect("the spinning kernel", spinning, 0, rows(READ, (uint64_t)flag, 4) + rows(WRITE, (uint64_t)flag + 4, 4),
           (uint64_t)flag);
}

static void large()
{
    constexpr uint64_t BYTES = 64 << 20;
    uint8_t *from = memory(BYTES), *to = memory(BYTES);
    auto timed = [&](const void *kernel) {
        cudaEvent_t begin, end;
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
        float best = 1e9;
        uint64_t op = 0;
        for (int round = 0; round < 5; ++round) {
            CHECK(cudaEventRecord(begin));
            op = launch(0, kernel, BYTES / 16 / 256, 256, (float4 *)from, (float4 *)to, BYTES / 16);
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            float time;
            CHECK(cudaEventElapsedTime(&time, begin, end));
            best = std::min(best, time);
        }
        printf("\t%.0f us\n", best * 1000);
        return op;
    };
    timed((void *)unasked_copy);
    expect("64 MiB copied by vectors", timed((void *)vector_copy), 0,
           rows(READ, (uint64_t)from, BYTES) + rows(WRITE, (uint64_t)to, BYTES), (uint64_t)from);
    // Every third byte of 3 MiB, in a mixed order.
    constexpr int COUNT = 1 << 20;
    std::vector<uint32_t> index(COUNT);
    for (int at = 0; at < COUNT; ++at)
        index[at] = 3 * ((at * 40503u) % COUNT);
    CHECK(cudaMemcpy(from, index.data(), COUNT * 4, cudaMemcpyHostToDevice));
    auto begin = std::chrono::steady_clock::now();
    uint64_t op = launch(0, (void *)scattered, COUNT / 256, 256, (uint32_t *)from, to, COUNT);
    Result result;
    bool came = result_of(op, 0, result);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Bytes wanted = rows(READ, (uint64_t)from, COUNT * 4) + rows(WRITE, (uint64_t)to, 1, 3, COUNT);
    check(came && result.bytes == wanted && result.reason.empty(), "every third byte in a mixed order");
    printf("\t%.1f ms, %zu ranges\n", seconds * 1000, result.bytes.size());
}

static void graphs()
{
    uint8_t *one = memory(1 << 16), *two = memory(1 << 16);
    uint64_t a = (uint64_t)one, b = (uint64_t)two;
    launch(0, (void *)copies, 1, 32, one, two, 0); // the context is prepared
    CUgraph graph;
    CUgraphExec executable;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode nodes[4];
    for (int at = 0; at < 4; ++at) {
        cudaKernelNodeParams params = {};
        const uint8_t *from = one + 1000 * at;
        uint8_t *to = two + 1000 * at;
        int count = 10 + at;
        void *list[] = {&from, &to, &count};
        void *other[] = {&to};
        // The last one was not asked for.
        params.func = at == 3 ? (void *)unasked : (void *)copies;
        params.gridDim = 1;
        params.blockDim = 64;
        params.kernelParams = at == 3 ? other : list;
        CUgraphNode *before = at == 2 ? &nodes[1] : nullptr;
        CHECK(cudaGraphAddKernelNode(&nodes[at], graph, before, before != nullptr, &params));
    }
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < 3; ++round) {
        uint64_t op = hooked(stream, [&] { return cuGraphLaunch(executable, stream); });
        CHECK(cudaStreamSynchronize(stream));
        for (int at = 0; at < 3; ++at)
            expect("node of a graph", op, (uint64_t)nodes[at],
                   rows(READ, a + 1000 * at, 10 + at) + rows(WRITE, b + 1000 * at, 10 + at), a);
        std::lock_guard<std::mutex> guard(mutex);
        for (auto &[key, result] : results)
            if (key.first == op)
                printf("\tgraph launch %d, node %#lx:%s\n", round, (unsigned long)key.second,
                       text(result.bytes, key.second == 0 ? b : b).c_str());
    }
    for (int at = 0; at < 4; ++at)
        printf("\tnode %d is %p\n", at, (void *)nodes[at]);
    {
        cudaGraph_t chain;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        launch(stream, (void *)copies, 1, 32, one + 5000, two + 5000, 21);
        launch(stream, (void *)strides, 2, 32, (double *)one, (float2 *)two, 50);
        launch(stream, (void *)copies, 1, 32, one + 6000, two + 6000, 22);
        launch(stream, (void *)reversed, 1, 64, (uint16_t *)(two + 1002));
        CHECK(cudaStreamEndCapture(stream, &chain));
        cudaGraphNode_t nodes[8];
        size_t count = 8;
        CHECK(cudaGraphGetNodes(chain, nodes, &count));
        CHECK(cuGraphInstantiate(&executable, chain, 0));
        for (int round = 0; round < 2; ++round) {
            uint64_t op = hooked(stream, [&] { return cuGraphLaunch(executable, stream); });
            CHECK(cudaStreamSynchronize(stream));
            for (size_t at = 0; at < count; ++at) {
                Result result;
                result_of(op, (uint64_t)nodes[at], result);
                printf("\tchain node %zu %p: %s\n", at, (void *)nodes[at], text(result.bytes, a).c_str());
            }
        }
    }
    // Captured: launches are hooked while the stream captures.
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch(stream, (void *)copies, 1, 32, one + 5000, two + 5000, 21);
    launch(stream, (void *)copies, 1, 32, one + 6000, two + 6000, 22);
    CHECK(cudaStreamEndCapture(stream, &captured));
    cudaGraphNode_t made[8];
    size_t count = 8;
    CHECK(cudaGraphGetNodes(captured, made, &count));
    CHECK(cuGraphInstantiate(&executable, captured, 0));
    uint64_t op = hooked(stream, [&] { return cuGraphLaunch(executable, stream); });
    CHECK(cudaStreamSynchronize(stream));
    check(count == 2, "a capture has the two launches alone");
    Bytes either[2];
    for (int at = 0; at < 2; ++at)
        either[at] = rows(READ, a + 5000 + 1000 * at, 21 + at) + rows(WRITE, b + 5000 + 1000 * at, 21 + at);
    for (size_t at = 0; at < count; ++at) {
        Result result;
        bool came = result_of(op, (uint64_t)made[at], result);
        check(came && (result.bytes == either[0] || result.bytes == either[1]), "node of a captured graph");
        printf("\t%s\n", text(result.bytes, a).c_str());
    }
    // Where the graph that was instantiated is gone, its nodes have other handles: the reason why the
    // runtime keeps graphs (src/runtime/src/kept_graphs.rs).
    for (unsigned long long flags : {0ull, 1ull}) { // CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        launch(stream, (void *)copies, 1, 32, one + 5000, two + 5000, 21);
        CHECK(cudaStreamEndCapture(stream, &captured));
        count = 1;
        CHECK(cudaGraphGetNodes(captured, made, &count));
        CHECK(cuGraphInstantiate(&executable, captured, flags));
        CHECK(cudaGraphDestroy(captured));
        for (int round = 0; round < 2; ++round) {
            uint64_t op = hooked(stream, [&] { return cuGraphLaunch(executable, stream); });
            CHECK(cudaStreamSynchronize(stream));
            bool came = false;
            for (int wait = 0; wait < 100 && !came; ++wait) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
                std::lock_guard<std::mutex> guard(mutex);
                for (auto &[key, result] : results)
                    came |= key.first == op && key.second != (uint64_t)made[0];
            }
            check(came, "node of a destroyed graph has another handle");
            std::lock_guard<std::mutex> guard(mutex);
            for (auto &[key, result] : results)
                if (key.first == op)
                    printf("\tflags %llu, launch %d, node %#lx for %p:%s\n", flags, round,
                           (unsigned long)key.second, (void *)made[0], text(result.bytes, a).c_str());
        }
    }
}

static void full_grid()
{
    int blocks, processors;
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cooperative, 512, 0));
    unsigned grid = (unsigned)(blocks * processors);
    uint8_t *work = memory(grid * 512 * 4 + 4096), *done = work + grid * 512 * 4 + 2048;
    void *list[] = {&work, &done};
    printf("\t%d blocks of 512 on each of %d processors\n", blocks, processors);
    uint64_t op = hooked(0, [&] {
        return (CUresult)cudaLaunchCooperativeKernel((void *)cooperative, grid, 512, list, 0, 0);
    });
    CHECK(cudaDeviceSynchronize());
    uint64_t a = (uint64_t)work;
    Result result;
    bool came = result_of(op, 0, result);
    // The grid's barrier is a word of the driver's own memory.
    Bytes some;
    for (auto &[key, end] : result.bytes)
        if (key.second >= a && end <= a + grid * 512 * 4 + 4096)
            some[key] = end;
    Bytes wanted = rows(READ, a, grid * 512 * 4) + rows(WRITE, a, grid * 512 * 4)
        + rows(WRITE, (uint64_t)done, 4);
    check(came && result.reason.empty() && some == wanted,
          "a full cooperative grid");
    printf("\t%s\n", text(result.bytes, a).c_str());
}

// Ends with a kernel that runs for ever.
static void running()
{
    int *flag;
    CHECK(cudaMallocHost(&flag, 8));
    flag[0] = 0;
    launch(0, (void *)spins, 1, 1, (volatile int *)flag, flag + 1);
    printf("PASS\tthe process ends with a kernel running\n");
    fflush(stdout);
    std::thread([flag] {
        // The driver may wait for the kernel; the library has given up by then.
        std::this_thread::sleep_for(std::chrono::seconds(6));
        *(volatile int *)flag = 1;
    }).detach();
}

int main(int count, char **names)
{
    std::map<std::string, void (*)()> tests = {
        {"known", known}, {"many", many}, {"released", released}, {"large", large},
        {"graphs", graphs}, {"full_grid", full_grid}, {"running", running},
    };
    if (count != 2 || !tests.count(names[1]))
        return 2;
    CHECK(cudaFree(0));
    check(hooks != nullptr, "the library is there");
    tests[names[1]]();
    CHECK(cudaGetLastError());
    return failures != 0;
}
