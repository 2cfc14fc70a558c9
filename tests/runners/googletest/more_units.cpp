/* A second source file with the header: each test is told once all the same. */
#include <streamsan_gtest.h>

extern "C" {
#include "work.h"
}

class Times : public ::testing::TestWithParam<int> {};

TEST_P(Times, InOneStream)
{
    open_device();
    ordered_memsets(GetParam());
    must(cuCtxSynchronize());
}

INSTANTIATE_TEST_SUITE_P(Some, Times, ::testing::Values(1, 3));

TEST(Arithmetic, WithoutDevice)
{
    EXPECT_EQ(1 + 1, 2);
}
