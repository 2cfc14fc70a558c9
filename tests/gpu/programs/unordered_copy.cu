// A kernel writes a buffer in one stream while another stream copies it: one wait is missing.
// Both calls stand in functions of their own, so that their lines can be told.
#include <cstdio>

__global__ void Fill(float *data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = 1.0f;
}

__attribute__((noinline)) static void Produce(float *data, int count, cudaStream_t stream) {
    Fill<<<(count + 255) / 256, 256, 0, stream>>>(data, count);  // the write
}

__attribute__((noinline)) static void Consume(float *to, const float *data, int count,
                                              cudaStream_t stream) {
    cudaMemcpyAsync(to, data, count * sizeof(float), cudaMemcpyDeviceToDevice, stream);  // the read
}

int main() {
    const int count = 1 << 20;
    float *data = nullptr, *copy = nullptr;
    cudaMalloc(&data, count * sizeof(float));
    cudaMalloc(&copy, count * sizeof(float));
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    Produce(data, count, first);
    Consume(copy, data, count, second);
    cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
