/* The last thing that the program does is to touch pinned memory: nothing is recorded behind it.
 * racy: the copy into it was never waited for. One WAW. Instrumented. */
#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address computed = device_memory();
    unsigned char *result = pinned_memory();
    stream download = new_stream();
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
    if (!racy)
        must(cuStreamSynchronize(download));
    printf("instrumented_last: done\n");
    result[7] = 1;
    return 0;
}
