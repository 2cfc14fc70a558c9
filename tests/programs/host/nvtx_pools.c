/* A sub-allocator that tells of its heap and regions as the header of NVTX's memory extension does:
 * loads the library that the environment names, hands it its slots, and calls what was put into
 * them. Two regions lie side by side in one allocation of the driver, and the first one's bytes are
 * handed out again.
 *
 * clean: neighbours in two streams; the next owner is behind the former one.
 * reuse: it is not, one WAW. ended: the former owner goes on after its end, one UAF; so it does in
 * reset, where the whole heap is reset. resized: the first region ends where the second one begins
 * only before it has grown. older: as ended, by the slots of the first edition of the header. */
#include <dlfcn.h>
#include <stdint.h>

#include "gpu.h"

enum { MEMORY = 1, COMPATIBILITY = 0x0102, SUB_ALLOCATOR = 1, ADDRESSES = 1, BY_POINTER = 1 };
enum { HEAP_REGISTER = 1, HEAP_UNREGISTER, HEAP_RESET, REGISTER, RESIZE, UNREGISTER, NAME };
enum { PART = BUFFER_BYTES / 4 };

typedef void (*function)(void);

struct segment {
    size_t id, count;
    intptr_t *slots;
};

struct module {
    uint16_t version, size, id, compatibility;
    size_t count;
    struct segment *segments;
    const void *get_export_function;
    const void *info;
};

struct range {
    size_t bytes;
    const void *start;
};

struct heap {
    uint16_t compatibility, size;
    uint32_t reserved, usage, type;
    size_t range_bytes;
    const struct range *range;
    uint32_t category, message_type;
    const char *message;
};

struct registration {
    uint16_t compatibility, size;
    uint32_t type;
    const void *heap;
    size_t count, element;
    const struct range *ranges;
    const void **handles;
};

struct batch {
    uint16_t compatibility, size;
    uint32_t type;
    size_t count, element;
    const void *elements;
};

struct name {
    uint32_t reference, type;
    const void *region;
    const char *text;
    uint32_t category, reserved;
};

static intptr_t table[64];
static int first_edition;

/* What a tool has put in; nothing where there is none. */
static function slot(int number)
{
    return (function)table[first_edition ? number - 1 : number];
}

static void load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    int (*initialize)(struct module *) = NULL;
    struct segment segment = {1, first_edition ? 16 : 63, table};
    struct module module = {3, sizeof module, MEMORY, COMPATIBILITY, 1, &segment, NULL, NULL};
    if (first_edition)
        module.size -= sizeof module.info;
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    if (library != NULL)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtxExtension");
    if (initialize != NULL)
        initialize(&module);
}

static const void *heap_register(device_address start, size_t bytes)
{
    struct range range = {bytes, (const void *)start};
    struct heap heap = {COMPATIBILITY, sizeof heap, 0, SUB_ALLOCATOR, ADDRESSES, sizeof range,
                        &range, 0, 0, NULL};
    if (slot(HEAP_REGISTER) == NULL)
        return NULL;
    return ((const void *(*)(void *, struct heap *))slot(HEAP_REGISTER))(NULL, &heap);
}

static void heap_ends(int number, const void *heap)
{
    if (slot(number) != NULL)
        ((void (*)(void *, const void *))slot(number))(NULL, heap);
}

static void regions_register(const void *heap, const struct range *ranges, size_t count)
{
    const void *handles[4] = {NULL};
    struct registration batch = {COMPATIBILITY, sizeof batch, ADDRESSES, heap, count,
                                 sizeof *ranges, ranges, handles};
    if (slot(REGISTER) == NULL)
        return;
    ((void (*)(void *, struct registration *))slot(REGISTER))(NULL, &batch);
    for (size_t i = 0; i < count; i++)
        if (handles[i] == NULL)
            exit(1);
}

static void regions(int number, uint32_t type, const void *elements, size_t element, size_t count)
{
    struct batch batch = {COMPATIBILITY, sizeof batch, type, count, element, elements};
    if (slot(number) != NULL)
        ((void (*)(void *, struct batch *))slot(number))(NULL, &batch);
}

int main(int count, char **arguments)
{
    const char *variant = count == 2 ? arguments[1] : "";
    int is_clean = strcmp(variant, "clean") == 0, is_reuse = strcmp(variant, "reuse") == 0;
    int is_resized = strcmp(variant, "resized") == 0, is_reset = strcmp(variant, "reset") == 0;
    int is_ended = strcmp(variant, "ended") == 0;
    first_edition = strcmp(variant, "older") == 0;
    if (!is_clean && !is_reuse && !is_resized && !is_reset && !is_ended && !first_edition) {
        fprintf(stderr, "say clean, reuse, ended, reset, resized or older\n");
        return 2;
    }
    open_gpu();
    load();
    device_address pool = device_memory();
    stream left = new_stream(), right = new_stream();

    const void *heap = heap_register(pool, BUFFER_BYTES);
    struct range parts[] = {{PART, (void *)pool}, {PART, (void *)(pool + PART)}};
    regions_register(heap, parts, 2);
    struct name label = {BY_POINTER, 1, parts[0].start, "activations", 0, 0};
    regions(NAME, 0, &label, sizeof label, 1);
    must(cuMemsetD8Async(pool, 1, PART, left));
    must(cuMemsetD8Async(pool + PART, 2, PART, right));

    if (is_resized) {
        struct range grown = {2 * PART, (void *)pool};
        regions(UNREGISTER, BY_POINTER, &parts[1].start, sizeof(void *), 1);
        must(cuCtxSynchronize());
        regions(RESIZE, ADDRESSES, &grown, sizeof grown, 1);
        must(cuMemsetD8Async(pool + PART, 3, PART, left));
    } else if (is_reset) {
        heap_ends(HEAP_RESET, heap);
        must(cuMemsetD8Async(pool, 3, PART, left));
    } else {
        regions(UNREGISTER, BY_POINTER, &parts[0].start, sizeof(void *), 1);
        if (is_ended || first_edition) {
            must(cuMemsetD8Async(pool, 3, PART, left));
        } else {
            struct range next = {PART / 2, (void *)pool};
            regions_register(heap, &next, 1);
            if (is_clean)
                must(cuStreamSynchronize(left));
            must(cuMemsetD8Async(pool, 3, PART / 2, right));
        }
    }
    must(cuCtxSynchronize());
    heap_ends(HEAP_UNREGISTER, heap);
    /* No sub-allocator has it any more. */
    must(cuMemsetD8Async(pool, 0, BUFFER_BYTES, left));
    must(cuCtxSynchronize());
    printf("nvtx_pools: done\n");
    return 0;
}
