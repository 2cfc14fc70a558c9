/* Hazard: abort(). Work is in flight and nothing is torn down.
 * Expected: clean; the command ends with 128 + SIGABRT. */
#include "work.h"

int main(void)
{
    device_address buffer;
    stream only;
    open_device();
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&only, NON_BLOCKING));
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, only));
    printf("aborts: leaving\n");
    fflush(stdout);
    abort();
}
