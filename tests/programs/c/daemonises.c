/* Hazard: a daemon. The program that was started ends at once; its grandchild, in a session of its
 * own, makes its first driver call after that.
 * Expected: one WAW: the grandchild is waited for. */
#include <unistd.h>

#include "work.h"

int main(void)
{
    if (fork() != 0)
        return 0;
    setsid();
    if (fork() != 0)
        _exit(0);
    usleep(200 * 1000);
    open_device();
    racy_memsets();
    must(cuCtxSynchronize());
    printf("daemonises: done\n");
    return 0;
}
