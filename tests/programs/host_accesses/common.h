/* What the programs here share. Each takes a case and does it on one device. */
#ifndef COMMON_H
#define COMMON_H

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../c/driver.h"

enum { PAGE = 4096 };

typedef struct event_object *event;
typedef struct graph_object *graph;
typedef struct exec_object *executable;
typedef struct module_object *module;
typedef struct function_object *function;

status cuMemAllocHost_v2(void **start, size_t bytes);
status cuMemFreeHost(void *start);
status cuMemHostRegister_v2(void *start, size_t bytes, unsigned flags);
status cuMemHostUnregister(void *start);
status cuMemAllocManaged(device_address *start, size_t bytes, unsigned flags);
status cuMemcpyDtoHAsync_v2(void *to, device_address from, size_t bytes, stream in);
status cuMemcpyHtoDAsync_v2(device_address to, const void *from, size_t bytes, stream in);
status cuMemcpyDtoHAsync_v2_ptsz(void *to, device_address from, size_t bytes, stream in);
status cuStreamSynchronize_ptsz(stream awaited);
status cuEventCreate(event *made, unsigned flags);
status cuEventRecord(event recorded, stream in);
status cuEventSynchronize(event awaited);
status cuStreamWaitEvent(stream waiting, event awaited, unsigned flags);
status cuStreamQuery(stream asked);
status cuLaunchHostFunc(stream in, void (*called)(void *), void *data);
status cuStreamBeginCapture_v2(stream captured, int mode);
status cuStreamEndCapture(stream captured, graph *made);
status cuGraphInstantiateWithFlags(executable *made, graph of, uint64_t flags);
status cuGraphLaunch(executable started, stream in);
status cuModuleLoadData(module *made, const void *image);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

static inline void open_gpu(void)
{
    int device;
    context primary;
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
}

static inline device_address device_memory(size_t bytes)
{
    device_address start;
    must(cuMemAlloc_v2(&start, bytes));
    return start;
}

static inline volatile unsigned char *pinned_memory(size_t bytes)
{
    void *start;
    must(cuMemAllocHost_v2(&start, bytes));
    return start;
}

static inline stream new_stream(unsigned flags)
{
    stream made;
    must(cuStreamCreate(&made, flags));
    return made;
}

static inline event new_event(void)
{
    event made;
    must(cuEventCreate(&made, 0));
    return made;
}

#endif
