/* Hazard: the main thread ends by pthread_exit and is a zombie while another one works.
 * Expected: one WAW: the process is not taken for a dead one. */
#include <pthread.h>
#include <unistd.h>

#include "work.h"

static void *other(void *unused)
{
    (void)unused;
    /* Longer than the collector goes without looking who still lives. */
    usleep(200 * 1000);
    must(cuCtxSetCurrent(primary));
    racy_memsets();
    must(cuCtxSynchronize());
    printf("main_thread_exits: done\n");
    fflush(stdout);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    open_device();
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    pthread_exit(NULL);
}
