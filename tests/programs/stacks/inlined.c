/* One buffer filled in two streams with nothing between (one WAW), from functions that are known by
 * name and by the lines that are marked. */
#include "work.h"

__attribute__((noinline)) static void use(volatile int *order)
{
    *order += 1;
}

/* Leaves no frame of its own. */
static inline __attribute__((always_inline)) void fill(device_address buffer, int byte, stream in)
{
    must(cuMemsetD8Async(buffer, (unsigned char)byte, BUFFER_BYTES, in)); /* line: fill */
}

__attribute__((noinline)) static device_address make_buffer(volatile int *order)
{
    device_address buffer;
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES)); /* line: make_buffer */
    use(order);
    return buffer;
}

__attribute__((noinline)) static void fill_left(device_address buffer, stream in, volatile int *order)
{
    fill(buffer, 1, in); /* line: fill_left */
    use(order);
}

__attribute__((noinline)) static void fill_right(device_address buffer, stream in, volatile int *order)
{
    fill(buffer, 2, in); /* line: fill_right */
    use(order);
}

__attribute__((noinline)) static void work(volatile int *order)
{
    stream left, right;
    device_address buffer = make_buffer(order);
    must(cuStreamCreate(&left, NON_BLOCKING));
    must(cuStreamCreate(&right, NON_BLOCKING));
    fill_left(buffer, left, order); /* line: work, left */
    fill_right(buffer, right, order); /* line: work, right */
    must(cuCtxSynchronize());
    must(cuStreamDestroy_v2(left));
    must(cuStreamDestroy_v2(right));
    must(cuMemFree_v2(buffer));
    use(order);
}

int main(void)
{
    volatile int order = 0;
    open_device();
    work(&order); /* line: main */
    must(cuDevicePrimaryCtxRelease_v2(device));
    return 0;
}
