/* One thread downloads a result and waits for it, another reads it. To be run with
 * --strict-host-threads. clean: the result is handed over under a mutex and a condition variable.
 * racy: by a flag that nobody but the program knows of. One RAW. */
#include <pthread.h>
#include <stdatomic.h>
#include <streamsan.h>

#include "gpu.h"

static unsigned char *result;
static device_address computed;
static stream download;
static context current;
static int racy, ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static atomic_int flag;

static void *fetch(void *unused)
{
    (void)unused;
    must(cuCtxSetCurrent(current));
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
    must(cuStreamSynchronize(download));
    if (racy) {
        atomic_store(&flag, 1);
    } else {
        pthread_mutex_lock(&lock);
        ready = 1;
        pthread_cond_signal(&arrived);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    if (racy) {
        while (!atomic_load(&flag))
            ;
    } else {
        pthread_mutex_lock(&lock);
        while (!ready)
            pthread_cond_wait(&arrived, &lock);
        pthread_mutex_unlock(&lock);
    }
    streamsan_host_read(result, BUFFER_BYTES);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t producer, consumer;
    int device;
    racy = is_racy(count, arguments);
    open_gpu();
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&current, device));
    computed = device_memory();
    result = pinned_memory();
    download = new_stream();
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_create(&producer, NULL, fetch, NULL);
    pthread_join(consumer, NULL);
    pthread_join(producer, NULL);
    printf("handed_over: done\n");
    return 0;
}
