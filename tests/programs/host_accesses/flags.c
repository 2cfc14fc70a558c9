/* Host and device talk through page-locked memory: `flags DEVICE HOST`, with the instructions by which
 * the kernel stores one word and loads another, and those by which the host uses the two meanwhile.
 * What is found of each pair stands in end_to_end/system_scope.rs. */
#include "common.h"

static const char *const instructions[][3] = {
    {"weak", "st.global.u32 [%rd2+16], %r1;", "ld.global.u32 %r1, [%rd2+32];"},
    {"volatile", "st.volatile.global.u32 [%rd2+16], %r1;", "ld.volatile.global.u32 %r1, [%rd2+32];"},
    {"system", "st.release.sys.global.u32 [%rd2+16], %r1;",
     "ld.acquire.sys.global.u32 %r1, [%rd2+32];"},
    {"gpu", "st.release.gpu.global.u32 [%rd2+16], %r1;", "ld.acquire.gpu.global.u32 %r1, [%rd2+32];"},
    {"atomic", "red.global.sys.add.u32 [%rd2+16], 1;",
     "atom.global.sys.add.u32 %r1, [%rd2+32], 1;"},
};

static void launch(const char *device, device_address words)
{
    char image[1024];
    const char *const *chosen = NULL;
    for (size_t at = 0; at < sizeof instructions / sizeof *instructions; at++)
        if (strcmp(instructions[at][0], device) == 0)
            chosen = instructions[at];
    if (chosen == NULL)
        exit(2);
    snprintf(image, sizeof image,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .entry talk(.param .u64 words)\n"
             "{\n.reg .b64 %%rd<4>;\n.reg .b32 %%r<4>;\n"
             "ld.param.u64 %%rd1, [words];\ncvta.to.global.u64 %%rd2, %%rd1;\n"
             "mov.u32 %%r1, 1;\n%s\n%s\nret;\n}\n",
             chosen[1], chosen[2]);
    module loaded;
    function talk;
    void *parameters[] = {&words};
    must(cuModuleLoadData(&loaded, image));
    must(cuModuleGetFunction(&talk, loaded, "talk"));
    must(cuLaunchKernel(talk, 1, 1, 1, 1, 1, 1, 0, new_stream(1), parameters, NULL));
}

static volatile unsigned seen;

typedef unsigned four_words __attribute__((vector_size(16)));

static void use(const char *host, volatile unsigned char *words)
{
    volatile unsigned *stored = (volatile unsigned *)(words + 16);
    volatile unsigned *loaded = (volatile unsigned *)(words + 32);
    if (strcmp(host, "plain") == 0) {
        seen = *stored;
        *loaded = 2;
    } else if (strcmp(host, "atomic") == 0) {
        __atomic_fetch_add(stored, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(loaded, 1, __ATOMIC_SEQ_CST);
    } else {
        four_words all = *(volatile four_words *)stored;
        seen = all[0];
        *(volatile four_words *)loaded = all;
    }
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    open_gpu();
    volatile unsigned char *words = pinned_memory(PAGE);
    launch(arguments[1], (device_address)words);
    use(arguments[2], words);
    must(cuCtxSynchronize());
    printf("done\n");
    return 0;
}
