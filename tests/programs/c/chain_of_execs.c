/* Hazard: thirty programs one after another in one process, each of which lives for a few
 * milliseconds and loads the driver anew.
 * Expected: clean; each of them is recorded. */
#include <unistd.h>

#include "work.h"

int main(int count, char **arguments)
{
    int left = count > 1 ? atoi(arguments[1]) : 29;
    open_device();
    ordered_memsets(3);
    if (left > 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", left - 1);
        execl("/proc/self/exe", arguments[0], number, (char *)NULL);
        return 1;
    }
    printf("chain_of_execs: done\n");
    return 0;
}
