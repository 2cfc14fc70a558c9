/* Programs that do with signals, memory and processes what fences could stand in the way of:
 * `hostile CASE`. Each must print, and end, as it does without streamsan. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

static device_address device;
static volatile unsigned char *pinned;
static stream first;
static volatile unsigned char seen;

/* A fence stands around the pinned memory behind this. */
static void submit(void)
{
    must(cuMemcpyDtoHAsync_v2((void *)pinned, device, 16 * PAGE, first));
}

static void say(const char *words)
{
    if (write(1, words, strlen(words)) < 0)
        _exit(9);
}

static sigjmp_buf back;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    say(signal == SIGSEGV && info->si_addr == (void *)8 ? "handled\n" : "something else\n");
    siglongjmp(back, 1);
}

static void install(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    if (sigaction(SIGSEGV, &action, NULL) != 0)
        exit(1);
}

static void dereference(void)
{
    if (sigsetjmp(back, 1) == 0)
        seen = *(volatile unsigned char *)8;
}

static void handler_before(void)
{
    install(0);
    submit();
    seen = pinned[0];
    dereference();
    submit();
    seen = pinned[PAGE];
    dereference();
}

static void handler_after(void)
{
    submit();
    install(0);
    seen = pinned[0];
    dereference();
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    say(now.sa_sigaction == handler && (now.sa_flags & SA_SIGINFO) ? "kept\n" : "lost\n");
    if (signal(SIGSEGV, SIG_DFL) == SIG_ERR)
        exit(1);
    seen = pinned[PAGE];
    say("alive\n");
}

static void reset_hand(void)
{
    submit();
    install(SA_RESETHAND);
    seen = pinned[0];
    dereference();
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    say(now.sa_handler == SIG_DFL ? "reset\n" : "not reset\n");
    seen = *(volatile unsigned char *)8;
}

static void null_dereference(void)
{
    submit();
    seen = pinned[0];
    say("before\n");
    seen = *(volatile unsigned char *)8;
}

static void raised(void)
{
    submit();
    seen = pinned[0];
    say("before\n");
    raise(SIGSEGV);
}

static void small_stack(void)
{
    static char room[8192];
    stack_t stack = {.ss_sp = room, .ss_size = 2048}, now;
    if (sigaltstack(&stack, NULL) != 0)
        say("refused\n");
    submit();
    seen = pinned[0];
    sigaltstack(NULL, &now);
    say(now.ss_sp == (void *)room && now.ss_size == 2048 ? "shown\n" : "not shown\n");
}

static void *blocked_thread(void *unused)
{
    sigset_t all, now;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    seen = pinned[0];
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    say(sigismember(&now, SIGSEGV) ? "blocked\n" : "open\n");
    return unused;
}

static void blocked(void)
{
    pthread_t thread;
    submit();
    pthread_create(&thread, NULL, blocked_thread, NULL);
    pthread_join(thread, NULL);
}

static pthread_barrier_t together;

static void *touch(void *unused)
{
    pthread_barrier_wait(&together);
    for (int at = 0; at < 16; at++)
        seen = pinned[at * PAGE];
    return unused;
}

static void threads(void)
{
    enum { THREADS = 64 };
    pthread_t all[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    submit();
    for (int at = 0; at < THREADS; at++)
        pthread_create(&all[at], NULL, touch, NULL);
    for (int at = 0; at < THREADS; at++)
        pthread_join(all[at], NULL);
    say("joined\n");
}

static void forked(void)
{
    submit();
    pid_t child = fork();
    if (child == 0) {
        pinned[0] = 1;
        seen = pinned[PAGE];
        say("child\n");
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    seen = pinned[2 * PAGE];
    say(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "parent\n" : "the child has failed\n");
}

static void vforked(void)
{
    submit();
    pid_t child = vfork();
    if (child == 0) {
        seen = pinned[PAGE];
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    say(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "parent\n" : "the child has failed\n");
}

static void system_calls(void)
{
    int ends[2], sockets[2];
    char bytes[64] = "bytes";
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0)
        exit(1);
    for (int round = 0; round < 2; round++) {
        submit();
        printf("%d\n", (int)write(ends[1], (void *)pinned, 3 * PAGE));
        submit();
        printf("%d\n", (int)read(ends[0], (void *)(pinned + 100), 3 * PAGE));
        submit();
        printf("%d ", (int)send(sockets[0], bytes, sizeof bytes, 0));
        printf("%d\n", (int)recv(sockets[1], (void *)pinned, PAGE, 0));
        struct iovec parts[2] = {{(void *)pinned, 10}, {(void *)(pinned + 5 * PAGE), 10}};
        printf("%d ", (int)write(ends[1], bytes, 20));
        submit();
        printf("%d\n", (int)readv(ends[0], parts, 2));
        submit();
        FILE *file = fopen("/proc/self/cmdline", "r");
        printf("%d\n", (int)fread((void *)(pinned + PAGE), 1, 4, file));
        fclose(file);
        submit();
        printf("%d\n", fstat(0, (void *)(pinned + 2 * PAGE)));
    }
}

static void unmapped(void)
{
    unsigned char *own = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(cuMemHostRegister_v2(own, 16 * PAGE, 0));
    must(cuMemcpyHtoDAsync_v2(device, own, 16 * PAGE, first));
    must(cuCtxSynchronize());
    must(cuMemcpyHtoDAsync_v2(device, own, 16 * PAGE, first));
    must(cuMemHostUnregister(own));
    munmap(own, 16 * PAGE);
    unsigned char *again = mmap(own, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(again, 1, 16 * PAGE);
    say("mapped again\n");
}

static void protected(void)
{
    install(0);
    unsigned char *own = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(cuMemHostRegister_v2(own, 16 * PAGE, 0));
    must(cuMemcpyHtoDAsync_v2(device, own, 16 * PAGE, first));
    mprotect(own, PAGE, PROT_NONE);
    if (sigsetjmp(back, 1) == 0)
        seen = *(volatile unsigned char *)own;
    mprotect(own, PAGE, PROT_READ | PROT_WRITE);
    own[0] = 1;
    say("done\n");
}

static void freed(void)
{
    for (int round = 0; round < 20; round++) {
        unsigned char *made = (unsigned char *)pinned_memory(PAGE);
        must(cuMemcpyDtoHAsync_v2(made, device, PAGE, first));
        must(cuMemFreeHost(made));
        made = (unsigned char *)pinned_memory(PAGE);
        memset(made, 1, PAGE);
        must(cuMemcpyDtoHAsync_v2(made, device, PAGE, first));
        must(cuStreamSynchronize(first));
        must(cuMemFreeHost(made));
    }
    say("freed\n");
}

static void registered_again(void)
{
    unsigned char *own = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 3; round++) {
        must(cuMemHostRegister_v2(own, 16 * PAGE, 0));
        must(cuMemcpyDtoHAsync_v2(own, device, 16 * PAGE, first));
        must(cuMemHostUnregister(own));
    }
    printf("%d\n", own[5]);
}

static void pinned_down(void)
{
    submit();
    printf("%d\n", mlock((void *)pinned, PAGE));
    submit();
    printf("%d\n", madvise((void *)pinned, PAGE, MADV_NORMAL));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"handler_before", handler_before},
    {"handler_after", handler_after},
    {"reset_hand", reset_hand},
    {"null_dereference", null_dereference},
    {"raised", raised},
    {"small_stack", small_stack},
    {"blocked", blocked},
    {"threads", threads},
    {"forked", forked},
    {"vforked", vforked},
    {"system_calls", system_calls},
    {"unmapped", unmapped},
    {"protected", protected},
    {"freed", freed},
    {"registered_again", registered_again},
    {"pinned_down", pinned_down},
};

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    open_gpu();
    device = device_memory(1 << 20);
    pinned = pinned_memory(1 << 20);
    first = new_stream(NON_BLOCKING);
    must(cuMemsetD8Async(device, 5, 1 << 20, first));
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        if (strcmp(cases[at].name, arguments[1]) == 0) {
            cases[at].run();
            must(cuCtxSynchronize());
            say("end\n");
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}
