/* Hazard: the driver is opened at run time with RTLD_DEEPBIND, as plugins are, so its own symbols
 * come before those of a preloaded library; every call goes through a pointer from dlsym.
 * Expected: one WAW. */
#define _GNU_SOURCE
#define THROUGH_POINTERS
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

static void *driver;

/* A data pointer from dlsym becomes a function pointer by its bytes. */
static void find(void *function, const char *name)
{
    void *found = dlsym(driver, name);
    if (found == NULL) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    memcpy(function, &found, sizeof found);
}

int main(void)
{
    status (*init)(unsigned), (*device_get)(int *, int), (*retain)(context *, int);
    status (*set_current)(context), (*synchronize)(void);
    status (*alloc)(device_address *, size_t), (*stream_create)(stream *, unsigned);
    status (*set_bytes)(device_address, unsigned char, size_t, stream);

    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    find(&init, "cuInit");
    find(&device_get, "cuDeviceGet");
    find(&retain, "cuDevicePrimaryCtxRetain");
    find(&set_current, "cuCtxSetCurrent");
    find(&synchronize, "cuCtxSynchronize");
    find(&alloc, "cuMemAlloc_v2");
    find(&stream_create, "cuStreamCreate");
    find(&set_bytes, "cuMemsetD8Async");

    int device;
    context primary;
    device_address buffer;
    stream left, right;
    must(init(0));
    must(device_get(&device, 0));
    must(retain(&primary, device));
    must(set_current(primary));
    must(alloc(&buffer, BUFFER_BYTES));
    must(stream_create(&left, NON_BLOCKING));
    must(stream_create(&right, NON_BLOCKING));
    must(set_bytes(buffer, 1, BUFFER_BYTES, left));
    must(set_bytes(buffer, 2, BUFFER_BYTES, right));
    must(synchronize());
    printf("dlopen_deepbind: done\n");
    return 0;
}
