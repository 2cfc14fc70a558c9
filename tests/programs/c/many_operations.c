/* Hazard: many calls in a short time, far more than one ring or one batch of rows holds.
 * Expected: clean; nothing is dropped. */
#include "work.h"

int main(void)
{
    open_device();
    ordered_memsets(50000);
    printf("many_operations: done\n");
    return 0;
}
