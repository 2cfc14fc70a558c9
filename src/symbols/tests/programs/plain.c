#include "stack.h"

static volatile int kept;

static inline __attribute__((always_inline)) void innermost(void)
{
    tell_stack();
    kept++;
}

static inline __attribute__((always_inline)) void middle(void)
{
    innermost();
    kept++;
}

__attribute__((noinline)) static void outer(void)
{
    middle();
    kept++;
}

int main(void)
{
    outer();
    return kept == 0;
}
