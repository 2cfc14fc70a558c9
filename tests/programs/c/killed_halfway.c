/* Hazard: the program is killed. It issues 1000 memsets in one stream, leaves them in flight, says
 * so, and waits to be killed.
 * Expected: clean; all 1000 memsets are there; the command ends with 128 + the signal. */
#include <unistd.h>

#include "work.h"

enum { MEMSETS = 1000 };

int main(void)
{
    device_address buffer;
    stream only;
    open_device();
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&only, NON_BLOCKING));
    for (int n = 0; n < MEMSETS; n++)
        must(cuMemsetD8Async(buffer, (unsigned char)n, BUFFER_BYTES, only));
    printf("killed_halfway: ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
