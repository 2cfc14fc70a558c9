/* Hazard: somebody looks while it goes on. A memset at a time in one stream, and a line printed for
 * each without flushing, until a file `end` appears in its folder; where a file `race` appears, the
 * same buffer is set in two streams, once. Ends with the code that it is given.
 * Expected: what it did is seen before it ends. */
#include <unistd.h>

#include "work.h"

enum { PAUSE_MICROSECONDS = 10000 };

int main(int count, char **arguments)
{
    int raced = 0;
    device_address buffer;
    stream only;
    open_device();
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&only, NON_BLOCKING));
    for (int step = 1; access("end", F_OK) != 0; step++) {
        must(cuMemsetD8Async(buffer, (unsigned char)step, BUFFER_BYTES, only));
        must(cuStreamSynchronize(only));
        if (!raced && access("race", F_OK) == 0) {
            racy_memsets();
            raced = 1;
        }
        printf("step %d\n", step);
        usleep(PAUSE_MICROSECONDS);
    }
    fprintf(stderr, "told to end\n");
    return count > 1 ? atoi(arguments[1]) : 0;
}
