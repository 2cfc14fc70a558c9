/* The few driver entry points that the programs here call, declared by hand under the names that
 * libcuda.so.1 exports, and how they all check a call. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int status;               /* 0: success */
typedef uint64_t device_address;
typedef struct context_object *context;
typedef struct stream_object *stream;

enum { NON_BLOCKING = 1, BUFFER_BYTES = 4096 };

#ifndef THROUGH_POINTERS
status cuInit(unsigned flags);
status cuDeviceGet(int *device, int ordinal);
status cuDevicePrimaryCtxRetain(context *made, int device);
status cuDevicePrimaryCtxRelease_v2(int device);
status cuCtxSetCurrent(context chosen);
status cuCtxSynchronize(void);
status cuMemAlloc_v2(device_address *start, size_t bytes);
status cuMemFree_v2(device_address start);
status cuMemsetD8Async(device_address start, unsigned char value, size_t bytes, stream in);
status cuStreamCreate(stream *made, unsigned flags);
status cuStreamSynchronize(stream awaited);
status cuStreamDestroy_v2(stream gone);
status cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *why);
#endif

/* Ends the program with code 1 when a call fails: a program under test has no way on. */
static inline void must_(status answered, const char *call, int line)
{
    if (answered != 0) {
        fprintf(stderr, "line %d: %s answered %d\n", line, call, answered);
        exit(1);
    }
}
#define must(call) must_((call), #call, __LINE__)

#endif
