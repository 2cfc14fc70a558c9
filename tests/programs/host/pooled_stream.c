/* A pool of one stream hands it out twice, under two names. racy: the second user relies on the
 * first one's work although nothing but the shared stream orders the two; streamsan says so in a
 * lint, since the order is real today. clean: the second user waits. */
#include <streamsan.h>

#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address shared = device_memory();
    stream pooled = new_stream();
    streamsan_name_stream(pooled, "first user");
    must(cuMemsetD8Async(shared, 1, BUFFER_BYTES, pooled));
    if (!racy)
        must(cuStreamSynchronize(pooled));
    streamsan_name_stream(pooled, "second user");
    must(cuMemsetD8Async(shared, 2, BUFFER_BYTES, pooled));
    must(cuStreamSynchronize(pooled));
    printf("pooled_stream: done\n");
    return 0;
}
