/* Hazard: a storm of forked children, many of them at once, each with work of its own.
 * Expected: clean; nothing is dropped. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { CHILDREN = 200 };

int main(void)
{
    int good = 0, ended;
    for (int n = 0; n < CHILDREN; n++) {
        if (fork() == 0) {
            open_device();
            ordered_memsets(3);
            _exit(0);
        }
    }
    while (wait(&ended) > 0)
        good += WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
    printf("forks_many: %d children\n", good);
    return 0;
}
