/* A result is downloaded into pinned memory and read there by ordinary code, which says so.
 * racy: read before the stream is synchronised. One RAW; stream, event and memory bear names. */
#include <streamsan.h>

#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address computed = device_memory();
    unsigned char *result = pinned_memory();
    stream download = new_stream();
    streamsan_name_stream(download, "download");
    streamsan_name_memory(result, "result");
    streamsan_name_memory((void *)computed, "computed");
    must(cuMemsetD8Async(computed, 5, BUFFER_BYTES, download));
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
    if (!racy)
        must(cuStreamSynchronize(download));
    streamsan_host_read(result + 16, 64);
    must(cuStreamSynchronize(download));
    printf("annotated_read: %d\n", result[16]);
    return 0;
}
