/* Two streams write words of one buffer with one kernel, at places that the kernel reads from
 * memory: from its arguments only the begin of what it writes is known. The first argument says
 * which places: `interleaved` (every other word each) or `overlapping` (some words twice); with
 * `one-pointer-` before it, both kernels get the same pointer.
 * The second argument `early` clears the buffer on another stream at the same time: a race whose
 * bytes are known.
 * The second argument `graph` launches each kernel twice as the node of a captured graph, and
 * `child` as the node of a graph in a child node.
 * Where the kernels are measured, the second argument says what else is done: `fails` (the program
 * ends with code 7), `other` (one launch more), `waits` (until a signal ends the program).
 * Expected: a possible race, of one pointer a likely one; measured, clean or racy. */
#include <string.h>
#include <unistd.h>

#include "driver.h"

typedef struct module_object *module;
typedef struct function_object *function;
typedef struct graph_object *graph;
typedef struct node_object *node;
typedef struct executable_object *executable;

status cuModuleLoadData(module *made, const void *image);
status cuModuleGetFunction(function *found, module of, const char *name);
status cuMemcpyHtoD_v2(device_address to, const void *from, size_t bytes);
status cuLaunchKernel(function started, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      stream in, void **parameters, void **extra);

status cuStreamBeginCapture_v2(stream in, int mode);
status cuStreamEndCapture(stream in, graph *captured);
status cuGraphCreate(graph *made, unsigned flags);
status cuGraphAddChildGraphNode(node *made, graph to, const node *behind, size_t count, graph child);
status cuGraphDestroy(graph ended);
status cuGraphInstantiateWithFlags(executable *made, graph of, unsigned long long flags);
status cuGraphLaunch(executable launched, stream in);

enum { THREADS = 32, FIRST_WORD = 224, MIDDLE_WORD = 256 };

static const char code[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry scatter(.param .u64 to, .param .u64 places)\n"
    "{\n"
    "    .reg .b32 %place, %index;\n"
    "    .reg .b64 %at, %source, %target;\n"
    "    ld.param.u64 %target, [to];\n"
    "    ld.param.u64 %source, [places];\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mul.wide.u32 %at, %index, 4;\n"
    "    add.s64 %source, %source, %at;\n"
    "    ld.global.u32 %place, [%source];\n"
    "    mul.wide.u32 %at, %place, 4;\n"
    "    add.s64 %target, %target, %at;\n"
    "    st.global.u32 [%target], %index;\n"
    "    ret;\n"
    "}\n";

static int is(int count, char **arguments, int position, const char *word)
{
    return count > position && strcmp(arguments[position], word) == 0;
}

/* An executable of what was captured, or of a graph that has it in a child node. No graph is left. */
static executable instantiated(graph captured, int in_child)
{
    graph outer;
    node child;
    executable made;
    if (in_child) {
        must(cuGraphCreate(&outer, 0));
        must(cuGraphAddChildGraphNode(&child, outer, NULL, 0, captured));
        must(cuGraphDestroy(captured));
        captured = outer;
    }
    must(cuGraphInstantiateWithFlags(&made, captured, 0));
    must(cuGraphDestroy(captured));
    return made;
}

int main(int count, char **arguments)
{
    int device, measured = getenv("STREAMSAN_MEASURE") != NULL;
    int one_pointer = count > 1 && strncmp(arguments[1], "one-pointer-", 12) == 0;
    int odd = is(count, arguments, 1, "interleaved")
              || is(count, arguments, 1, "one-pointer-interleaved");
    context primary;
    module loaded;
    function scatter;
    device_address buffer, targets[2], places[2];
    uint32_t words[2][THREADS];
    stream streams[2];
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&primary, device));
    must(cuCtxSetCurrent(primary));
    must(cuModuleLoadData(&loaded, code));
    must(cuModuleGetFunction(&scatter, loaded, "scatter"));
    must(cuMemAlloc_v2(&buffer, BUFFER_BYTES));
    must(cuMemsetD8Async(buffer, 0, BUFFER_BYTES, NULL));
    /* The second view begins in the middle of the first one, or with it. */
    targets[0] = buffer;
    targets[1] = buffer + (one_pointer ? 0 : 4 * MIDDLE_WORD);
    for (int n = 0; n < THREADS; n++) {
        words[0][n] = (one_pointer ? 0 : FIRST_WORD) + 2 * n;
        words[1][n] = 2 * n + odd;
    }
    for (int n = 0; n < 2; n++) {
        must(cuMemAlloc_v2(&places[n], sizeof words[n]));
        must(cuMemcpyHtoD_v2(places[n], words[n], sizeof words[n]));
        must(cuStreamCreate(&streams[n], NON_BLOCKING));
    }
    must(cuCtxSynchronize());
    if (is(count, arguments, 2, "early")) {
        must(cuMemsetD8Async(buffer + BUFFER_BYTES - 64, 0, 64, streams[0]));
        must(cuMemsetD8Async(buffer + BUFFER_BYTES - 64, 1, 64, streams[1]));
    }
    for (int n = 0; n < 2; n++) {
        void *parameters[] = {&targets[n], &places[n]};
        int in_child = is(count, arguments, 2, "child");
        int in_graph = in_child || is(count, arguments, 2, "graph");
        graph captured;
        executable made;
        if (in_graph)
            must(cuStreamBeginCapture_v2(streams[n], 0));
        must(cuLaunchKernel(scatter, 1, 1, 1, THREADS, 1, 1, 0, streams[n], parameters, NULL));
        if (!in_graph)
            continue;
        must(cuStreamEndCapture(streams[n], &captured));
        made = instantiated(captured, in_child);
        for (int round = 0; round < 2; round++)
            must(cuGraphLaunch(made, streams[n]));
    }
    must(cuCtxSynchronize());
    if (measured && is(count, arguments, 2, "other")) {
        void *parameters[] = {&targets[0], &places[0]};
        must(cuLaunchKernel(scatter, 1, 1, 1, THREADS, 1, 1, 0, streams[0], parameters, NULL));
        must(cuCtxSynchronize());
    }
    printf("settles: done\n");
    if (measured && is(count, arguments, 2, "fails"))
        return 7;
    if (measured && is(count, arguments, 2, "waits")) {
        printf("settles: waiting\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    return 0;
}
