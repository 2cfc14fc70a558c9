/* Graphs that become executable, are changed and launched; captured calls; clones. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t u64;
typedef void *ptr;

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
extern struct fake_graph fake_graphs[4];
extern u64 fake_graph_queries, fake_captured_node, fake_updatable_node;
extern unsigned fake_capturing;
extern int fake_result;

int cuGraphAddMemsetNode(u64 *node, u64 graph, const u64 *deps, size_t count, const void *params,
                         ptr context);
int cuGraphAddNode_v2(u64 *node, u64 graph, const u64 *deps, const void *data, size_t count,
                      void *params);
int cuGraphClone(u64 *clone, u64 original);
int cuGraphInstantiateWithFlags(u64 *exec, u64 graph, u64 flags);
int cuGraphExecUpdate_v2(u64 exec, u64 graph, void *info);
int cuGraphExecKernelNodeSetParams_v2(u64 exec, u64 node, const void *params);
int cuGraphExecNodeSetParams(u64 exec, u64 node, void *params);
int cuGraphLaunch(u64 exec, ptr stream);
int cuStreamBeginCapture_v2(ptr stream, unsigned mode);
int cuStreamEndCapture(ptr stream, u64 *graph);
int cuStreamDestroy_v2(ptr stream);
int cuMemsetD8Async(u64 at, unsigned char value, u64 bytes, ptr stream);

int main(void) {
    u64 a = 0x1111111111111111, other = 0x3333333333333333, handle = 0;
    uint32_t b = 0x22222222;
    ptr params[] = {&a, &b}, other_params[] = {&other, &b};
    u64 operations[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

    /* A conditional node's body, known only from the call that makes the node. */
    u64 bodies[1] = {0x3000};
    u64 conditional[32] = {13, 0, 0xC0, 1ull << 32 | 1, (u64)bodies};
    cuGraphAddNode_v2(&handle, 0x1000, NULL, NULL, 0, conditional);

    /* A kernel of a library is told by its function and by itself. */
    struct fake_node kernel = {0x101, 0, 72, {0x4002, 0, 0, 0, 0, (u64)params, 0, 0x5002}};
    struct fake_node copy = {0x102, 1, 200, {7}};
    struct fake_node memset_ = {0x103, 2, 40, {8}};
    struct fake_node host = {0x104, 3, 16, {9, 10}};
    struct fake_node child = {0x105, 4, 8, {0x2000}};
    struct fake_node event = {0x106, 7, 8, {0xE0}};
    struct fake_node batch = {0x107, 12, 32, {0, 2, (u64)operations}};
    struct fake_node refused = {0x108, 1, -1, {0}};
    struct fake_node newer = {0x109, 77, 8, {0}};
    struct fake_node condition = {handle, 13, 0, {0}};
    struct fake_node inner = {0x201, 2, 40, {11}};
    struct fake_node body = {0x301, 5, 0, {0}};
    fake_graphs[0] = (struct fake_graph){
        0x1000, 10, 2,
        {&kernel, &copy, &memset_, &host, &child, &event, &batch, &refused, &newer, &condition},
        {0x101, 0x102}, {0x102, 0x104}, {{1, 0, 1}, {0}}};
    fake_graphs[1] = (struct fake_graph){0x2000, 1, 0, {&inner}};
    fake_graphs[2] = (struct fake_graph){0x3000, 1, 0, {&body}};

    fake_updatable_node = 0x101;
    cuGraphAddMemsetNode(&handle, 0x1000, NULL, 0, NULL, NULL);
    u64 exec = 0;
    cuGraphInstantiateWithFlags(&exec, 0x1000, 0);
    u64 asked = fake_graph_queries;
    cuGraphLaunch(exec, (ptr)5);
    if (fake_graph_queries != asked)
        return 1; /* a launch asks for nothing */

    /* A kernel beside a function does not count where a program gives it. */
    u64 changed[9] = {0x4002, 0, 0, 0, 0, (u64)other_params, 0, 0x5001};
    cuGraphExecKernelNodeSetParams_v2(exec, 0x101, changed);
    u64 any[32] = {1, 0, 0xF1A6, 0xC7, 0x55};
    cuGraphExecNodeSetParams(exec, 0x102, any);
    fake_result = 1;
    cuGraphExecUpdate_v2(exec, 0x2000, NULL);
    fake_result = 0;

    u64 clone = 0;
    cuGraphClone(&clone, 0x2000);

    /* Captured: the call between the begin and the end, and only there is the stream asked. */
    asked = fake_graph_queries;
    cuMemsetD8Async(0x10, 0, 1, (ptr)5);
    if (fake_graph_queries != asked)
        return 2;
    cuStreamBeginCapture_v2((ptr)5, 0);
    fake_capturing = 1;
    fake_captured_node = 0x777;
    cuMemsetD8Async(0x20, 0, 2, (ptr)5);
    cuMemsetD8Async(0x30, 0, 3, NULL);
    asked = fake_graph_queries;
    cuStreamDestroy_v2((ptr)6);
    if (fake_graph_queries != asked)
        return 4; /* the handle means nothing any more */
    fake_capturing = 0;
    cuStreamEndCapture((ptr)5, &handle);
    asked = fake_graph_queries;
    cuMemsetD8Async(0x40, 0, 4, (ptr)5);
    if (fake_graph_queries != asked)
        return 3;
    puts("done");
    return 0;
}
