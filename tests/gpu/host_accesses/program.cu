// Programs of run.py: `program NAME racy|clean [ROUNDS]`. What takes ROUNDS prints the seconds of its
// loop, without what starting takes. Builds without nvcc too, then without kernels.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define must(call)                                                              \
    do {                                                                        \
        cudaError_t e = (call);                                                 \
        if (e != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));     \
            std::exit(1);                                                       \
        }                                                                       \
    } while (0)

static volatile unsigned char seen;
static unsigned char *pinned;
static void CUDART_CB fill(void *) { std::memset(pinned, 7, 4096); }

#ifdef __CUDACC__
#include <cuda/atomic>
__global__ void work(unsigned char *to, int rounds)
{
    for (int round = 0; round < rounds; round++)
        to[threadIdx.x] = (unsigned char)(to[threadIdx.x] + round);
}

using flag = cuda::atomic<int, cuda::thread_scope_system>;

// Answers each number that the host puts into the first flag by the same number in the second one.
__global__ void echo(flag *flags, int rounds)
{
    for (int round = 1; round <= rounds; round++) {
        while (flags[0].load(cuda::memory_order_acquire) < round) {
        }
        flags[1].store(round, cuda::memory_order_release);
    }
}
#endif

static double now()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

static unsigned char *device;
static cudaStream_t stream, other;
static const size_t bytes = 1 << 20;

static void once(const std::string &name, bool racy, int round)
{
    if (name == "read_early") {
        must(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream));
        if (!racy)
            must(cudaStreamSynchronize(stream));
        seen = pinned[16];
    } else if (name == "overwritten") {
        must(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
        if (!racy)
            must(cudaStreamSynchronize(stream));
        pinned[16] = (unsigned char)round;
    } else if (name == "host_function") {
        must(cudaLaunchHostFunc(racy ? other : stream, fill, nullptr));
        must(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, stream));
#ifdef __CUDACC__
    } else if (name == "managed") {
        unsigned char *both;
        must(cudaMallocManaged(&both, 4096));
        work<<<1, 32, 0, stream>>>(both, 100000);
        if (!racy)
            must(cudaStreamSynchronize(stream));
        seen = both[16];
#endif
    } else {
        std::exit(2);
    }
    if (round < 7 || racy)
        must(cudaDeviceSynchronize());
}

// Copies of 64 KiB with an event each, perhaps beside threads that keep the processors busy.
static void copies(int rounds, int beside)
{
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int at = 0; at < beside; at++)
        threads.emplace_back([&over] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        });
    cudaEvent_t event;
    must(cudaEventCreate(&event));
    double begin = now();
    for (int round = 0; round < rounds; round++) {
        must(cudaMemcpyAsync(pinned, device, 65536, cudaMemcpyDeviceToHost, stream));
        must(cudaEventRecord(event, stream));
        must(cudaEventSynchronize(event));
        seen = pinned[round % 65536];
    }
    std::printf("seconds %.6f\n", now() - begin);
    over = true;
    for (std::thread &thread : threads)
        thread.join();
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    std::string name = arguments[1];
    bool racy = std::string(arguments[2]) == "racy";
    int rounds = count > 3 ? std::atoi(arguments[3]) : 0;
    must(cudaMalloc(&device, bytes));
    must(cudaMallocHost(&pinned, bytes));
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    if (name == "copies" || name == "copies_beside") {
        copies(rounds, name == "copies" ? 0 : 8);
#ifdef __CUDACC__
    } else if (name == "flags") {
        flag *flags = new (pinned) flag[2]{{0}, {0}};
        echo<<<1, 1, 0, stream>>>(flags, rounds);
        must(cudaGetLastError());
        double begin = now();
        for (int round = 1; round <= rounds; round++) {
            flags[0].store(round, cuda::memory_order_release);
            while (flags[1].load(cuda::memory_order_acquire) < round) {
            }
        }
        std::printf("seconds %.6f\n", now() - begin);
#endif
    } else {
        for (int round = 0; round < 8; round++)
            once(name, racy, round);
    }
    must(cudaDeviceSynchronize());
    return 0;
}
