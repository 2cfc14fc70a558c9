#include "stack.h"

namespace shop {
static volatile int kept;

template <typename T> struct Counter {
    T value;
    __attribute__((noinline)) void add(T amount)
    {
        tell_stack();
        kept = static_cast<int>(value + amount);
    }
};
} // namespace shop

int main()
{
    shop::Counter<long> counter{1};
    counter.add(2);
    return shop::kept == 0;
}
