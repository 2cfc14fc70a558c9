/* Calls of the driver from known places. Each function notes its own return address, which is what
   the stack recorded for the call must hold. Built without frame pointers. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

int cuMemFree_v2(unsigned long long p);

#define NOINLINE __attribute__((noinline, noclone))

static __thread uintptr_t chain[512];
static __thread int depth;
static volatile int sink;

#define ENTER (chain[depth++] = (uintptr_t)__builtin_return_address(0))
/* Keeps the call before it from being the function's last. */
#define LEAVE (depth--, sink++)

/* Object and return addresses, the innermost first, less the load bias. */
static void tell(unsigned long long argument) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    printf("%llu", argument);
    for (int i = depth; i-- > 0;) {
        Dl_info info;
        if (dladdr((void *)chain[i], &info))
            printf(" %lx", (unsigned long)(chain[i] - (uintptr_t)info.dli_fbase));
        else
            printf(" @%lx", (unsigned long)chain[i]);
    }
    printf("\n");
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}

/* The innermost frame of a recorded stack lies in this one. */
static NOINLINE void call(unsigned long long argument) {
    ENTER;
    tell(argument);
    cuMemFree_v2(argument);
    LEAVE;
}

static NOINLINE void middle(unsigned long long argument) {
    ENTER;
    call(argument);
    LEAVE;
}

/* A frame whose size is not known beforehand. */
static NOINLINE void variable(unsigned long long argument) {
    ENTER;
    volatile char *room = alloca(64 + argument * 16);
    room[0] = 1;
    middle(argument);
    LEAVE;
}

/* A frame that is aligned anew. */
static NOINLINE void aligned(unsigned long long argument) {
    ENTER;
    volatile char room[64] __attribute__((aligned(128)));
    room[0] = 1;
    variable(argument);
    LEAVE;
}

static NOINLINE void recurse(int levels, unsigned long long argument) {
    ENTER;
    if (levels > 0)
        recurse(levels - 1, argument);
    else
        call(argument);
    LEAVE;
}

static void *thread(void *argument) {
    ENTER;
    aligned((unsigned long long)argument);
    LEAVE;
    return NULL;
}

static ucontext_t outside, inside;
static void coroutine(void) {
    ENTER;
    middle(1);
    LEAVE;
    swapcontext(&inside, &outside);
}

static void *bare(void *argument) {
    cuMemFree_v2(1);
    return argument;
}

static void bare_coroutine(void) { bare(NULL); }

static void handler(int number) {
    (void)number;
    middle(1);
}

#ifdef __aarch64__
/* stp x29, x30, [sp, #-16]!; what follows; blr x1; ldp x29, x30, [sp], #16; ret: code without unwind
   information. The argument stays in x0. */
#define CODE(frame) {0xfd, 0x7b, 0xbf, 0xa9, frame, 0x20, 0x00, 0x3f, 0xd6, \
                     0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}
#define FRAME(a, b, c, d) a, b, c, d
/* mov x29, sp */
static const unsigned char with_frame[] = CODE(FRAME(0xfd, 0x03, 0x00, 0x91));
/* mov x29, xzr: its frame cannot be found. */
static const unsigned char without_frame[] = CODE(FRAME(0xfd, 0x03, 0x1f, 0xaa));
/* mov x29, #-16: its frame seems to be elsewhere. */
static const unsigned char wild_frame[] = CODE(FRAME(0xfd, 0x01, 0x80, 0x92));
#else
/* push rbp; mov rbp, rsp; call [rsi]; pop rbp; ret: code without unwind information. The argument
   stays in rdi. */
static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
/* push rbp; xor ebp, ebp; call [rsi]; pop rbp; ret: its frame cannot be found. */
static const unsigned char without_frame[] = {0x55, 0x31, 0xed, 0xff, 0xd6, 0x5d, 0xc3};
/* push rbp; mov rbp, -16; call [rsi]; pop rbp; ret: its frame seems to be elsewhere. */
static const unsigned char wild_frame[] = {0x55, 0x48, 0xc7, 0xc5, 0xf0, 0xff,
                                           0xff, 0xff, 0xff, 0xd6, 0x5d, 0xc3};
#endif

static NOINLINE void generated(const unsigned char *code, size_t bytes) {
    ENTER;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    memcpy(page, code, bytes);
    __builtin___clear_cache((char *)page, (char *)page + bytes);
    ((void (*)(unsigned long long, void (*)(unsigned long long)))page)(1, middle);
    LEAVE;
}

/* Calls through a library that is closed again; the next one takes its place. */
static NOINLINE void through(const char *path, unsigned long long argument) {
    ENTER;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void (*pass)(void (*)(unsigned long long), unsigned long long) = dlsym(library, "pass");
    pass(middle, argument);
    dlclose(library);
    LEAVE;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    if (!strcmp(what, "plain")) {
        for (int i = 0; i < 3; i++)
            aligned(1);
        middle(2);
    } else if (!strcmp(what, "threads")) {
        pthread_t ids[4];
        for (long i = 0; i < 4; i++)
            pthread_create(&ids[i], NULL, thread, (void *)(i + 1));
        for (int i = 0; i < 4; i++)
            pthread_join(ids[i], NULL);
    } else if (!strcmp(what, "deep")) {
        recurse(300, 1);
    } else if (!strcmp(what, "coroutine")) {
        static char stack[512 << 10] __attribute__((aligned(4096)));
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = sizeof stack;
        inside.uc_link = &outside;
        makecontext(&inside, coroutine, 0);
        swapcontext(&outside, &inside);
        middle(2);
    } else if (!strcmp(what, "signal")) {
        static char stack[512 << 10];
        stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&other, NULL);
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        middle(2);
    } else if (!strcmp(what, "little")) {
        pthread_attr_t least;
        pthread_attr_init(&least);
        long smallest = sysconf(_SC_THREAD_STACK_MIN);
        pthread_attr_setstacksize(&least, smallest < 32 << 10 ? 32 << 10 : smallest);
        pthread_t id;
        pthread_create(&id, &least, bare, NULL);
        pthread_join(id, NULL);
        size_t size = 32 << 10;
        char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack, 4096, PROT_NONE);
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = size;
        inside.uc_link = &outside;
        makecontext(&inside, bare_coroutine, 0);
        swapcontext(&outside, &inside);
        bare(NULL);
    } else if (!strcmp(what, "generated")) {
        generated(with_frame, sizeof with_frame);
    } else if (!strcmp(what, "frameless")) {
        generated(without_frame, sizeof without_frame);
    } else if (!strcmp(what, "wild")) {
        generated(wild_frame, sizeof wild_frame);
    } else if (!strcmp(what, "libraries")) {
        for (int i = 2; i < argc; i++)
            through(argv[i], i - 1);
    } else if (!strcmp(what, "fork")) {
        middle(1);
        if (fork() == 0) {
            middle(2);
            _exit(0);
        }
        wait(NULL);
    } else if (!strcmp(what, "again")) {
        for (int i = 0; i < 400; i++)
            if (i % 3)
                recurse(i % 40, 1 + i % 2);
            else
                aligned(1 + i % 5);
    } else if (!strcmp(what, "many")) {
        for (int i = 0; i < 1000; i++)
            recurse(i % 100, 1);
    }
    return 0;
}
