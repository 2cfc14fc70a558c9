/* A buffer is sent in a group, by functions found with dlsym. The group's stream waits for the
 * memset of the buffer behind ncclSend. racy: behind the group's end too, which is too late. One
 * RAW. */
#include <dlfcn.h>

#include "gpu.h"
#include "nccl.h"

typedef struct event_object *event;
status cuEventCreate(event *made, unsigned flags);
status cuEventRecord(event recorded, stream in);
status cuStreamWaitEvent(stream waiting, event awaited, unsigned flags);

static void *find(const char *name)
{
    static void *library;
    if (library == NULL)
        library = dlopen("libnccl.so.2", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (found == NULL)
        exit(1);
    return found;
}

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    int (*start)(void), (*end)(void);
    int (*send)(const void *, size_t, int, int, void *, void *);
    int (*receive)(void *, size_t, int, int, void *, void *);
    open_gpu();
    device_address sent = device_memory(), received = device_memory();
    stream filling = new_stream(), talking = new_stream();
    event filled;
    *(void **)&start = find("ncclGroupStart");
    *(void **)&end = find("ncclGroupEnd");
    *(void **)&send = find("ncclSend");
    *(void **)&receive = find("ncclRecv");
    must(cuEventCreate(&filled, 0));
    must(cuMemsetD8Async(sent, 1, BUFFER_BYTES, filling));
    must(cuEventRecord(filled, filling));
    int result = start();
    result |= send((void *)sent, BUFFER_BYTES, NCCL_INT8, 1, NULL, talking);
    result |= receive((void *)received, BUFFER_BYTES, NCCL_INT8, 1, NULL, talking);
    if (!racy)
        must(cuStreamWaitEvent(talking, filled, 0));
    result |= end();
    if (racy)
        must(cuStreamWaitEvent(talking, filled, 0));
    must(cuCtxSynchronize());
    printf("nccl_group: done\n");
    return result;
}
