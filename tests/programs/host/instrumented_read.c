/* The loads and stores of this program are instrumented by the compiler (-fsanitize=thread).
 * racy: the downloaded bytes are summed up before the stream is synchronised. One RAW. */
#include "gpu.h"

static unsigned sum(const unsigned char *bytes, size_t count)
{
    unsigned total = 0;
    for (size_t i = 0; i < count; i++)
        total += bytes[i];
    return total;
}

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address computed = device_memory();
    unsigned char *result = pinned_memory();
    stream download = new_stream();
    result[0] = 1;
    must(cuMemsetD8Async(computed, 5, BUFFER_BYTES, download));
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
    if (!racy)
        must(cuStreamSynchronize(download));
    unsigned total = sum(result, BUFFER_BYTES);
    must(cuStreamSynchronize(download));
    printf("instrumented_read: %s\n", total % 5 == 0 || racy ? "done" : "wrong");
    return 0;
}
