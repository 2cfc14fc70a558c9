/* Two streams run one kernel that reads a buffer which they share and writes one of their own: no
 * race, for whoever knows what the kernel does. The argument says how its code is loaded: `memory`
 * (from a buffer), `constant` (from a constant of this program, which lies in its file), `file`
 * (from the file kernel.ptx in the working directory), `library` (a constant, by cuLibraryLoadData).
 * Expected: clean, also with --fail-on possible. */
#include <string.h>

#include "driver.h"

typedef struct module_object *module;
typedef struct function_object *function;

status cuModuleLoad(module *made, const char *file);
status cuModuleLoadData(module *made, const void *image);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuLibraryLoadData(module *made, const void *image, int *options, void **values, unsigned count,
                         int *library_options, void **library_values, unsigned library_count);
status cuLibraryGetKernel(function *found, module of, const char *name);
status cuKernelGetFunction(function *found, function kernel);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry move_words(.param .u64 from, .param .u64 to)\n"
    "{\n"
    "    .reg .b32 %word, %index;\n"
    "    .reg .b64 %at, %source, %target;\n"
    "    ld.param.u64 %source, [from];\n"
    "    ld.param.u64 %target, [to];\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mul.wide.u32 %at, %index, 4;\n"
    "    add.s64 %source, %source, %at;\n"
    "    add.s64 %target, %target, %at;\n"
    "    ld.global.u32 %word, [%source];\n"
    "    st.global.u32 [%target], %word;\n"
    "    ret;\n"
    "}\n";

static function load(const char *how)
{
    module loaded;
    function found;
    if (strcmp(how, "library") == 0) {
        function kernel;
        must(cuLibraryLoadData(&loaded, code, NULL, NULL, 0, NULL, NULL, 0));
        must(cuLibraryGetKernel(&kernel, loaded, "move_words"));
        must(cuKernelGetFunction(&found, kernel));
        return found;
    }
    if (strcmp(how, "file") == 0) {
        FILE *file = fopen("kernel.ptx", "w");
        if (file == NULL || fputs(code, file) < 0 || fclose(file) != 0)
            exit(1);
        must(cuModuleLoad(&loaded, "kernel.ptx"));
    } else if (strcmp(how, "memory") == 0) {
        char *copy = malloc(sizeof code);
        if (copy == NULL)
            exit(1);
        memcpy(copy, code, sizeof code);
        must(cuModuleLoadData(&loaded, copy));
        /* The driver is done with it. */
        memset(copy, 0, sizeof code);
        free(copy);
    } else {
        must(cuModuleLoadData(&loaded, code));
    }
    must(cuModuleGetFunction(&found, loaded, "move_words"));
    return found;
}

int main(int count, char **arguments)
{
    int device;
    context primary;
    device_address shared, own[2];
    stream streams[2];
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
    function kernel = load(count > 1 ? arguments[1] : "constant");
    must(cuMemAlloc_v2(&shared, BUFFER_BYTES));
    for (int n = 0; n < 2; n++) {
        must(cuMemAlloc_v2(&own[n], BUFFER_BYTES));
        must(cuStreamCreate(&streams[n], NON_BLOCKING));
    }
    for (int n = 0; n < 2; n++) {
        void *parameters[] = {&shared, &own[n]};
        must(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, streams[n], parameters, NULL));
    }
    must(cuCtxSynchronize());
    printf("loads_code: done\n");
    return 0;
}
