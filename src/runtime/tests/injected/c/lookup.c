/* Looks driver functions up in every way and calls what it gets. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("line %d: %s\n", __LINE__, #x);                                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

typedef int (*get_v1)(const char *, void **, int, uint64_t);
typedef int (*get_v2)(const char *, void **, int, uint64_t, int *);
typedef int (*one)(uint64_t);
typedef int (*twelve)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

int main(int argc, char **argv) {
    int flags = RTLD_NOW | (argc > 1 && !strcmp(argv[1], "deepbind") ? RTLD_DEEPBIND : 0);
    CHECK(dlsym(RTLD_DEFAULT, "printf") == (void *)printf);
    CHECK(dlsym(RTLD_DEFAULT, "cudnnCreate") == NULL);
    CHECK(dlsym(RTLD_NEXT, "cuNoSuchFunction") == NULL);

    void *driver = dlopen("libcuda.so.1", flags);
    CHECK(driver);
    CHECK(dlsym(driver, "cuNoSuchFunction") == NULL);
    CHECK(dlvsym(driver, "cuMemFree_v2", "FAKE_2") == NULL);

    /* dlsym and dlvsym */
    one free_v2 = (one)dlsym(driver, "cuMemFree_v2");
    one free_v2_too = (one)dlvsym(driver, "cuMemFree_v2", "FAKE_1");
    one free_v1 = (one)dlsym(driver, "cuMemFree");
    CHECK(free_v2 && free_v2 == free_v2_too && free_v1 && free_v1 != free_v2);
    CHECK(free_v2(1) == 0 && free_v2_too(2) == 0 && free_v1(3) == 0);

    /* cuGetProcAddress: both ABIs, the empty probe, itself */
    get_v2 get = (get_v2)dlsym(driver, "cuGetProcAddress_v2");
    get_v1 old = (get_v1)dlsym(driver, "cuGetProcAddress");
    CHECK(get && old);
    void *found = NULL;
    int status = -1;
    CHECK(get("", &found, 0, 0, NULL) == 500);
    CHECK(get("cuNoSuchFunction", &found, 12000, 0, &status) == 500 && status == 1);
    CHECK(get("cuGetProcAddress", &found, 12000, 0, NULL) == 0 && found == (void *)get);
    CHECK(get("cuGetProcAddress", &found, 11030, 0, NULL) == 0);
    CHECK(get("cuMemFree", &found, 3020, 0, &status) == 0 && found == (void *)free_v2);
    CHECK(status == 0);
    CHECK(get("cuMemFree", &found, 2000, 0, NULL) == 0 && found == (void *)free_v1);
    CHECK(old("cuMemFree", &found, 11030, 0) == 0 && found == (void *)free_v2);

    /* The flag for per-thread default streams gives another hook. */
    one plain = NULL, per_thread = NULL;
    CHECK(get("cuStreamSynchronize", (void **)&plain, 7000, 0, NULL) == 0);
    CHECK(get("cuStreamSynchronize", (void **)&per_thread, 7000, 2, NULL) == 0);
    CHECK(plain && per_thread && plain != per_thread);
    CHECK(plain(11) == 0 && per_thread(12) == 0);

    /* Counted functions: every register and the stack arrive, as do floats and results. */
    twelve batch = (twelve)dlsym(driver, "cuFabricCpyBatchAsync");
    uint64_t *counted = dlsym(driver, "fake_counted");
    CHECK(batch && counted);
    for (int round = 0; round < 3; round++) {
        CHECK(batch(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 + round) == 17);
        for (int i = 0; i < 12; i++)
            CHECK(counted[i] == (uint64_t)(i + 1 + (i == 11 ? round : 0)));
    }
    int (*set_float)(void *, int, float) = dlsym(driver, "cuParamSetf");
    CHECK(set_float(&found, -5, 2.5f) == 18);
    CHECK(counted[1] == (uint64_t)-5 && *(double *)dlsym(driver, "fake_float") == 2.5);

    /* The driver's export tables are its own. */
    int (*table)(const void **, const void *) = dlsym(driver, "cuGetExportTable");
    const void *out = NULL;
    CHECK(table(&out, "id") == 0 && !strcmp(out, "id"));

    /* A function that the runtime does not know, both ways. */
    int (*zebra)(int) = dlsym(driver, "cuZebraStripe");
    CHECK(zebra && zebra(41) == 42);
    CHECK(get("cuZebraStripe", &found, 99000, 0, NULL) == 0 && found == (void *)zebra);
    CHECK(zebra(1) == 2);
    puts("all as expected");
    return 0;
}
