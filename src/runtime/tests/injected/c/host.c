/* Says what its threads do, and hands pinned memory from thread to thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streamsan.h"

int cuMemHostRegister_v2(void *start, size_t bytes, unsigned flags);
int cuStreamSynchronize(void *stream);

/* Asked by the Python package only, so not in the header. */
extern uint64_t streamsan_rt_issue_index(void) __attribute__((weak));

static unsigned char *memory;
static pthread_barrier_t barrier;

static void *write_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4096; i++)
        memory[i] = 1;
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "annotate") == 0) {
        streamsan_host_read((void *)0x1000, 16);
        streamsan_host_write((void *)0x2000, 32);
        streamsan_name_stream((void *)0x77, "download");
        streamsan_name_memory((void *)0x3000, "");
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "index") == 0) {
        uint64_t before = streamsan_rt_issue_index();
        cuStreamSynchronize((void *)0x77);
        uint64_t after = streamsan_rt_issue_index();
        cuStreamSynchronize((void *)0x77);
        printf("%llu %llu\n", (unsigned long long)before, (unsigned long long)after);
        return 0;
    }
    /* The compiler's calls, by hand or by -fsanitize=thread. */
    memory = aligned_alloc(4096, 8192);
    memset(memory, 0, 8192);
    memory[1] = 3; /* nobody knows the memory yet */
    if (cuMemHostRegister_v2(memory, 4096, 0) != 0)
        return 1;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, write_all, NULL);
    pthread_barrier_wait(&barrier);
    cuStreamSynchronize((void *)0x77);
    unsigned total = 0;
    for (int i = 16; i < 32; i++)
        total += memory[i];
    memory[4100] = 1; /* on a page that was not registered */
    pthread_join(thread, NULL);
    printf("%u\n", total);
    return total == 16 ? 0 : 1;
}
