/* Hazard: Ctrl-C reaches the whole process group, and this program does not end of it: it says that
 * it is ready, waits for a line on its input, and goes on to work and end by itself.
 * Expected: one WAW, issued after the interrupt. */
#include <signal.h>

#include "work.h"

int main(void)
{
    char line[64];
    signal(SIGINT, SIG_IGN);
    open_device();
    ordered_memsets(3);
    printf("ignores_sigint: ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    racy_memsets();
    must(cuCtxSynchronize());
    printf("ignores_sigint: done\n");
    return 0;
}
