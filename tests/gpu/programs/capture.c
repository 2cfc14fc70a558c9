/* Streams under capture: what is issued to them does not run. Two streams write one buffer, and so
 * does a third one outside.
 *
 *   capture captured   capture alone, and the outside write: no race
 *   capture released   then both streams write again, unordered: one WAW
 *   capture unjoined   the capture fails since one stream was left behind; released all the same:
 *                      one WAW
 *   capture launched   the graph is launched twice: no race
 *
 * Prints what became of the capture. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NON_BLOCKING = 1, RELAXED = 2, BYTES = 4096, UNJOINED = 904 };

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

/* Calls a function of the driver whose parameters are all integers or pointers. */
#define call(name, ...) ((int (*)()) find(#name))(__VA_ARGS__)

static void must_(int answered, const char *what)
{
    if (answered != 0) {
        fprintf(stderr, "%s answered %d\n", what, answered);
        exit(1);
    }
}
#define must(name, ...) must_(call(name, __VA_ARGS__), #name)

static int runs;

static void host_function(void *data)
{
    (void)data;
    runs++;
}

static void write_buffer(uint64_t buffer, void *stream)
{
    must(cuMemsetD8Async, buffer, 1, (size_t)BYTES, stream);
}

int main(int argc, char **argv)
{
    const char *variant = argc > 1 ? argv[1] : "";
    int joins = strcmp(variant, "unjoined") != 0;
    void *context, *origin, *fork, *outside, *forked, *joined, *graph = NULL, *runnable;
    uint64_t buffer, of_the_graph;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    must(cuInit, 0);
    must(cuDevicePrimaryCtxRetain, &context, 0);
    must(cuCtxSetCurrent, context);
    must(cuMemAlloc_v2, &buffer, (size_t)BYTES);
    must(cuStreamCreate, &origin, NON_BLOCKING);
    must(cuStreamCreate, &fork, NON_BLOCKING);
    must(cuStreamCreate, &outside, NON_BLOCKING);
    must(cuEventCreate, &forked, 0);
    must(cuEventCreate, &joined, 0);

    must(cuStreamBeginCapture_v2, origin, RELAXED);
    must(cuMemAllocAsync, &of_the_graph, (size_t)BYTES, origin);
    write_buffer(of_the_graph, origin);
    must(cuMemFreeAsync, of_the_graph, origin);
    must(cuEventRecord, forked, origin);
    must(cuStreamWaitEvent, fork, forked, 0);
    write_buffer(buffer, fork);
    write_buffer(buffer, outside);
    must(cuLaunchHostFunc, fork, host_function, NULL);
    if (joins) {
        must(cuEventRecord, joined, fork);
        must(cuStreamWaitEvent, origin, joined, 0);
    }
    int ended = call(cuStreamEndCapture, origin, &graph);
    if (ended != (joins ? 0 : UNJOINED)) {
        fprintf(stderr, "the capture ended with %d\n", ended);
        return 1;
    }
    must(cuStreamSynchronize, outside);
    if (strcmp(variant, "released") == 0 || !joins) {
        write_buffer(buffer, origin);
        write_buffer(buffer, fork);
    } else if (strcmp(variant, "launched") == 0) {
        must(cuGraphInstantiateWithFlags, &runnable, graph, (uint64_t)0);
        must(cuGraphLaunch, runnable, origin);
        must(cuGraphLaunch, runnable, origin);
    }
    must(cuCtxSynchronize);
    printf("capture: %s, the host function ran %d times\n", ended == 0 ? "a graph" : "none", runs);
    return 0;
}
