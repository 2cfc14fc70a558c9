/* One process exports physical memory as a file descriptor, sends it to another one and closes it,
 * as libraries for several GPUs do. The importer maps the memory and, unless the argument is `kept`,
 * sets it. `racy`: the exporter's own work on it is still in flight. `outsider`: the exporter is a
 * program that is not recorded.
 * Expected: kept and used clean, racy a WAW, outsider incomplete: whose memory is used cannot be
 * told. */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { DESCRIPTOR = 1, PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };

struct properties {
    unsigned kind, handles, location;
    int device;
    uint64_t security, flags;
};

struct access {
    unsigned location;
    int device;
    unsigned flags;
};

status cuMemCreate(uint64_t *handle, size_t bytes, const struct properties *wanted, uint64_t flags);
status cuMemGetAllocationGranularity(size_t *bytes, const struct properties *wanted, int option);
status cuMemExportToShareableHandle(void *made, uint64_t handle, int kind, uint64_t flags);
status cuMemImportFromShareableHandle(uint64_t *handle, void *given, int kind);
status cuMemAddressReserve(device_address *start, size_t bytes, size_t alignment, device_address wanted,
                           uint64_t flags);
status cuMemMap(device_address start, size_t bytes, size_t offset, uint64_t handle, uint64_t flags);
status cuMemSetAccess(device_address start, size_t bytes, const struct access *list, size_t count);
status cuMemUnmap(device_address start, size_t bytes);

static const struct properties wanted = {PINNED, DESCRIPTOR, ON_DEVICE, 0, 0, 0};

static device_address map(uint64_t memory, size_t bytes)
{
    static const struct access everything = {ON_DEVICE, 0, READ_WRITE};
    device_address start;
    must(cuMemAddressReserve(&start, bytes, 0, 0, 0));
    must(cuMemMap(start, bytes, 0, memory, 0));
    must(cuMemSetAccess(start, bytes, &everything, 1));
    return start;
}

/* A message of one byte that carries a file descriptor. */
union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

static void send_descriptor(int to, int descriptor)
{
    char byte = 0;
    union control control;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    if (sendmsg(to, &message, 0) != 1)
        exit(1);
}

static int receive_descriptor(int from)
{
    char byte;
    int descriptor;
    union control control;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(from, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL)
        exit(1);
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

/* `racy`: the memory is still being set when it is sent. */
static int export_memory(int to, int racy)
{
    char byte;
    size_t bytes;
    int descriptor;
    uint64_t memory;
    stream only;
    open_device();
    must(cuMemGetAllocationGranularity(&bytes, &wanted, 0));
    must(cuMemCreate(&memory, bytes, &wanted, 0));
    device_address start = map(memory, bytes);
    must(cuStreamCreate(&only, NON_BLOCKING));
    must(cuMemsetD8Async(start, 1, bytes, only));
    if (!racy)
        must(cuStreamSynchronize(only));
    must(cuMemExportToShareableHandle(&descriptor, memory, DESCRIPTOR, 0));
    send_descriptor(to, descriptor);
    close(descriptor);
    /* Until the importer is done. */
    return read(to, &byte, 1) < 0;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "kept";
    int pair[2], ended = 0;
    size_t bytes;
    uint64_t memory;
    stream only;
    if (strcmp(how, "exporter") == 0)
        return export_memory(atoi(arguments[2]), 0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    pid_t exporter = fork();
    if (exporter == 0) {
        close(pair[1]);
        if (strcmp(how, "outsider") != 0)
            return export_memory(pair[0], strcmp(how, "racy") == 0);
        char number[12];
        sprintf(number, "%d", pair[0]);
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", arguments[0], "exporter", number, NULL);
        return 1;
    }
    close(pair[0]);
    open_device();
    must(cuMemGetAllocationGranularity(&bytes, &wanted, 0));
    int descriptor = receive_descriptor(pair[1]);
    must(cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)descriptor, DESCRIPTOR));
    close(descriptor);
    device_address start = map(memory, bytes);
    if (strcmp(how, "kept") != 0) {
        must(cuStreamCreate(&only, NON_BLOCKING));
        must(cuMemsetD8Async(start, 2, bytes, only));
        must(cuStreamSynchronize(only));
    }
    must(cuMemUnmap(start, bytes));
    close(pair[1]);
    waitpid(exporter, &ended, 0);
    printf("imports_memory: the exporter ended with %d\n", ended);
    return 0;
}
