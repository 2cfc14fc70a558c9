/* Names a stream as the header of NVTX 3 does: loads the library that the environment names, hands
 * it the tables, and calls what was put into them. racy: two memsets of one buffer in two streams,
 * one WAW. clean: the second waits. */
#include <wchar.h>

#include "gpu.h"
#include "nvtx.h"

static struct module modules[2] = {{.id = 2, .size = 9}, {.id = 4, .size = 7}};
static function *const cuda = modules[0].functions, *const cudart = modules[1].functions;

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    load();
    open_gpu();
    device_address buffer = device_memory();
    stream left = new_stream(), right = new_stream();
    if (cuda[5] != NULL)
        ((void (*)(stream, const char *))cuda[5])(left, "left hand");
    if (cudart[4] != NULL)
        ((void (*)(stream, const wchar_t *))cudart[4])(right, L"right h\u00e4nd");
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, left));
    if (!racy)
        must(cuStreamSynchronize(left));
    must(cuMemsetD8Async(buffer, 2, BUFFER_BYTES, right));
    must(cuCtxSynchronize());
    printf("nvtx_names: done\n");
    return 0;
}
