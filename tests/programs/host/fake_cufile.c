/* Stands for libcufile.so.0: says that it moved everything, and moves nothing. What counts here is
 * what the program asked for. Built as a library, not as a program. */
#include <stdlib.h>

#include "cufile.h"

static const file_error fine = {0, 0};

ssize_t cuFileRead(void *file, void *base, size_t bytes, off_t at, off_t offset)
{
    (void)file, (void)base, (void)at, (void)offset;
    return (ssize_t)bytes;
}

ssize_t cuFileWrite(void *file, const void *base, size_t bytes, off_t at, off_t offset)
{
    (void)file, (void)base, (void)at, (void)offset;
    return (ssize_t)bytes;
}

file_error cuFileReadAsync(void *file, void *base, size_t *bytes, off_t *at, off_t *offset,
                           ssize_t *done, void *stream)
{
    (void)file, (void)base, (void)at, (void)offset, (void)stream;
    *done = (ssize_t)*bytes;
    return fine;
}

file_error cuFileWriteAsync(void *file, void *base, size_t *bytes, off_t *at, off_t *offset,
                            ssize_t *done, void *stream)
{
    return cuFileReadAsync(file, base, bytes, at, offset, done, stream);
}

struct batch {
    unsigned count;
    void *cookies[16];
    size_t bytes[16];
};

file_error cuFileBatchIOSetUp(void **batch, unsigned most)
{
    (void)most;
    *batch = calloc(1, sizeof(struct batch));
    return fine;
}

file_error cuFileBatchIOSubmit(void *batch, unsigned count, struct file_request *requests,
                               unsigned flags)
{
    struct batch *kept = batch;
    (void)flags;
    for (unsigned i = 0; i < count && kept->count < 16; i++) {
        kept->cookies[kept->count] = requests[i].cookie;
        kept->bytes[kept->count++] = requests[i].bytes;
    }
    return fine;
}

/* Tells of one request at a time. */
file_error cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count,
                                  struct file_event *events, struct timespec *timeout)
{
    struct batch *kept = batch;
    (void)least, (void)timeout;
    *count = kept->count > 0;
    if (kept->count > 0) {
        kept->count--;
        events[0] = (struct file_event){kept->cookies[kept->count], 16, kept->bytes[kept->count]};
    }
    return fine;
}

void cuFileBatchIODestroy(void *batch)
{
    free(batch);
}
