/* Hazard: a process that outlives the program that was started and never stops to call the driver.
 * The program prints the process id of the one that stays.
 * Expected: whoever waits can stop waiting, and the recording ends. */
#include <unistd.h>

#include "work.h"

int main(void)
{
    pid_t stays = fork();
    if (stays != 0) {
        printf("calls_without_end: %d\n", (int)stays);
        return 0;
    }
    open_device();
    for (;;)
        ordered_memsets(100);
}
