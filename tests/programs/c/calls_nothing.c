/* Hazard: no CUDA call at all. Built a second time with -static, so that no preload can take
 * effect.
 * Expected: NO CUDA when preloaded (exit code 4 with --require-cuda); not attached, hence
 * incomplete, when static. */
#include <stdio.h>

int main(void)
{
    printf("calls_nothing: done\n");
    return 0;
}
