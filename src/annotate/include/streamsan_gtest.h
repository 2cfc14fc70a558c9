/* Tells streamsan which test of GoogleTest runs, so that a report says which test made a race.
 *
 * Include it in one source file of the test program, or in all: the tests are told from then on,
 * whoever has the function main. Nothing is linked, and without `streamsan run` around the program
 * nothing happens. C++11 or later, GoogleTest 1.10 or later, Linux.
 *
 *     #include <streamsan_gtest.h>
 *
 *     TEST(Pipeline, KnownRace)
 *     {
 *         streamsan::allow("missing-wait");
 *         ...
 *     }
 */
#ifndef STREAMSAN_GTEST_H
#define STREAMSAN_GTEST_H

#include <gtest/gtest.h>

#include <string>

#include "streamsan.h"

namespace streamsan {

/* Tells the begin of each test before its fixture is set up, and its end after that is torn down. */
class TestListener : public ::testing::EmptyTestEventListener {
public:
    void OnTestStart(const ::testing::TestInfo &test) override
    {
        const std::string name = std::string(test.test_suite_name()) + "." + test.name();
        running_ = streamsan_test_begin(name.c_str());
    }

    void OnTestEnd(const ::testing::TestInfo &) override
    {
        streamsan_test_end(running_);
    }

private:
    uint64_t running_ = 0;
};

/* The running test may have findings of this class, with this id, or any ("*"). */
inline void allow(const char *finding)
{
    streamsan_test_allow(finding);
}

/* Adds the listener once, however many source files ask for it. */
inline bool tell_tests()
{
    static const bool told = [] {
        ::testing::UnitTest::GetInstance()->listeners().Append(new TestListener);
        return true;
    }();
    return told;
}

namespace {
const bool tests_are_told __attribute__((used)) = tell_tests();
} // namespace

} // namespace streamsan

#endif
