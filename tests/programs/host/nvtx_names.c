/* Names a stream as the header of NVTX 3 does: loads the library that the environment names, hands
 * it the tables, and calls what was put into them. racy: two memsets of one buffer in two streams,
 * one WAW. clean: the second waits. */
#include <dlfcn.h>
#include <wchar.h>

#include "gpu.h"

typedef void (*function)(void);

static function cuda[16], cudart[16];
static function *cuda_slots[16], *cudart_slots[16];

static int module_table(int module, function ***table, unsigned *size)
{
    if (module != 2 && module != 4)
        return 0;
    *table = module == 2 ? cuda_slots : cudart_slots;
    *size = module == 2 ? 9 : 7;
    return 1;
}

static const struct {
    size_t size;
    int (*get)(int, function ***, unsigned *);
} callbacks = {sizeof callbacks, module_table};

static const void *export_table(unsigned id)
{
    return id == 1 ? &callbacks : NULL;
}

static void load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    int (*initialize)(const void *(*)(unsigned)) = NULL;
    for (int i = 1; i < 9; i++)
        cuda_slots[i] = &cuda[i];
    for (int i = 1; i < 7; i++)
        cudart_slots[i] = &cudart[i];
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    if (library != NULL)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (initialize != NULL)
        initialize(export_table);
}

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
