/* Ordinary host memory is uploaded by an asynchronous copy from pinned memory, and the next input is
 * written into it. racy: written before the copy has read it. One WAR. */
#include <streamsan.h>

#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address input = device_memory();
    unsigned char *staging = pinned_memory();
    stream upload = new_stream();
    streamsan_host_write(staging, BUFFER_BYTES);
    memset(staging, 1, BUFFER_BYTES);
    must(cuMemcpyHtoDAsync_v2(input, staging, BUFFER_BYTES, upload));
    if (!racy)
        must(cuStreamSynchronize(upload));
    streamsan_host_write(staging, BUFFER_BYTES);
    memset(staging, 2, BUFFER_BYTES);
    must(cuStreamSynchronize(upload));
    printf("annotated_write: done\n");
    return 0;
}
