/* Hazard: the recording stands still while the program runs. Says that it is ready, waits for a line
 * on its input, and then makes far more calls than a ring holds.
 * Expected: clean; nothing is dropped, however the recording gets on meanwhile. */
#include "work.h"

int main(void)
{
    char line[64];
    open_device();
    printf("waits_for_input: ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    ordered_memsets(50000);
    printf("waits_for_input: done\n");
    return 0;
}
