/* A group of two calls in two streams, which orders them with each other. racy: the second call is in
 * a third stream, so that nothing orders the stream of the memset with the send. One RAW, and one WAR
 * for the memset behind the group. */
#include "gpu.h"
#include "nccl.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address sent = device_memory(), received = device_memory();
    stream filling = new_stream(), talking = new_stream(), listening = new_stream();
    must(cuMemsetD8Async(sent, 1, BUFFER_BYTES, filling));
    int result = ncclGroupStart();
    result |= ncclSend((void *)sent, BUFFER_BYTES, NCCL_INT8, 1, NULL, talking);
    result |= ncclRecv((void *)received, BUFFER_BYTES, NCCL_INT8, 1, NULL,
                       racy ? listening : filling);
    result |= ncclGroupEnd();
    must(cuMemsetD8Async(sent, 2, BUFFER_BYTES, filling));
    must(cuCtxSynchronize());
    printf("nccl_streams: done\n");
    return result;
}
