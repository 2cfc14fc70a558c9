// An ordinary program for nvcc: upload and kernel in one stream, download in another, an event
// between, eight rounds. Built with nvcc's default, the static runtime library.
#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                       \
    do {                                                                                 \
        cudaError_t answered = (call);                                                   \
        if (answered != cudaSuccess) {                                                   \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(answered));       \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

constexpr int kWords = 1 << 16;
constexpr int kRounds = 8;

__global__ void Square(const int *input, long long *output, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        output[index] = static_cast<long long>(input[index]) * input[index];
}

int main()
{
    int *words = nullptr, *input = nullptr;
    long long *squares = nullptr, *output = nullptr;
    cudaStream_t compute, download;
    cudaEvent_t squared, downloaded;
    MUST(cudaMallocHost(&words, kWords * sizeof *words));
    MUST(cudaMallocHost(&squares, kWords * sizeof *squares));
    MUST(cudaMalloc(&input, kWords * sizeof *input));
    MUST(cudaMalloc(&output, kWords * sizeof *output));
    MUST(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&download, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&squared, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&downloaded, cudaEventDisableTiming));

    long long total = 0;
    for (int round = 0; round < kRounds; round++) {
        for (int word = 0; word < kWords; word++)
            words[word] = (word + round) % 1000;
        MUST(cudaMemcpyAsync(input, words, kWords * sizeof *words, cudaMemcpyHostToDevice, compute));
        Square<<<(kWords + 255) / 256, 256, 0, compute>>>(input, output, kWords);
        MUST(cudaGetLastError());
        MUST(cudaEventRecord(squared, compute));
        MUST(cudaStreamWaitEvent(download, squared, 0));
        MUST(cudaMemcpyAsync(squares, output, kWords * sizeof *output, cudaMemcpyDeviceToHost, download));
        MUST(cudaEventRecord(downloaded, download));
        MUST(cudaEventSynchronize(downloaded));
        for (int word = 0; word < kWords; word++)
            total += squares[word];
    }
    std::printf("two_streams: %lld\n", total);

    MUST(cudaEventDestroy(squared));
    MUST(cudaEventDestroy(downloaded));
    MUST(cudaStreamDestroy(compute));
    MUST(cudaStreamDestroy(download));
    MUST(cudaFree(input));
    MUST(cudaFree(output));
    MUST(cudaFreeHost(words));
    MUST(cudaFreeHost(squares));
    return 3;  // A code of its own, which has to come through.
}
