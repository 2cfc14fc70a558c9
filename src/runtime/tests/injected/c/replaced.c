/* A measuring library that launches another function in the place of one of the program's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t u64;
typedef void *ptr;
int cuLaunchKernel(u64 f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   ptr stream, ptr *params, ptr *extra);
extern int fake_result;
extern u64 fake_args[16];

static int is_refused;

static u64 launching(u64 op, u64 function, u64 stream) {
    (void)op, (void)stream;
    if (function != 0x4002)
        return function;
    fake_result = is_refused ? 701 : 0;
    return 0x4003;
}

static void launched(u64 op, u64 stream, int result) {
    (void)op, (void)stream;
    printf("launched %#llx: %d\n", (unsigned long long)fake_args[0], result);
    if (result == 701)
        fake_result = 0;
}

static const struct {
    u64 size;
    u64 (*launching)(u64, u64, u64);
    void (*launched)(u64, u64, int);
} hooks = {sizeof hooks, launching, launched};

static void launch(u64 f) {
    int result = cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    printf("program %#llx: %d\n", (unsigned long long)f, result);
}

int main(void) {
    int (*attach)(const void *) =
        (int (*)(const void *))dlsym(RTLD_DEFAULT, "streamsan_measure_attach");
    if (!attach || attach(&hooks) != 0)
        return 1;
    launch(0x4002);
    is_refused = 1;
    launch(0x4002);
    /* The program's own function fails by itself. */
    fake_result = 1;
    launch(0x4000);
    return 0;
}
