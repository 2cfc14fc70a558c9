/* A copy from one device to another, and a memset of the target in a stream of the other device.
 * Needs two devices.
 *
 *   peer racy      nothing orders the two streams: one WAW
 *   peer waited    the other device's stream waits for an event: no race
 *   peer blocking  the copy without `Async`, and a blocking stream: ordered by the copy itself
 *   peer exempt    the same, and a non-blocking stream: latent
 *
 * Prints how many devices there are. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKING = 0, NON_BLOCKING = 1, BYTES = 4096 };

static void *driver;

static void *find(const char *name)
{
    void *found = dlsym(driver, name);
    if (found == NULL) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return found;
}

static void must_(int answered, const char *what)
{
    if (answered != 0) {
        fprintf(stderr, "%s answered %d\n", what, answered);
        exit(1);
    }
}

/* Calls a function of the driver whose parameters are all integers or pointers. */
#define must(name, ...) must_(((int (*)()) find(#name))(__VA_ARGS__), #name)

int main(int argc, char **argv)
{
    const char *variant = argc > 1 ? argv[1] : "";
    int is_racy = strcmp(variant, "racy") == 0, waits = strcmp(variant, "waited") == 0;
    int is_exempt = strcmp(variant, "exempt") == 0;
    int is_synchronous = is_exempt || strcmp(variant, "blocking") == 0;
    void *contexts[2], *copying, *clearing, *copied;
    uint64_t source, target;
    int devices = 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || !(is_racy || waits || is_synchronous)) {
        fprintf(stderr, "usage: %s racy|waited|blocking|exempt, with a driver\n", argv[0]);
        return 2;
    }
    must(cuInit, 0);
    must(cuDeviceGetCount, &devices);
    if (devices < 2) {
        fprintf(stderr, "two devices are needed, %d found\n", devices);
        return 77;
    }
    must(cuDevicePrimaryCtxRetain, &contexts[0], 0);
    must(cuDevicePrimaryCtxRetain, &contexts[1], 1);

    must(cuCtxSetCurrent, contexts[1]);
    must(cuMemAlloc_v2, &target, (size_t)BYTES);
    must(cuStreamCreate, &clearing, is_synchronous && !is_exempt ? BLOCKING : NON_BLOCKING);
    must(cuCtxSetCurrent, contexts[0]);
    must(cuMemAlloc_v2, &source, (size_t)BYTES);
    must(cuStreamCreate, &copying, NON_BLOCKING);
    must(cuEventCreate, &copied, 2);

    if (is_synchronous) {
        must(cuMemcpyPeer, target, contexts[1], source, contexts[0], (size_t)BYTES);
    } else {
        must(cuMemcpyPeerAsync, target, contexts[1], source, contexts[0], (size_t)BYTES, copying);
        must(cuEventRecord, copied, copying);
    }
    must(cuCtxSetCurrent, contexts[1]);
    if (waits) {
        must(cuStreamWaitEvent, clearing, copied, 0);
    }
    must(cuMemsetD8Async, target, 0, (size_t)BYTES, clearing);
    must(cuCtxSynchronize);
    must(cuCtxSetCurrent, contexts[0]);
    must(cuCtxSynchronize);
    printf("peer: %d devices\n", devices);
    return 0;
}
