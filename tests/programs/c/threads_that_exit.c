/* Hazard: many short-lived host threads, one after the other, each with its own ring to reclaim.
 * All set one buffer in one stream. The main thread sets it last, in another stream, unordered.
 * Expected: one WAW, between the last thread's memset and the main thread's. */
#include <pthread.h>

#include "work.h"

enum { THREADS = 300 };

static device_address shared;
static stream common;

static void *one_thread(void *number)
{
    must(cuCtxSetCurrent(primary));
    must(cuMemsetD8Async(shared, (unsigned char)(uintptr_t)number, BUFFER_BYTES, common));
    return NULL;
}

int main(void)
{
    stream other;
    open_device();
    must(cuMemAlloc_v2(&shared, BUFFER_BYTES));
    must(cuStreamCreate(&common, NON_BLOCKING));
    must(cuStreamCreate(&other, NON_BLOCKING));
    for (uintptr_t n = 0; n < THREADS; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_thread, (void *)n) != 0
            || pthread_join(thread, NULL) != 0)
            return 1;
    }
    must(cuMemsetD8Async(shared, 0, BUFFER_BYTES, other));
    must(cuCtxSynchronize());
    printf("threads_that_exit: %d threads\n", THREADS);
    return 0;
}
