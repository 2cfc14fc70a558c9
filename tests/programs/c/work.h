/* Two pieces of work for programs that are linked with libcuda.so.1: one with a race in it and one
 * without. */
#ifndef WORK_H
#define WORK_H

#include "driver.h"

static int device;
static context primary;

static void open_device(void)
{
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
}

/* `times` memsets of one buffer in one stream. */
__attribute__((unused)) static void ordered_memsets(int times)
{
    device_address buffer;
    stream only;
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&only, NON_BLOCKING));
    for (int n = 0; n < times; n++)
        must(cuMemsetD8Async(buffer, (unsigned char)n, BUFFER_BYTES, only));
    must(cuStreamSynchronize(only));
    must(cuStreamDestroy_v2(only));
    must(cuMemFree_v2(buffer));
}

/* The same buffer set in two streams with nothing between: one WAW. The work is left in flight. */
__attribute__((unused)) static void racy_memsets(void)
{
    device_address buffer;
    stream left, right;
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&left, NON_BLOCKING));
    must(cuStreamCreate(&right, NON_BLOCKING));
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, left));
    must(cuMemsetD8Async(buffer, 2, BUFFER_BYTES, right));
}

#endif
