/* Programs that do with signals, memory and processes what fences could stand in the way of:
 * `hostile CASE`. Each must print, and end, as it does without streamsan. */
#include "common.h"

#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static void numbered_calls(void)
{
    int ends[2], size = sizeof(int), kind;
    if (pipe(ends) != 0)
        exit(1);
    submit();
    printf("%ld\n", syscall(SYS_write, ends[1], pinned, 3 * PAGE));
    submit();
    printf("%ld\n", syscall(SYS_read, ends[0], pinned + 100, 3 * PAGE));
    struct iovec part = {(void *)pinned, 10};
    submit();
    printf("%ld\n", syscall(SYS_writev, ends[1], &part, 1));
    submit();
    printf("%d\n", ioctl(ends[0], FIONREAD, pinned));
    submit();
    printf("%ld\n", syscall(SYS_ioctl, ends[0], FIONREAD, pinned + PAGE));
    submit();
    printf("%d\n", stat("/", (void *)(pinned + PAGE)));
    submit();
    printf("%d\n", fstatat(AT_FDCWD, "/", (void *)(pinned + PAGE), 0));
    submit();
    printf("%d\n", readlink("/proc/self/exe", (void *)pinned, 1) == 1);
    submit();
    printf("%d\n", getcwd((void *)pinned, 2 * PAGE) != NULL);
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        exit(1);
    submit();
    printf("%d\n", getsockopt(sockets[0], SOL_SOCKET, SO_TYPE, (void *)pinned, (socklen_t *)&size));
    kind = *(int *)pinned;
    printf("%d\n", kind == SOCK_STREAM);
    submit();
    printf("%ld\n", syscall(SYS_mlock, pinned, PAGE));
    submit();
    FILE *file = fopen("/proc/self/stat", "r");
    char *line = (char *)pinned;
    size_t room = 16 * PAGE;
    printf("%d\n", getline(&line, &room, file) > 0 && line == (char *)pinned);
    fclose(file);
}

/* Memory in which a copy runs is registered for a network card: its pages are pinned. */
static void registered_by_verbs(void)
{
    void *library = dlopen(VERBS, RTLD_NOW);
    void *(*found)(void *, void *, size_t, int) =
        library ? (void *(*)(void *, void *, size_t, int))dlsym(library, "ibv_reg_mr") : NULL;
    if (!found)
        exit(1);
    submit();
    say(found(NULL, (void *)pinned, 16 * PAGE, 0) ? "registered\n" : "refused\n");
}

static void asynchronous(void)
{
    int file = open("/proc/self/exe", O_RDONLY);
    for (int round = 0; round < 2; round++) {
        struct aiocb request = {.aio_fildes = file, .aio_buf = (void *)(pinned + 100), .aio_nbytes = 3 * PAGE};
        const struct aiocb *list[] = {&request};
        submit();
        printf("%d\n", aio_read(&request));
        /* A fence beside a request in progress must not make it fail. */
        submit();
        while (aio_error(&request) == EINPROGRESS)
            aio_suspend(list, 1, NULL);
        printf("%d\n", (int)aio_return(&request));
    }
}

static int ends_of_pipe[2];
static pid_t reader;

static void *read_slowly(void *unused)
{
    __atomic_store_n(&reader, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    printf("%d\n", (int)read(ends_of_pipe[0], (void *)(pinned + 100), 64));
    return unused;
}

/* A thread waits for bytes beside those of a copy that is submitted meanwhile. */
static void waiting_read(void)
{
    pthread_t thread;
    char path[64], state[16] = "";
    if (pipe(ends_of_pipe) != 0)
        exit(1);
    pthread_create(&thread, NULL, read_slowly, NULL);
    while (!__atomic_load_n(&reader, __ATOMIC_SEQ_CST))
        sched_yield();
    /* Until it is inside the system call, whose number is 0. */
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", reader);
    while (strncmp(state, "0 ", 2) != 0) {
        int file = open(path, O_RDONLY);
        if (file < 0 || read(file, state, sizeof state) < 0)
            exit(1);
        close(file);
    }
    must(cuMemcpyDtoHAsync_v2((void *)pinned, device, 64, first));
    char bytes[64] = "bytes";
    if (write(ends_of_pipe[1], bytes, sizeof bytes) != sizeof bytes)
        exit(1);
    pthread_join(thread, NULL);
}

/* A ring of the kernel fills what lies beside the bytes of a copy. */
static void ring_beside(void)
{
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) {
        say("there is no io_uring here\n");
        return;
    }
    size_t bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    size_t answers = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    char *queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *done = mmap(NULL, answers, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, parameters.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE,
                                      MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || done == MAP_FAILED || entry == MAP_FAILED)
        exit(1);
    must(cuMemcpyDtoHAsync_v2((void *)pinned, device, 64, first));
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_READ;
    entry->fd = open("/proc/self/exe", O_RDONLY);
    entry->addr = (uint64_t)(pinned + 100);
    entry->len = 200;
    *(unsigned *)(queue + parameters.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(queue + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    printf("%d\n", (int)syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    printf("%d\n", ((struct io_uring_cqe *)(done + parameters.cq_off.cqes))->res);
}

/* A copy of the process by the system call alone: nobody is told of it. */
static void bare_clone(void)
{
    submit();
    long child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        pinned[0] = 1;
        seen = pinned[PAGE];
        say("child\n");
        syscall(SYS_exit_group, 3);
    }
    int status;
    waitpid((pid_t)child, &status, 0);
    seen = pinned[2 * PAGE];
    say(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "parent\n" : "the child has failed\n");
}

/* As many mappings as a process may have: no page can be protected by itself. */
static void many_mappings(void)
{
    size_t pages = 1 << 17;
    char *start = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t at = 1;
    while (at < pages && mprotect(start + at * PAGE, PAGE, PROT_READ) == 0)
        at += 2;
    say(at < pages && errno == ENOMEM ? "no more mappings\n" : "there are more mappings\n");
    submit();
    seen = pinned[PAGE];
    submit();
    pinned[PAGE] = 1;
    must(cuStreamSynchronize(first));
    munmap(start, pages * PAGE);
    submit();
    seen = pinned[PAGE];
}

/* The signal is taken over by the system call alone: what is submitted from then on is not fenced. */
static void taken_over(void)
{
    unsigned long nothing[4] = {0};
    submit();
    must(cuStreamSynchronize(first));
    if (syscall(SYS_rt_sigaction, SIGSEGV, nothing, NULL, 8) != 0)
        exit(1);
    /* Whose the signal is, is looked up once a millisecond. */
    usleep(5000);
    submit();
    seen = pinned[0];
    say("alive\n");
}

static void killed(void)
{
    submit();
    seen = pinned[0];
    submit();
    say("before\n");
    kill(getpid(), SIGKILL);
}

/* The simulated driver reserves far more addresses than a disk has room for. */
static void leave_large_mappings_out(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char line[512];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && end - start > (64 << 20))
            madvise((void *)start, end - start, MADV_DONTDUMP);
    madvise((void *)pinned, 16 * PAGE, MADV_DODUMP);
}

/* Leaves a core in which what a fence closes can be read. */
static void core(void)
{
    leave_large_mappings_out();
    struct rlimit most;
    getrlimit(RLIMIT_CORE, &most);
    most.rlim_cur = most.rlim_max < 256 << 20 ? most.rlim_max : 256 << 20;
    setrlimit(RLIMIT_CORE, &most);
    for (int at = 0; at < 64; at++)
        pinned[8 * PAGE + at] = (unsigned char)(at * 37 + 11);
    submit();
    seen = pinned[0];
    submit();
    say("before\n");
    seen = *(volatile unsigned char *)8;
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
    {"numbered_calls", numbered_calls},
    {"registered_by_verbs", registered_by_verbs},
    {"asynchronous", asynchronous},
    {"waiting_read", waiting_read},
    {"ring_beside", ring_beside},
    {"bare_clone", bare_clone},
    {"many_mappings", many_mappings},
    {"taken_over", taken_over},
    {"killed", killed},
    {"core", core},
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
