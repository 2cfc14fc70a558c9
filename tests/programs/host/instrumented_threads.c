/* Two threads write into pinned memory and hand it over to a third, which uploads it; instrumented.
 * clean: each part is written before its upload. What the writers touched must stand before the
 * uploads of the other thread. racy: one writer writes again while the upload may run. One WAR. */
#include <pthread.h>

#include "gpu.h"

static unsigned char *staging;
static pthread_barrier_t written, uploaded, again;
static int racy;

static void *write_half(void *half)
{
    size_t from = half ? BUFFER_BYTES / 2 : 0;
    for (size_t i = 0; i < BUFFER_BYTES / 2; i++)
        staging[from + i] = 1;
    pthread_barrier_wait(&written);
    pthread_barrier_wait(&uploaded);
    if (racy && half)
        staging[from + 8] = 2;
    pthread_barrier_wait(&again);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t first, second;
    racy = is_racy(count, arguments);
    open_gpu();
    device_address input = device_memory();
    staging = pinned_memory();
    stream upload = new_stream();
    pthread_barrier_init(&written, NULL, 3);
    pthread_barrier_init(&uploaded, NULL, 3);
    pthread_barrier_init(&again, NULL, 3);
    pthread_create(&first, NULL, write_half, NULL);
    pthread_create(&second, NULL, write_half, staging);
    pthread_barrier_wait(&written);
    must(cuMemcpyHtoDAsync_v2(input, staging, BUFFER_BYTES, upload));
    pthread_barrier_wait(&uploaded);
    pthread_barrier_wait(&again);
    must(cuStreamSynchronize(upload));
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("instrumented_threads: done\n");
    return 0;
}
