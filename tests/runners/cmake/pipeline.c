/* One buffer set twice: in one stream, or in two with nothing between. */
#include "work.h"

int main(void)
{
    open_device();
#ifdef VARIANT_racy
    racy_memsets();
#else
    ordered_memsets(2);
#endif
    must(cuCtxSynchronize());
    return 0;
}
