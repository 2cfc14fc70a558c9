/* What the programs here share: one device, pinned and device memory, streams; and their variant,
 * `racy` or `clean`, which is their only argument. */
#ifndef GPU_H
#define GPU_H

#include <string.h>

#include "../c/driver.h"

status cuMemAllocHost_v2(void **start, size_t bytes);
status cuMemcpyDtoHAsync_v2(void *to, device_address from, size_t bytes, stream in);
status cuMemcpyHtoDAsync_v2(device_address to, const void *from, size_t bytes, stream in);

static inline void open_gpu(void)
{
    int device;
    context primary;
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
}

static inline device_address device_memory(void)
{
    device_address start;
    must(cuMemAlloc_v2(&start, BUFFER_BYTES));
    return start;
}

static inline unsigned char *pinned_memory(void)
{
    void *start;
    must(cuMemAllocHost_v2(&start, BUFFER_BYTES));
    return start;
}

static inline stream new_stream(void)
{
    stream made;
    must(cuStreamCreate(&made, NON_BLOCKING));
    return made;
}

static inline int is_racy(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "racy") == 0)
        return 1;
    if (count == 2 && strcmp(arguments[1], "clean") == 0)
        return 0;
    fprintf(stderr, "say racy or clean\n");
    exit(2);
}

#endif
