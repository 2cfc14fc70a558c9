/* Hazard: the program has an exit code of its own, which must come through.
 * Expected: clean; exit code 7. */
#include "work.h"

int main(void)
{
    open_device();
    ordered_memsets(3);
    printf("exits_7: leaving\n");
    return 7;
}
