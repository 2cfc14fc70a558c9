/* Hazard: _exit. No exit handler and no destructor runs, so nothing may be left to flush.
 * Expected: one WAW, between the last two calls of the program. */
#include <string.h>
#include <unistd.h>

#include "work.h"

int main(void)
{
    open_device();
    ordered_memsets(3);
    const char *line = "underscore_exit: leaving\n";
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        return 1;
    racy_memsets();
    _exit(0);
}
