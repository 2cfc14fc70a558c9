// Stands in for streamsan's runtime: counts the calls, and prints what the driver hands over of
// each kernel, with addresses relative to the one allocation.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct access {
    uint64_t start, end;
    uint32_t mode, reserved;
};

extern unsigned cuInit(unsigned);
extern unsigned cuDevicePrimaryCtxRetain(void **, int);
extern unsigned cuCtxSetCurrent(void *);
extern unsigned cuCtxSynchronize(void);
extern unsigned cuModuleLoadData(void **, const void *);
extern unsigned cuModuleGetFunction(void **, void *, const char *);
extern unsigned cuMemAlloc_v2(uint64_t *, size_t);
extern unsigned cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, void *, void **, void **);

static uint64_t op = 10;
static uint64_t base;

uint64_t streamsan_current_op(void)
{
    return op;
}

void streamsan_op_accesses(uint64_t of, const struct access *list, size_t count)
{
    static const char *modes[] = { "read", "write", "atomic" };
    printf("op %llu:", (unsigned long long)of);
    if (count == 0)
        printf(" none");
    for (size_t i = 0; i < count; i++) {
        printf(" %s", modes[list[i].mode]);
        if (list[i].mode != 2)
            printf(" %llu+%llu", (unsigned long long)(list[i].start - base),
                   (unsigned long long)(list[i].end - list[i].start));
    }
    printf("\n");
}

static void check(unsigned status)
{
    if (status != 0) {
        printf("status %u\n", status);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const char *names[] = { "copy_one", "mixed", "nothing" };
    void *context, *module, *function;
    void *parameters[] = { &base };
    if (argc != 2)
        return 2;
    check(cuInit(0));
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
    check(cuModuleLoadData(&module, argv[1]));
    check(cuMemAlloc_v2(&base, 64));
    for (int i = 0; i < 3; i++) {
        check(cuModuleGetFunction(&function, module, names[i]));
        op++;
        check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    }
    op = 99; // the number of the launch counts, not that of the call that runs the kernel
    check(cuCtxSynchronize());
    return 0;
}
