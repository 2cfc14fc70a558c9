/* Every kind of access that a compiler tells ThreadSanitizer of; prints what came of it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define EACH(type, start)                                                                          \
    do {                                                                                           \
        static _Atomic type object = start;                                                        \
        type expected = 1, seen[12];                                                               \
        int kept = 0;                                                                              \
        seen[kept++] = atomic_load(&object);                                                       \
        atomic_store(&object, 100);                                                                \
        seen[kept++] = atomic_exchange(&object, 50);                                               \
        seen[kept++] = atomic_fetch_add(&object, 7);                                               \
        seen[kept++] = atomic_fetch_sub(&object, 3);                                               \
        seen[kept++] = atomic_fetch_and(&object, 0x3c);                                            \
        seen[kept++] = atomic_fetch_or(&object, 0x41);                                             \
        seen[kept++] = atomic_fetch_xor(&object, 0x11);                                            \
        seen[kept++] = __atomic_fetch_nand((type *)&object, 0x0f, __ATOMIC_SEQ_CST);               \
        seen[kept++] = atomic_compare_exchange_strong(&object, &expected, 9);                      \
        seen[kept++] = atomic_compare_exchange_strong(&object, &expected, 9);                      \
        seen[kept++] = expected;                                                                   \
        seen[kept++] = atomic_load(&object);                                                       \
        printf(#type ":");                                                                         \
        for (int i = 0; i < kept; i++)                                                             \
            printf(" %llx.%llx", (unsigned long long)((unsigned __int128)seen[i] >> 64),           \
                   (unsigned long long)seen[i]);                                                   \
        printf("\n");                                                                              \
    } while (0)

struct large {
    char bytes[200];
};

static struct large from, to;
static volatile int changes;
static _Atomic unsigned long counter;
static unsigned char unaligned[64];

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++)
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
    return NULL;
}

int main(void)
{
    EACH(unsigned char, 3);
    EACH(unsigned short, 3);
    EACH(unsigned, 3);
    EACH(unsigned long, 3);
    typedef unsigned __int128 wide;
    EACH(wide, ((wide)5 << 64 | 3));
    atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst);

    memset(&from, 7, sizeof from);
    to = from;
    memmove(to.bytes + 1, to.bytes, 100);
    memcpy(unaligned + 1, to.bytes, 32);
    unsigned long word;
    memcpy(&word, unaligned + 3, sizeof word);
    changes++;
    printf("%d %lx %d\n", to.bytes[150], word, changes);

    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("counted %lu\n", counter);
    return 0;
}
