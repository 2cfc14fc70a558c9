/* Memsets through libraries of which each is closed again before the next one is opened, most likely
 * at the same address. The libraries are the arguments. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "work.h"

static device_address buffer;
static stream only;

static int clear(void *argument)
{
    must(cuMemsetD8Async(buffer, 0, BUFFER_BYTES, only));
    return *(int *)argument;
}

int main(int count, char **arguments)
{
    open_device();
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuStreamCreate(&only, NON_BLOCKING));
    for (int n = 1; n < count; n++) {
        void *library = dlopen(arguments[n], RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        int (*plugin)(int (*)(void *), void *) =
            (int (*)(int (*)(void *), void *))dlsym(library, "plugin");
        int one = 1;
        plugin(clear, &one);
        dlclose(library);
    }
    must(cuStreamSynchronize(only));
    must(cuStreamDestroy_v2(only));
    must(cuMemFree_v2(buffer));
    must(cuDevicePrimaryCtxRelease_v2(device));
    return 0;
}
