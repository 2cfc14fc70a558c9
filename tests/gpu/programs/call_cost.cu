// What driver calls cost their program: nanoseconds a call, in bursts that the GPU keeps up with.
//
//     call_cost [stop]
//
// With `stop` the parent process (streamsan's collector, which reads the rings) stands still during
// each burst: the difference to a run without is what reading beside the program costs it.
// nvcc -O2 -o call_cost call_cost.cu -lcuda
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cuda.h>
#include <unistd.h>
#include <vector>

static bool stop_reader;

static void Pause() { usleep(100000); }

// The median of bursts, in nanoseconds a call.
template <typename Call>
static void Measure(const char *name, int calls, Call call) {
    std::vector<double> bursts;
    for (int burst = 0; burst < 15; ++burst) {
        cuCtxSynchronize();
        Pause();
        if (stop_reader) {
            kill(getppid(), SIGSTOP);
            usleep(1000);
        }
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) {
            call(i);
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        if (stop_reader) {
            kill(getppid(), SIGCONT);
        }
        bursts.push_back(took.count() / calls);
    }
    std::sort(bursts.begin(), bursts.end());
    std::printf("%s\t%.0f\t(%.0f to %.0f)\n", name, bursts[bursts.size() / 2], bursts.front(),
                bursts.back());
}

__global__ void Nothing(int *unused) {}

int main(int count, char **arguments) {
    stop_reader = count > 1 && std::strcmp(arguments[1], "stop") == 0;
    int *unused = nullptr;
    cudaMalloc(&unused, 4096);
    Nothing<<<1, 1>>>(unused);
    static CUdeviceptr device[1000];
    for (CUdeviceptr &one : device) {
        cuMemAlloc(&one, 16384);
    }
    std::vector<char> host(16384, 1);
    CUstream stream;
    cuStreamCreate(&stream, 0);
    Measure("copy of 16 KiB", 20000, [&](int i) {
        cuMemcpyHtoDAsync(device[i % 1000], host.data(), 16384, stream);
    });
    Measure("copy of 128 bytes", 20000, [&](int i) {
        cuMemcpyHtoDAsync(device[i % 1000], host.data(), 128, stream);
    });
    Measure("copy of 64 bytes", 15000, [&](int i) {
        cuMemcpyHtoDAsync(device[i % 1000], host.data(), 64, stream);
    });
    Measure("launch, 500 in flight", 500, [&](int) { Nothing<<<1, 1, 0, stream>>>(unused); });
    CUevent event;
    cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    Measure("event recorded", 500, [&](int) { cuEventRecord(event, stream); });
    Measure("stream created and destroyed", 50, [&](int) {
        CUstream created;
        cuStreamCreate(&created, 0);
        cuStreamDestroy(created);
    });
    Measure("current context asked for", 20000, [&](int) {
        CUcontext context;
        cuCtxGetCurrent(&context);
    });
    cuCtxSynchronize();
    return 0;
}
