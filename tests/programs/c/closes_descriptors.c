/* Hazard: a program that closes every descriptor it did not open, as daemons and subprocess
 * launchers do, and may open none afterwards.
 * Expected: one WAW: nothing that recording needs is a descriptor. */
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

int main(void)
{
    struct rlimit none = {3, 3};
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        close(descriptor);
    open_device();
    if (setrlimit(RLIMIT_NOFILE, &none) != 0)
        return 1;
    racy_memsets();
    must(cuCtxSynchronize());
    printf("closes_descriptors: done\n");
    return 0;
}
