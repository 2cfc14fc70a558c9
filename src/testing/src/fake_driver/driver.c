/* A driver that does nothing but remember how it was called. The functions of the hook table are
 * generated behind this file; these are the ones with a behaviour of their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef void *ptr;

/* Number in the table and arguments of the last call of a hooked function. */
u64 fake_number;
u64 fake_args[16];
/* What hooked functions return; out parameters are written for 0 only. */
int fake_result;
u64 fake_context = 0xC0DE0000C0DEull;
/* What cuStreamIsCapturing answers. */
unsigned fake_capturing;
/* Arguments of the last call of a counted function. */
u64 fake_counted[12];
double fake_float;
u64 fake_queries;

int cuInit(unsigned flags) {
    fake_counted[0] = flags;
    return 0;
}
int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}
int cuCtxGetCurrent(ptr *context) {
    *context = (ptr)fake_context;
    return 0;
}
int cuStreamGetId(ptr stream, u64 *id) {
    *id = (u64)stream ^ 0x5555;
    return 0;
}
/* Devices with an odd number let the host touch managed memory beside kernels. */
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 89 && device & 1;
    return 0;
}
int cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 address) {
    *base = address & ~0xfffull;
    *size = 0x10000;
    return 0;
}
int cuStreamIsCapturing(ptr stream, unsigned *status) {
    (void)stream;
    *status = fake_capturing;
    return 0;
}
int cuStreamIsCapturing_ptsz(ptr stream, unsigned *status) {
    return cuStreamIsCapturing(stream, status);
}

/* Graphs as a program describes them; every other graph is empty. */
struct fake_node {
    u64 handle;
    int kind, bytes;
    u64 params[32];
};
struct fake_graph {
    u64 handle;
    size_t nodes, edges;
    struct fake_node *node[16];
    u64 from[16], to[16];
    unsigned char data[16][8];
};
struct fake_graph fake_graphs[4];
/* Queries about graphs and captures. */
u64 fake_graph_queries;
/* What a capturing stream depends on. */
u64 fake_captured_node;

static struct fake_graph *graph_of(u64 handle) {
    static struct fake_graph empty;
    fake_graph_queries++;
    for (int i = 0; i < 4; i++)
        if (fake_graphs[i].handle == handle)
            return &fake_graphs[i];
    return &empty;
}
static struct fake_node *node_of(u64 handle) {
    fake_graph_queries++;
    for (int i = 0; i < 4; i++)
        for (size_t n = 0; n < fake_graphs[i].nodes; n++)
            if (fake_graphs[i].node[n]->handle == handle)
                return fake_graphs[i].node[n];
    return NULL;
}
int cuGraphGetNodes(u64 graph, u64 *nodes, size_t *count) {
    struct fake_graph *g = graph_of(graph);
    for (size_t n = 0; nodes && n < g->nodes && n < *count; n++)
        nodes[n] = g->node[n]->handle;
    *count = g->nodes;
    return 0;
}
int cuGraphGetEdges_v2(u64 graph, u64 *from, u64 *to, void *data, size_t *count) {
    struct fake_graph *g = graph_of(graph);
    if (from) {
        memcpy(from, g->from, 8 * g->edges);
        memcpy(to, g->to, 8 * g->edges);
        memcpy(data, g->data, 8 * g->edges);
    }
    *count = g->edges;
    return 0;
}
int cuGraphNodeGetType(u64 node, int *kind) {
    struct fake_node *n = node_of(node);
    if (n)
        *kind = n->kind;
    return n ? 0 : 1;
}
static int get_params(u64 node, int kind, void *out) {
    struct fake_node *n = node_of(node);
    if (!n || n->kind != kind || n->bytes < 0)
        return 1;
    memcpy(out, n->params, n->bytes);
    return 0;
}
int cuGraphKernelNodeGetParams_v2(u64 node, void *out) { return get_params(node, 0, out); }
int cuGraphMemcpyNodeGetParams(u64 node, void *out) { return get_params(node, 1, out); }
int cuGraphMemsetNodeGetParams(u64 node, void *out) { return get_params(node, 2, out); }
int cuGraphHostNodeGetParams(u64 node, void *out) { return get_params(node, 3, out); }
int cuGraphChildGraphNodeGetGraph(u64 node, void *out) { return get_params(node, 4, out); }
int cuGraphEventWaitNodeGetEvent(u64 node, void *out) { return get_params(node, 6, out); }
int cuGraphEventRecordNodeGetEvent(u64 node, void *out) { return get_params(node, 7, out); }
int cuGraphBatchMemOpNodeGetParams(u64 node, void *out) { return get_params(node, 12, out); }
/* The node that kernels may change. */
u64 fake_updatable_node;
int cuGraphKernelNodeGetAttribute(u64 node, unsigned attribute, unsigned *value) {
    *value = attribute == 13 && node == fake_updatable_node;
    return 0;
}
/* Each node's clone has its handle plus one. */
int cuGraphNodeFindInClone(u64 *found, u64 node, u64 clone) {
    (void)clone;
    *found = node + 1;
    return 0;
}
int cuStreamGetCaptureInfo_v3(u64 stream, unsigned *status, u64 *id, u64 *graph, const u64 **nodes,
                              const void **data, size_t *count) {
    (void)stream;
    fake_graph_queries++;
    *status = fake_capturing;
    *id = 1;
    *graph = 0x9000;
    *nodes = &fake_captured_node;
    *data = NULL;
    *count = 1;
    return 0;
}
int cuStreamGetCaptureInfo_v3_ptsz(u64 stream, unsigned *status, u64 *id, u64 *graph,
                                   const u64 **nodes, const void **data, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, data, count);
}

/* Handles with bit 12 are kernels cast to functions; those with bit 13 tell nothing. The low four
 * bits say how many parameters there are: 8 bytes each, the second one 4. */
static int info(u64 handle, size_t index, size_t *offset, size_t *size) {
    fake_queries++;
    if (index >= (handle & 15))
        return 1;
    *offset = 8 * index;
    *size = index == 1 ? 4 : 8;
    return 0;
}
int cuFuncGetParamInfo(ptr f, size_t index, size_t *offset, size_t *size) {
    return (u64)f & 0x3000 ? 400 : info((u64)f, index, offset, size);
}
int cuKernelGetParamInfo(ptr f, size_t index, size_t *offset, size_t *size) {
    return (u64)f & 0x1000 ? info((u64)f, index, offset, size) : 400;
}
static int name(const char *prefix, u64 handle, const char **out) {
    char *text = NULL;
    if (asprintf(&text, "%s_%llx", prefix, (unsigned long long)handle) < 0)
        return 2;
    *out = text;
    return 0;
}
int cuFuncGetName(const char **out, ptr f) {
    return (u64)f & 0x3000 ? 400 : name("function", (u64)f, out);
}
int cuKernelGetName(const char **out, ptr f) {
    return (u64)f & 0x1000 ? name("kernel", (u64)f, out) : 400;
}

/* Counted functions whose arguments fill every register and the stack. */
int cuFabricCpyBatchAsync(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j,
                          u64 k, u64 l) {
    u64 all[12] = {a, b, c, d, e, f, g, h, i, j, k, l};
    memcpy(fake_counted, all, sizeof all);
    return 17;
}
int cuParamSetf(ptr f, int offset, float value) {
    fake_counted[0] = (u64)f;
    fake_counted[1] = (u64)offset;
    fake_float = value;
    return 18;
}
int cuGetExportTable(const void **table, const void *id) {
    *table = id;
    return 0;
}
/* An entry point of a driver newer than the runtime. */
int cuZebraStripe(int a) { return a + 1; }

static int call_now(void (*function)(void *), void *data) {
    function(data);
    return 0;
}
static int call_back_now(ptr stream, void (*function)(ptr, int, void *), void *data) {
    function(stream, 0, data);
    return 0;
}

struct entry {
    const char *name;
    void *function;
};
static const struct entry table[];

static void *find(const char *name) {
    for (const struct entry *e = table; e->name; e++)
        if (!strcmp(e->name, name))
            return e->function;
    return NULL;
}

/* The functions themselves, by a name that no runtime looks at. */
void *fake_find(const char *name) { return find(name); }

/* Chooses an ABI as the driver does: by version and flags. */
static int get(const char *symbol, void **function, int version, u64 flags) {
    static const char *per_thread[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"};
    char full[256];
    if (!*symbol)
        return 500;
    for (int i = 0; flags & 2 && i < 4; i++) {
        snprintf(full, sizeof full, "%s%s", symbol, per_thread[i]);
        if ((*function = find(full)))
            return 0;
    }
    snprintf(full, sizeof full, "%s_v2", symbol);
    if (version >= 3020 && (*function = find(full)))
        return 0;
    return (*function = find(symbol)) ? 0 : 500;
}
int cuGetProcAddress(const char *symbol, void **function, int version, u64 flags) {
    return get(symbol, function, version, flags);
}
int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status) {
    int result = get(symbol, function, version, flags);
    if (status)
        *status = result ? 1 : 0;
    return result;
}
