/* Ordinary code touches host memory that the device uses: `orders CASE racy` where nothing orders the
 * two, `orders CASE clean` where something does. What is found of each stands in
 * end_to_end/host_accesses.rs. */
#include "common.h"

#include <dlfcn.h>

static int racy;
static device_address device;
static volatile unsigned char *pinned;
static stream first;
static volatile unsigned char seen;

static void download(size_t bytes, stream in)
{
    must(cuMemcpyDtoHAsync_v2((void *)pinned, device, bytes, in));
}

static void wait_for(stream awaited)
{
    must(cuStreamSynchronize(awaited));
}

static void read_early(void)
{
    download(PAGE, first);
    if (!racy)
        wait_for(first);
    seen = pinned[16];
}

static void overwritten(void)
{
    must(cuMemcpyHtoDAsync_v2(device, (void *)pinned, PAGE, first));
    if (!racy)
        wait_for(first);
    pinned[16] = 1;
}

static void read_of_source(void)
{
    must(cuMemcpyHtoDAsync_v2(device, (void *)pinned, PAGE, first));
    seen = pinned[16];
}

static void other_stream(void)
{
    stream other = new_stream(NON_BLOCKING);
    download(PAGE, first);
    wait_for(racy ? other : first);
    seen = pinned[16];
}

static void other_event(void)
{
    event before = new_event(), behind = new_event();
    must(cuEventRecord(before, first));
    download(PAGE, first);
    must(cuEventRecord(behind, first));
    must(cuEventSynchronize(racy ? before : behind));
    seen = pinned[16];
}

static void query(void)
{
    download(PAGE, first);
    int answer = cuStreamQuery(first);
    while (!racy && answer != 0)
        answer = cuStreamQuery(first);
    seen = pinned[16];
}

static void second_stream(void)
{
    stream other = new_stream(NON_BLOCKING);
    event behind = new_event();
    download(PAGE, first);
    must(cuEventRecord(behind, first));
    if (!racy)
        must(cuStreamWaitEvent(other, behind, 0));
    wait_for(other);
    seen = pinned[16];
}

static void legacy(void)
{
    stream in = racy ? first : new_stream(0);
    download(PAGE, in);
    wait_for(NULL);
    seen = pinned[16];
}

static void fill(void *unused)
{
    (void)unused;
    for (int at = 0; at < 64; at++)
        pinned[at] = (unsigned char)at;
}

/* A function that fills the buffer, before the copy that reads it. */
static void function_before(void)
{
    stream in = racy ? new_stream(NON_BLOCKING) : first;
    must(cuLaunchHostFunc(in, fill, NULL));
    must(cuMemcpyHtoDAsync_v2(device, (void *)pinned, PAGE, first));
}

/* A function that fills the buffer again, behind the copy. */
static void function_behind(void)
{
    stream in = racy ? new_stream(NON_BLOCKING) : first;
    must(cuMemcpyHtoDAsync_v2(device, (void *)pinned, PAGE, first));
    must(cuLaunchHostFunc(in, fill, NULL));
    must(cuStreamSynchronize(in));
}

static void graph_copy(void)
{
    graph made;
    executable ready;
    must(cuStreamBeginCapture_v2(first, 2));
    download(PAGE, first);
    must(cuStreamEndCapture(first, &made));
    seen = pinned[8];
    must(cuGraphInstantiateWithFlags(&ready, made, 0));
    seen = pinned[8];
    must(cuGraphLaunch(ready, first));
    if (!racy)
        wait_for(first);
    seen = pinned[16];
}

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry fill_words(.param .u64 to)\n"
    "{\n"
    "    .reg .b32 %index;\n"
    "    .reg .b64 %at, %target;\n"
    "    ld.param.u64 %target, [to];\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mul.wide.u32 %at, %index, 4;\n"
    "    add.s64 %target, %target, %at;\n"
    "    st.global.u32 [%target], %index;\n"
    "    ret;\n"
    "}\n";

static void launch(device_address to)
{
    module loaded;
    function found;
    void *parameters[] = {&to};
    must(cuModuleLoadData(&loaded, code));
    must(cuModuleGetFunction(&found, loaded, "fill_words"));
    must(cuLaunchKernel(found, 1, 1, 1, 32, 1, 1, 0, first, parameters, NULL));
}

static void managed(void)
{
    device_address both;
    must(cuMemAllocManaged(&both, 2 * PAGE, 1));
    launch(both);
    if (!racy)
        wait_for(first);
    seen = *(volatile unsigned char *)(both + 16);
}

static void zero_copy(void)
{
    launch((device_address)pinned);
    if (!racy)
        wait_for(first);
    seen = pinned[16];
}

/* The device has four bytes of a page; the program's own lie beside them. */
static void neighbour(void)
{
    download(4, first);
    pinned[64] = 1;
    seen = pinned[racy ? 3 : 4];
}

/* The touch beside the bytes opens the page; the next driver call closes it again. */
static void neighbour_again(void)
{
    stream other = new_stream(NON_BLOCKING);
    download(4, first);
    pinned[64] = 1;
    wait_for(racy ? other : first);
    seen = pinned[3];
}

/* The calling thread's own default stream. */
static void per_thread(void)
{
    must(cuMemcpyDtoHAsync_v2_ptsz((void *)pinned, device, PAGE, NULL));
    if (!racy)
        must(cuStreamSynchronize_ptsz(NULL));
    seen = pinned[16];
}

/* Memory by which a library talks with the device: nobody looks at it. */
static void of_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW);
    void *(*make)(size_t) = library ? (void *(*)(size_t))dlsym(library, "memory_of_the_library") : NULL;
    if (!make) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    pinned = make(PAGE);
    download(PAGE, first);
    if (!racy)
        wait_for(first);
    seen = pinned[16];
}

static void tail(void)
{
    download(1 << 20, first);
    if (!racy)
        wait_for(first);
    seen = pinned[(1 << 20) - 1];
}

static void registered(void)
{
    size_t bytes = 4 * PAGE;
    unsigned char *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(cuMemHostRegister_v2(own + 8, bytes - 16, 0));
    must(cuMemcpyDtoHAsync_v2(own + 8, device, bytes - 16, first));
    /* The edge pages hold other things. */
    ((volatile unsigned char *)own)[0] = 1;
    if (!racy)
        wait_for(first);
    seen = ((volatile unsigned char *)own)[2 * PAGE];
    wait_for(first);
    must(cuMemHostUnregister(own + 8));
}

static void twice(void)
{
    for (int round = 0; round < 3; round++) {
        download(PAGE, first);
        if (!racy)
            wait_for(first);
        seen = pinned[16];
        wait_for(first);
    }
}

/* As many streams as share slots, one of them waited for. */
static void many_streams(void)
{
    enum { STREAMS = 300 };
    static stream all[STREAMS];
    for (int at = 0; at < STREAMS; at++) {
        all[at] = new_stream(NON_BLOCKING);
        must(cuMemcpyDtoHAsync_v2((void *)(pinned + at * 64), device, 64, all[at]));
    }
    for (int at = 0; at < STREAMS; at++)
        if (!racy || at > 0)
            wait_for(all[at]);
    if (!racy)
        seen = pinned[0];
}

/* More events than are remembered, and a wait for the first one. */
static void many_events(void)
{
    enum { EVENTS = 5000 };
    static event all[EVENTS];
    download(PAGE, first);
    for (int at = 0; at < EVENTS; at++) {
        all[at] = new_event();
        must(cuEventRecord(all[at], first));
    }
    if (!racy)
        must(cuEventSynchronize(all[0]));
    seen = pinned[16];
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"read_early", read_early},       {"overwritten", overwritten},
    {"read_of_source", read_of_source}, {"other_stream", other_stream},
    {"other_event", other_event},     {"query", query},
    {"second_stream", second_stream}, {"legacy", legacy},
    {"function_before", function_before}, {"function_behind", function_behind},
    {"graph_copy", graph_copy},       {"managed", managed},
    {"zero_copy", zero_copy},         {"neighbour", neighbour},
    {"tail", tail},                   {"registered", registered},
    {"twice", twice},                 {"many_streams", many_streams},
    {"many_events", many_events},     {"neighbour_again", neighbour_again},
    {"per_thread", per_thread},       {"of_library", of_library},
};

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    racy = strcmp(arguments[2], "racy") == 0;
    open_gpu();
    device = device_memory(1 << 20);
    pinned = pinned_memory(1 << 20);
    first = new_stream(NON_BLOCKING);
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        if (strcmp(cases[at].name, arguments[1]) == 0) {
            cases[at].run();
            must(cuCtxSynchronize());
            printf("%s: done\n", arguments[1]);
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}
