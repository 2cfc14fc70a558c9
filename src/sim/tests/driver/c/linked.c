// Linked with the library, so it is found by its soname.
#include <stdio.h>

extern unsigned cuInit(unsigned flags);
extern unsigned cuDriverGetVersion(int *version);

int main(void)
{
    int version = 0;
    unsigned status = cuInit(0);
    cuDriverGetVersion(&version);
    printf("%u %d\n", status, version);
    return 0;
}
