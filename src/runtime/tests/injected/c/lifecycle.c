/* How processes and threads begin and end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int cuMemFree_v2(unsigned long long p);
int cuInit(unsigned flags);

static void *one_call(void *p) {
    cuMemFree_v2((unsigned long long)p);
    return NULL;
}

static pthread_key_t key;
static void late_call(void *p) { cuMemFree_v2((unsigned long long)p); }
static void *call_in_destructor(void *p) {
    cuMemFree_v2(1);
    pthread_setspecific(key, p);
    return NULL;
}

static void threads(int count, int at_once, void *(*body)(void *)) {
    pthread_t ids[64];
    for (int i = 0; i < count; i += at_once) {
        for (int j = 0; j < at_once; j++)
            pthread_create(&ids[j], NULL, body, (void *)(long)(i + j + 1));
        for (int j = 0; j < at_once; j++)
            pthread_join(ids[j], NULL);
    }
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    if (!strcmp(what, "fork")) {
        cuMemFree_v2(1);
        cuInit(0);
        if (fork() == 0) {
            cuInit(0);
            cuMemFree_v2(2);
            if (fork() == 0) {
                cuMemFree_v2(3);
                _exit(0);
            }
            wait(NULL);
            _exit(0);
        }
        wait(NULL);
        cuMemFree_v2(4);
    } else if (!strcmp(what, "clone")) {
        cuMemFree_v2(1);
        /* What fork handlers do not see. */
        if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
            cuInit(0);
            cuMemFree_v2(2);
            _exit(0);
        }
        wait(NULL);
    } else if (!strcmp(what, "exec")) {
        cuMemFree_v2(1);
        if (vfork() == 0) {
            execl(argv[0], argv[0], "once", "with spaces", NULL);
            _exit(1);
        }
        wait(NULL);
        execl(argv[0], argv[0], "once", NULL);
    } else if (!strcmp(what, "once")) {
        cuMemFree_v2(7);
    } else if (!strcmp(what, "_exit")) {
        cuMemFree_v2(1);
        _exit(9);
    } else if (!strcmp(what, "abort")) {
        cuMemFree_v2(1);
        abort();
    } else if (!strcmp(what, "kill")) {
        for (int i = 1; i <= 1000; i++)
            cuMemFree_v2(i);
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "threads")) {
        threads(atoi(argv[2]), 8, one_call);
    } else if (!strcmp(what, "destructors")) {
        pthread_key_create(&key, late_call);
        threads(64, 2, call_in_destructor);
    } else if (!strcmp(what, "many")) {
        for (int i = 0; i < atoi(argv[2]); i++)
            cuMemFree_v2(i);
    } else {
        return 1;
    }
    return 0;
}
