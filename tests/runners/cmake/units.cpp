/* The same as tests of GoogleTest; all pass, and streamsan sees what races. */
#include <gtest/gtest.h>

extern "C" {
#include "work.h"
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
