/* What the programs here need of libcufile's interface, declared by hand. */
#ifndef CUFILE_H
#define CUFILE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

typedef struct { int code, driver; } file_error;

struct file_request {
    unsigned mode;
    void *address;
    off_t file_offset, offset;
    size_t bytes;
    void *file;
    unsigned opcode; /* 0: read into memory, 1: write */
    void *cookie;
};

struct file_event {
    void *cookie;
    unsigned status; /* 16: complete */
    size_t moved;
};

ssize_t cuFileRead(void *file, void *base, size_t bytes, off_t at, off_t offset);
ssize_t cuFileWrite(void *file, const void *base, size_t bytes, off_t at, off_t offset);
file_error cuFileReadAsync(void *file, void *base, size_t *bytes, off_t *at, off_t *offset,
                           ssize_t *done, void *stream);
file_error cuFileWriteAsync(void *file, void *base, size_t *bytes, off_t *at, off_t *offset,
                            ssize_t *done, void *stream);
file_error cuFileBatchIOSetUp(void **batch, unsigned most);
file_error cuFileBatchIOSubmit(void *batch, unsigned count, struct file_request *requests,
                               unsigned flags);
file_error cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count,
                                  struct file_event *events, struct timespec *timeout);
void cuFileBatchIODestroy(void *batch);

#endif
