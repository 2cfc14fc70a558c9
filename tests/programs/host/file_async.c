/* A file is read into device memory in stream order, found with dlsym. racy: in another stream than
 * the memset of that memory. One WAW. */
#include <dlfcn.h>

#include "cufile.h"
#include "gpu.h"

typedef file_error (*read_async)(void *, void *, size_t *, off_t *, off_t *, ssize_t *, void *);

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address buffer = device_memory();
    stream filling = new_stream(), reading = new_stream();
    void *library = dlopen("libcufile.so.0", RTLD_NOW);
    read_async function = NULL;
    if (library != NULL)
        *(void **)&function = dlsym(library, "cuFileReadAsync");
    if (function == NULL)
        return 1;
    size_t bytes = BUFFER_BYTES;
    off_t at = 0, offset = 0;
    ssize_t done = 0;
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, filling));
    stream chosen = racy ? reading : filling;
    if (function(NULL, (void *)buffer, &bytes, &at, &offset, &done, chosen).code != 0)
        return 1;
    must(cuCtxSynchronize());
    printf("file_async: done\n");
    return 0;
}
