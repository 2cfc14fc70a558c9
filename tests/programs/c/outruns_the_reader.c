/* Two streams run a small kernel thousands of times while its code is still being read: it lies
 * beside one of a hundred thousand instructions, which is looked up too. The streams share a buffer
 * that the kernel only reads.
 * Expected: clean, also with --fail-on possible: every launch is looked at again when the code is
 * known, and no record is lost meanwhile. */
#include <string.h>

#include "driver.h"

typedef struct module_object *module;
typedef struct function_object *function;

status cuModuleLoadData(module *made, const void *image);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

enum { REPETITIONS = 50000, LAUNCHES = 40000, LINE = 80 };

static const char head[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry move_words(.param .u64 from, .param .u64 to)\n"
    "{\n"
    "    .reg .b32 %word;\n"
    "    .reg .b64 %source, %target;\n"
    "    ld.param.u64 %source, [from];\n"
    "    ld.param.u64 %target, [to];\n"
    "    ld.global.u32 %word, [%source];\n"
    "    st.global.u32 [%target], %word;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry large(.param .u64 at)\n"
    "{\n"
    "    .reg .b32 %word;\n"
    "    .reg .b64 %start, %place;\n"
    "    ld.param.u64 %start, [at];\n"
    "    mov.u32 %word, %tid.x;\n";

static char *code(void)
{
    char *text = malloc(sizeof head + (size_t)REPETITIONS * LINE + LINE);
    if (text == NULL)
        exit(1);
    char *end = text + sprintf(text, "%s", head);
    for (int n = 0; n < REPETITIONS; n++)
        end += sprintf(end,
                       "mad.wide.u32 %%place, %%word, %d, %%start;\n"
                       "ld.global.u32 %%word, [%%place+%d];\n",
                       4 * (n % 64), 4 * n);
    sprintf(end, "st.global.u32 [%%start], %%word;\nret;\n}\n");
    return text;
}

int main(void)
{
    int device;
    context primary;
    module loaded;
    function small, large;
    device_address shared, own[2];
    stream streams[2];
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
    must(cuMemAlloc_v2(&shared, BUFFER_BYTES));
    must(cuMemsetD8Async(shared, 0, BUFFER_BYTES, NULL));
    for (int n = 0; n < 2; n++) {
        must(cuMemAlloc_v2(&own[n], BUFFER_BYTES));
        must(cuStreamCreate(&streams[n], NON_BLOCKING));
    }
    must(cuCtxSynchronize());
    char *text = code();
    must(cuModuleLoadData(&loaded, text));
    free(text);
    must(cuModuleGetFunction(&large, loaded, "large"));
    must(cuModuleGetFunction(&small, loaded, "move_words"));
    for (int n = 0; n < LAUNCHES; n++) {
        void *parameters[] = {&shared, &own[n % 2]};
        must(cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 0, streams[n % 2], parameters, NULL));
    }
    must(cuCtxSynchronize());
    printf("outruns_the_reader: done\n");
    return 0;
}
