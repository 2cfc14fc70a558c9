/* Two parts of a file are read by a batch. The fake library tells of the second one first, whose
 * memory is used again at once, by a memset: that is in order. Then a memset uses the memory of the
 * first one. racy: without having been told of it. One WAW. */
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
    for (int told = 0; told < 2; told++) {
        struct file_event event;
        unsigned events_told = 1;
        if (told == 0 || !racy)
            if (cuFileBatchIOGetStatus(batch, 1, &events_told, &event, NULL).code != 0)
                return 1;
        must(cuMemsetD8Async(buffer + (told == 0 ? 1024 : 0), 1, 1024, filling));
    }
    must(cuStreamSynchronize(filling));
    cuFileBatchIODestroy(batch);
    printf("file_batch: done\n");
    return 0;
}
