// Launches an empty kernel many times and prints the nanoseconds a launch.
#include <chrono>
#include <cstdio>

__global__ void Nothing(int *unused) {}

static double LaunchMany(int launches, int *argument) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) {
        Nothing<<<1, 1>>>(argument);
    }
    cudaDeviceSynchronize();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / launches;
}

int main() {
    int *memory = nullptr;
    cudaMalloc(&memory, 1 << 20);
    LaunchMany(20000, memory);
    std::printf("%.0f\n", LaunchMany(400000, memory));
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
