/* Two streams run a kernel that finds its buffer by a pointer which the program has put into a
 * variable of the module. The argument says what is done: `read` (both read the buffer), `write`
 * (both write it), `pinned` (both read it, but the pointer came by an asynchronous copy from
 * page-locked memory, which whoever watches the calls cannot see the content of).
 * Expected: clean, racy over the 128 bytes from byte 256 of the buffer on, incomplete. */
#include <string.h>

#include "driver.h"

typedef struct module_object *module;
typedef struct function_object *function;

status cuModuleLoadData(module *made, const void *image);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuModuleGetGlobal_v2(device_address *start, size_t *bytes, module of, const char *name);
status cuMemHostAlloc(void **start, size_t bytes, unsigned flags);
status cuMemcpyHtoD_v2(device_address to, const void *from, size_t bytes);
status cuMemcpyHtoDAsync_v2(device_address to, const void *from, size_t bytes, stream in);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".global .align 8 .u64 buffer;\n"
    ".visible .entry look(.param .u64 to)\n"
    "{\n"
    "    .reg .b32 %word, %index;\n"
    "    .reg .b64 %at, %source, %target;\n"
    "    ld.param.u64 %target, [to];\n"
    "    ld.global.u64 %source, [buffer];\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mul.wide.u32 %at, %index, 4;\n"
    "    add.s64 %source, %source, %at;\n"
    "    add.s64 %target, %target, %at;\n"
    "    ld.global.u32 %word, [%source];\n"
    "    st.global.u32 [%target], %word;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry mark(.param .u64 from)\n"
    "{\n"
    "    .reg .b32 %word, %index;\n"
    "    .reg .b64 %at, %source, %target;\n"
    "    ld.param.u64 %source, [from];\n"
    "    ld.global.u64 %target, [buffer];\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mul.wide.u32 %at, %index, 4;\n"
    "    add.s64 %source, %source, %at;\n"
    "    add.s64 %target, %target, %at;\n"
    "    ld.global.u32 %word, [%source];\n"
    "    st.global.u32 [%target], %word;\n"
    "    ret;\n"
    "}\n";

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "read";
    int device;
    context primary;
    module loaded;
    function used;
    device_address shared, variable, own[2];
    size_t bytes;
    stream streams[2];
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
    must(cuMemAlloc_v2(&shared, BUFFER_BYTES));
    must(cuMemsetD8Async(shared, 0, BUFFER_BYTES, NULL));
    for (int n = 0; n < 2; n++) {
        must(cuMemAlloc_v2(&own[n], BUFFER_BYTES));
        must(cuMemsetD8Async(own[n], 0, BUFFER_BYTES, NULL));
        must(cuStreamCreate(&streams[n], NON_BLOCKING));
    }
    must(cuModuleLoadData(&loaded, code));
    must(cuModuleGetFunction(&used, loaded, strcmp(how, "write") == 0 ? "mark" : "look"));
    /* Who knows the variable need not ask for its size, and libraries do not. */
    size_t *asked = strcmp(how, "write") == 0 ? NULL : &bytes;
    must(cuModuleGetGlobal_v2(&variable, asked, loaded, "buffer"));
    if (asked != NULL && bytes != sizeof shared)
        return 1;
    device_address middle = shared + 256;
    if (strcmp(how, "pinned") == 0) {
        void *locked;
        must(cuMemHostAlloc(&locked, sizeof middle, 0));
        memcpy(locked, &middle, sizeof middle);
        must(cuMemcpyHtoDAsync_v2(variable, locked, sizeof middle, NULL));
    } else {
        must(cuMemcpyHtoD_v2(variable, &middle, sizeof middle));
    }
    must(cuCtxSynchronize());
    for (int n = 0; n < 2; n++) {
        void *parameters[] = {&own[n]};
        must(cuLaunchKernel(used, 1, 1, 1, 32, 1, 1, 0, streams[n], parameters, NULL));
    }
    must(cuCtxSynchronize());
    printf("pointer_in_variable: done\n");
    return 0;
}
