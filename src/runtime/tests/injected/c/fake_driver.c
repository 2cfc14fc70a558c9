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
u64 fake_args[12];
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
int cuTensorMapEncodeTiled(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j,
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
