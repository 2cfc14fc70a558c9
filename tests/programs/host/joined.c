/* A thread downloads a result, waits for it and ends; the main thread reads it. To be run with
 * --strict-host-threads. clean: after pthread_join. racy: after a flag that only the program knows.
 * One RAW. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <streamsan.h>

#include "gpu.h"

static unsigned char *result;
static device_address computed;
static stream download;
static context current;
static atomic_int flag;

static void *fetch(void *unused)
{
    (void)unused;
    must(cuCtxSetCurrent(current));
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
    must(cuStreamSynchronize(download));
    atomic_store(&flag, 1);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t producer;
    int device, racy = is_racy(count, arguments);
    open_gpu();
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&current, device));
    computed = device_memory();
    result = pinned_memory();
    download = new_stream();
    pthread_create(&producer, NULL, fetch, NULL);
    if (racy) {
        while (!atomic_load(&flag))
            ;
    } else {
        pthread_join(producer, NULL);
    }
    streamsan_host_read(result, BUFFER_BYTES);
    if (racy)
        pthread_join(producer, NULL);
    printf("joined: done\n");
    return 0;
}
