/* Two halves are gathered. racy: in another stream than the one that then writes the upper half of
 * what was gathered, which only the number of ranks tells. One WAW. */
#include "gpu.h"
#include "nccl.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address from = device_memory(), to = device_memory();
    stream gathering = new_stream(), filling = new_stream();
    size_t half = BUFFER_BYTES / 2;
    if (ncclAllGather((void *)from, (void *)to, half, NCCL_INT8, NULL, gathering) != 0)
        return 1;
    must(cuMemsetD8Async(to + half, 1, half, racy ? filling : gathering));
    must(cuCtxSynchronize());
    printf("nccl_all_gather: done\n");
    return 0;
}
