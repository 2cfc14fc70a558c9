/* Hazard: the driver is in memory long before the program begins, since it is linked, and so is a
 * library that takes long to be loaded. Such are programs that are linked with NVRTC: more than a
 * hundred megabytes are relocated before any constructor runs. Here the library's own constructor
 * takes the time; the loader calls it before that of a preloaded library.
 * Expected: clean; the process is recorded, and not taken for another one that is not. */
#ifdef LIBRARY
#include <unistd.h>

__attribute__((constructor)) static void load(void)
{
    usleep(400 * 1000);
}

int loaded(void)
{
    return 1;
}
#else
#include "work.h"

int loaded(void);

int main(void)
{
    open_device();
    ordered_memsets(3);
    printf("slow_to_load: %d library\n", loaded());
    return 0;
}
#endif
