/* Launches by every form of parameters, unloads, callbacks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef void *ptr;
int cuLaunchKernel(u64 f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   ptr stream, ptr *params, ptr *extra);
int cuModuleUnload(u64 module);
int cuLaunchHostFunc(ptr stream, void (*function)(void *), void *data);
int cuStreamAddCallback(ptr stream, void (*f)(ptr, int, void *), void *data, unsigned flags);
int cuMemFree_v2(u64 p);
extern unsigned fake_capturing;
extern int fake_result;
extern u64 fake_queries, fake_args[16];

struct access {
    u64 start, end;
    uint32_t mode, reserved;
};
static u64 (*current_op)(void);
static void (*op_accesses)(u64, const struct access *, size_t);

struct run {
    u64 start, width, pitch, rows;
    unsigned mode, flags;
};

/* The functions for measured bytes: lists of none and of 700 runs, what cannot be, and reasons. */
static int measured(void) {
    static struct run runs[700];
    static char detail[601];
    void (*of_op)(u64, const struct run *, size_t, unsigned) =
        (void (*)(u64, const struct run *, size_t, unsigned))dlsym(RTLD_DEFAULT,
                                                                   "streamsan_op_measured");
    void (*of_node)(u64, u64, const struct run *, size_t, unsigned) =
        (void (*)(u64, u64, const struct run *, size_t, unsigned))dlsym(RTLD_DEFAULT,
                                                                        "streamsan_node_accesses");
    void (*left_out)(u64, unsigned, const char *) =
        (void (*)(u64, unsigned, const char *))dlsym(RTLD_DEFAULT, "streamsan_not_measured");
    if (!of_op || !of_node || !left_out)
        return 0;
    for (unsigned i = 0; i < 700; i++)
        runs[i] = (struct run){64 * i, 8, 16, 3, i % 3, 2};
    for (unsigned i = 0; i < 600; i++)
        detail[i] = 'x';
    of_op(3, NULL, 0, 2);
    of_node(4, 7, runs, 700, 1);
    of_op(0, runs, 700, 0);
    of_node(5, 0, runs, 700, 0);
    left_out(4, 1, NULL);
    left_out(0, 7, "where");
    left_out(5, 999, detail);
    return 1;
}
static u64 seen_op;

static int launch(u64 f, ptr *params, ptr *extra) {
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra);
}
static void frees(void *data) {
    cuMemFree_v2((u64)data);
    seen_op = current_op();
}
static void no_op(void *data) { (void)data; }
static void callback(ptr stream, int status, void *data) {
    (void)stream;
    if (status == 0)
        frees(data);
}

int main(void) {
    current_op = (u64(*)(void))dlsym(RTLD_DEFAULT, "streamsan_current_op");
    op_accesses = (void (*)(u64, const struct access *, size_t))dlsym(RTLD_DEFAULT,
                                                                      "streamsan_op_accesses");
    if (!current_op || !op_accesses || current_op() != 0)
        return 1;
    u64 a = 0x1111111111111111;
    uint32_t b = 0x22222222;
    ptr params[] = {&a, &b};

    launch(0x4002, params, NULL);          /* a function with two parameters */
    u64 asked = fake_queries;
    launch(0x4002, params, NULL);          /* known by now */
    if (fake_queries != asked)
        return 2;
    launch(0x5001, params, NULL);          /* a kernel cast to a function */
    launch(0x6001, params, NULL);          /* the driver tells nothing of it */
    size_t size = 5;
    ptr extra[] = {(ptr)1, "bytes", (ptr)2, &size, NULL};
    launch(0x6001, NULL, extra);           /* packed */
    launch(0x4000, NULL, NULL);            /* no parameters */
    cuModuleUnload(9);
    launch(0x4002, params, NULL);          /* may be another kernel now */

    /* Host functions: run within the call, freed after it. */
    cuLaunchHostFunc((ptr)5, frees, (ptr)0x77);
    if (seen_op != 0)
        return 3;
    cuStreamAddCallback((ptr)6, callback, (ptr)0x78, 0);
    fake_capturing = 1;
    cuLaunchHostFunc((ptr)5, no_op, NULL);
    /* What a graph does at each launch: run what was captured. */
    void (*captured)(void *) = (void (*)(void *))fake_args[1];
    captured((ptr)fake_args[2]);
    fake_capturing = 0;
    fake_result = 1;
    cuLaunchHostFunc((ptr)5, frees, (ptr)0x79);
    fake_result = 0;

    /* What the simulated driver reports: nothing, and more than a record holds. */
    op_accesses(3, NULL, 0);
    struct access *many = calloc(1200, sizeof *many);
    for (int i = 0; i < 1200; i++)
        many[i] = (struct access){16 * i, 16 * i + 8, i % 3, 0};
    op_accesses(4, many, 1200);
    op_accesses(0, many, 1200);
    if (!measured())
        return 1;
    puts("done");
    return 0;
}
