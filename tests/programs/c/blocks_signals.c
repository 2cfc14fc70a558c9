/* Hazard: a program with every signal blocked, and its own idea of SIGSEGV and SIGBUS.
 * Expected: one WAW: recording needs no signal and no handler. */
#include <signal.h>

#include "work.h"

int main(void)
{
    sigset_t all;
    signal(SIGSEGV, SIG_IGN);
    signal(SIGBUS, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    open_device();
    racy_memsets();
    must(cuCtxSynchronize());
    printf("blocks_signals: done\n");
    return 0;
}
