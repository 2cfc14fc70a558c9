/* Hazard: fork. One child is made before the driver is initialised and does work of its own, with
 * one WAW in it; one is made after, calls nothing and ends through exit(), so every handler that
 * was registered in the parent runs in it too. The parent's own work is ordered.
 * Expected: one WAW, from the first child; the operations of parent and child are both there. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static int wait_for(pid_t child)
{
    int ended = 0;
    if (waitpid(child, &ended, 0) != child || !WIFEXITED(ended))
        return -1;
    return WEXITSTATUS(ended);
}

int main(void)
{
    pid_t before = fork();
    if (before == 0) {
        open_device();
        racy_memsets();
        must(cuCtxSynchronize());
        exit(0);
    }
    int first = wait_for(before);

    open_device();
    ordered_memsets(3);
    pid_t after = fork();
    if (after == 0)
        exit(0);
    int second = wait_for(after);
    ordered_memsets(3);

    printf("fork: children ended with %d and %d\n", first, second);
    return first == 0 && second == 0 ? 0 : 1;
}
