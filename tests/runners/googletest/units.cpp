/* Tests that all pass by themselves; streamsan sees what races, and says in which. */
#include <streamsan_gtest.h>

#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include "work.h"
}

/* First, so that the child begins without a device. */
TEST(Children, RaceInAChild)
{
    pid_t child = fork();
    if (child == 0) {
        open_device();
        racy_memsets();
        must(cuCtxSynchronize());
        _exit(0);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
}

TEST(Memsets, InOneStream)
{
    open_device();
    ordered_memsets(2);
    must(cuCtxSynchronize());
}

TEST(Memsets, InTwoStreams)
{
    open_device();
    racy_memsets();
    must(cuCtxSynchronize());
}

TEST(Memsets, AllowedInTwoStreams)
{
    streamsan::allow("missing-wait");
    open_device();
    racy_memsets();
    must(cuCtxSynchronize());
}
