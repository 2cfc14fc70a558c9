/* Hazard: the code of a kernel cannot be read to its end, here because a pipe into which nobody
 * writes takes the place of its file as soon as the driver has loaded it.
 * Expected: the run waits until it is told not to, and is incomplete then. */
#include <sys/stat.h>

#include "driver.h"

typedef struct module_object *module;
typedef struct function_object *function;

status cuModuleLoad(module *made, const char *file);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry fill_words(.param .u64 to)\n"
    "{\n"
    "    .reg .b64 %target;\n"
    "    ld.param.u64 %target, [to];\n"
    "    st.global.u32 [%target], 1;\n"
    "    ret;\n"
    "}\n";

int main(void)
{
    int device;
    context primary;
    device_address buffer;
    module loaded;
    function kernel;
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
    FILE *file = fopen("kernel.ptx", "w");
    if (file == NULL || fputs(code, file) < 0 || fclose(file) != 0)
        return 1;
    must(cuModuleLoad(&loaded, "kernel.ptx"));
    if (mkfifo("pipe", 0600) != 0 || rename("pipe", "kernel.ptx") != 0)
        return 1;
    must(cuModuleGetFunction(&kernel, loaded, "fill_words"));
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    void *parameters[] = {&buffer};
    must(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    must(cuCtxSynchronize());
    printf("code_never_comes: done\n");
    return 0;
}
