/* One thread observes the end of a download each time, another reads the result, handed over by a
 * read-write lock, a spin lock, a semaphore and a barrier in turn. To be run with
 * --strict-host-threads. racy: the semaphore is posted before the download is waited for. One RAW. */
#include <pthread.h>
#include <semaphore.h>
#include <streamsan.h>

#include "gpu.h"

static unsigned char *result;
static device_address computed;
static stream download;
static int racy, turn;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
/* One a round: a thread that is told late that a barrier opened would know of the next round too. */
static pthread_barrier_t meeting, over[3];
static sem_t posted;

static void begin_download(void)
{
    must(cuMemcpyDtoHAsync_v2(result, computed, BUFFER_BYTES, download));
}

static void end_download(void)
{
    must(cuStreamSynchronize(download));
}

static int read_turn(void)
{
    pthread_rwlock_rdlock(&shared);
    int now = turn;
    pthread_rwlock_unlock(&shared);
    return now;
}

static int spin_turn(void)
{
    pthread_spin_lock(&spin);
    int now = turn;
    pthread_spin_unlock(&spin);
    return now;
}

static void *consume(void *unused)
{
    (void)unused;
    while (read_turn() < 1)
        ;
    streamsan_host_read(result, BUFFER_BYTES);
    pthread_barrier_wait(&over[0]);
    while (spin_turn() < 2)
        ;
    streamsan_host_read(result, BUFFER_BYTES);
    pthread_barrier_wait(&over[1]);
    sem_wait(&posted);
    streamsan_host_read(result, BUFFER_BYTES);
    pthread_barrier_wait(&over[2]);
    pthread_barrier_wait(&meeting);
    streamsan_host_read(result, BUFFER_BYTES);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t consumer;
    racy = is_racy(count, arguments);
    open_gpu();
    computed = device_memory();
    result = pinned_memory();
    download = new_stream();
    pthread_spin_init(&spin, 0);
    sem_init(&posted, 0, 0);
    pthread_barrier_init(&meeting, NULL, 2);
    for (int round = 0; round < 3; round++)
        pthread_barrier_init(&over[round], NULL, 2);
    pthread_create(&consumer, NULL, consume, NULL);

    begin_download();
    end_download();
    pthread_rwlock_wrlock(&shared);
    turn = 1;
    pthread_rwlock_unlock(&shared);
    pthread_barrier_wait(&over[0]);

    begin_download();
    end_download();
    pthread_spin_lock(&spin);
    turn = 2;
    pthread_spin_unlock(&spin);
    pthread_barrier_wait(&over[1]);

    begin_download();
    if (racy)
        sem_post(&posted);
    end_download();
    if (!racy)
        sem_post(&posted);
    pthread_barrier_wait(&over[2]);

    begin_download();
    end_download();
    pthread_barrier_wait(&meeting);
    pthread_join(consumer, NULL);
    printf("primitives: done\n");
    return 0;
}
