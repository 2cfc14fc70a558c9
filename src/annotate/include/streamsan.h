/* Tells streamsan what a host thread does and what things are called.
 *
 * Include it and call the functions where ordinary code touches memory that the GPU uses too. No
 * library is needed: the functions call the runtime that `streamsan run` loads into the program,
 * and without it they do nothing. C99 and C++, gcc or clang, Linux.
 */
#ifndef STREAMSAN_H
#define STREAMSAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The runtime's own functions. Weak, so null in a program that runs without it. */
extern void streamsan_rt_host_read(const void *address, size_t bytes) __attribute__((weak));
extern void streamsan_rt_host_write(const void *address, size_t bytes) __attribute__((weak));
extern void streamsan_rt_name_stream(void *stream, const char *name) __attribute__((weak));
extern void streamsan_rt_name_event(void *event, const char *name) __attribute__((weak));
extern void streamsan_rt_name_memory(const void *address, const char *name) __attribute__((weak));
extern uint64_t streamsan_rt_test_begin(const char *name) __attribute__((weak));
extern void streamsan_rt_test_end(uint64_t test) __attribute__((weak));
extern void streamsan_rt_test_allow(const char *finding) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* The calling thread reads `bytes` bytes at `address` now. */
static inline void streamsan_host_read(const void *address, size_t bytes)
{
    if (streamsan_rt_host_read)
        streamsan_rt_host_read(address, bytes);
}

/* The calling thread writes `bytes` bytes at `address` now. */
static inline void streamsan_host_write(const void *address, size_t bytes)
{
    if (streamsan_rt_host_write)
        streamsan_rt_host_write(address, bytes);
}

/* Names a CUstream or cudaStream_t in reports. A stream pool that gives a stream a new name each
 * time it hands it out also tells by it that the stream has a new user. */
static inline void streamsan_name_stream(void *stream, const char *name)
{
    if (streamsan_rt_name_stream)
        streamsan_rt_name_stream(stream, name);
}

/* Names a CUevent or cudaEvent_t in reports. */
static inline void streamsan_name_event(void *event, const char *name)
{
    if (streamsan_rt_name_event)
        streamsan_rt_name_event(event, name);
}

/* Names the allocation that `address` lies in: device, pinned, registered or managed memory. */
static inline void streamsan_name_memory(const void *address, const char *name)
{
    if (streamsan_rt_name_memory)
        streamsan_rt_name_memory(address, name);
}

/* A test of the program begins: races between calls that are made from now on are reported under its
 * name. Answers what `streamsan_test_end` takes. A test framework tells this for all its tests
 * (GoogleTest: streamsan_gtest.h). */
static inline uint64_t streamsan_test_begin(const char *name)
{
    return streamsan_rt_test_begin ? streamsan_rt_test_begin(name) : 0;
}

/* The test has ended. */
static inline void streamsan_test_end(uint64_t test)
{
    if (streamsan_rt_test_end)
        streamsan_rt_test_end(test);
}

/* The running test may have findings of this class ("missing-wait"), with this id, or any ("*"): they
 * are listed and do not fail. */
static inline void streamsan_test_allow(const char *finding)
{
    if (streamsan_rt_test_allow)
        streamsan_rt_test_allow(finding);
}

#endif
