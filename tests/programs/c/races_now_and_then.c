/* Hazard: a race after each piece of ordered work, so that whatever part of a recording is missing,
 * a race is missing with it.
 * Expected: write-after-write races, without order from one round to the next. */
#include "work.h"

int main(void)
{
    open_device();
    for (int round = 0; round < 40; round++) {
        ordered_memsets(400);
        racy_memsets();
        must(cuCtxSynchronize());
    }
    printf("races_now_and_then: done\n");
    return 0;
}
