/* Two parts of a file are read by a batch, and a memset uses the memory again. racy: after the
 * program has been told of one of them only. One WAW. */
#include "cufile.h"
#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address buffer = device_memory();
    stream filling = new_stream();
    void *batch;
    struct file_request requests[2];
    memset(requests, 0, sizeof requests);
    for (int i = 0; i < 2; i++) {
        requests[i].mode = 1;
        requests[i].address = (void *)buffer;
        requests[i].offset = i * 1024;
        requests[i].bytes = 1024;
        requests[i].cookie = &requests[i];
    }
    if (cuFileBatchIOSetUp(&batch, 2).code != 0)
        return 1;
    if (cuFileBatchIOSubmit(batch, 2, requests, 0).code != 0)
        return 1;
    for (int told = 0; told < (racy ? 1 : 2);) {
        struct file_event events[2];
        unsigned events_told = 2;
        if (cuFileBatchIOGetStatus(batch, 1, &events_told, events, NULL).code != 0)
            return 1;
        told += (int)events_told;
    }
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, filling));
    must(cuStreamSynchronize(filling));
    cuFileBatchIODestroy(batch);
    printf("file_batch: done\n");
    return 0;
}
