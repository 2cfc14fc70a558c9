/* Names its phases as the header of NVTX 3 does: loads the library that the environment names, hands
 * it the tables of the modules CORE and CORE2, and calls what was put into them. racy: two memsets of
 * one buffer in two streams, one WAW, each in ranges of its own. clean: the second waits. */
#include <pthread.h>
#include <stdint.h>
#include <wchar.h>

#include "gpu.h"
#include "nvtx.h"

static struct module modules[2] = {{.id = 1, .size = 16}, {.id = 5, .size = 16}};
static function *const core = modules[0].functions, *const core2 = modules[1].functions;

/* The attributes of a range, in the layout of the header's second edition. */
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_kind;
    uint32_t color;
    int32_t payload_kind, reserved;
    uint64_t payload;
    int32_t message_kind;
    const void *message;
};

static struct attributes attributes(int kind, const void *message)
{
    struct attributes with = {.version = 3, .size = sizeof with};
    with.message_kind = kind;
    with.message = message;
    return with;
}

static void mark(const char *name)
{
    if (core[2] != NULL)
        ((void (*)(const char *))core[2])(name);
}

static uint64_t start(const wchar_t *name)
{
    return core[6] != NULL ? ((uint64_t (*)(const wchar_t *))core[6])(name) : 0;
}

static void end(uint64_t range)
{
    if (core[7] != NULL)
        ((void (*)(uint64_t))core[7])(range);
}

static void push(const char *name)
{
    if (core[9] != NULL)
        ((int (*)(const char *))core[9])(name);
}

static void push_wide(const wchar_t *name)
{
    if (core[10] != NULL)
        ((int (*)(const wchar_t *))core[10])(name);
}

static void pop(void)
{
    if (core[11] != NULL)
        ((int (*)(void))core[11])();
}

static void *create_domain(const char *name)
{
    return core2[12] != NULL ? ((void *(*)(const char *))core2[12])(name) : NULL;
}

static void *register_string(void *domain, const char *text)
{
    return core2[10] != NULL ? ((void *(*)(void *, const char *))core2[10])(domain, text) : NULL;
}

static void domain_push(void *domain, struct attributes with)
{
    if (core2[4] != NULL)
        ((int (*)(void *, struct attributes *))core2[4])(domain, &with);
}

static void domain_pop(void *domain)
{
    if (core2[5] != NULL)
        ((int (*)(void *))core2[5])(domain);
}

/* Another thread's ranges are not those of the operations around. */
static void *loads(void *unused)
{
    (void)unused;
    push("load");
    return NULL;
}

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    load();
    open_gpu();
    device_address buffer = device_memory();
    stream left = new_stream(), right = new_stream();
    void *domain = create_domain("optimizer");
    void *name = register_string(domain, "adam");
    pthread_t thread;
    if (pthread_create(&thread, NULL, loads, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;

    uint64_t epoch = start(L"epoch");
    push("train");
    push("step 12");
    push_wide(L"forw\u00e4rd");
    mark("first batch");
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, left));
    pop();
    if (!racy)
        must(cuStreamSynchronize(left));
    domain_push(domain, attributes(3, name));
    domain_push(domain, attributes(1, "two\nlines"));
    must(cuMemsetD8Async(buffer, 2, BUFFER_BYTES, right));
    domain_pop(domain);
    domain_pop(domain);
    pop();
    pop();
    pop();
    end(epoch);
    must(cuCtxSynchronize());
    printf("nvtx_ranges: done\n");
    return 0;
}
