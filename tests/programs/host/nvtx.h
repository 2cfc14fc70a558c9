/* What the header of NVTX 3 does when it is first used: it loads the library that the environment names,
 * hands it the tables of two modules, and calls what was put into them. Include gpu.h first. */
#include <dlfcn.h>

#define MOST_FUNCTIONS 16

typedef void (*function)(void);

struct module {
    int id;
    /* Slot 0 is never used. */
    unsigned size;
    function functions[MOST_FUNCTIONS];
    function *slots[MOST_FUNCTIONS];
};

static struct module modules[2];

static int module_table(int id, function ***table, unsigned *size)
{
    for (int i = 0; i < 2; i++)
        if (modules[i].id == id) {
            *table = modules[i].slots;
            *size = modules[i].size;
            return 1;
        }
    return 0;
}

static const struct {
    size_t size;
    int (*get)(int, function ***, unsigned *);
} callbacks = {sizeof callbacks, module_table};

static const void *export_table(unsigned id)
{
    return id == 1 ? &callbacks : NULL;
}

static void load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    int (*initialize)(const void *(*)(unsigned)) = NULL;
    for (int i = 0; i < 2; i++)
        for (unsigned slot = 1; slot < modules[i].size; slot++)
            modules[i].slots[slot] = &modules[i].functions[slot];
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    if (library != NULL)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (initialize != NULL)
        initialize(export_table);
}
