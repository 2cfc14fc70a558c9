/* Hazard: the program asks the driver itself for its entry points (cuGetProcAddress), as NVIDIA's
 * runtime does; names are given without their version suffix. Only that one function is linked.
 * Expected: one WAW. */
#define THROUGH_POINTERS
#include <string.h>

#include "driver.h"

status cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *why);

/* A data pointer becomes a function pointer by its bytes. */
static void find(void *function, const char *name)
{
    void *found = NULL;
    int why = 0;
    must(cuGetProcAddress_v2(name, &found, 12040, 0, &why));
    if (found == NULL) {
        fprintf(stderr, "%s is missing (%d)\n", name, why);
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

    find(&init, "cuInit");
    find(&device_get, "cuDeviceGet");
    find(&retain, "cuDevicePrimaryCtxRetain");
    find(&set_current, "cuCtxSetCurrent");
    find(&synchronize, "cuCtxSynchronize");
    find(&alloc, "cuMemAlloc");
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
    printf("get_proc_address: done\n");
    return 0;
}
