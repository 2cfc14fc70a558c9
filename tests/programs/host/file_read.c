/* A file is read into device memory that a memset may still fill. racy: not waited for. One WAW;
 * the write of the result to the file waits in both. */
#include "cufile.h"
#include "gpu.h"

int main(int count, char **arguments)
{
    int racy = is_racy(count, arguments);
    open_gpu();
    device_address buffer = device_memory();
    stream filling = new_stream();
    must(cuMemsetD8Async(buffer, 1, BUFFER_BYTES, filling));
    if (!racy)
        must(cuStreamSynchronize(filling));
    if (cuFileRead(NULL, (void *)buffer, 1024, 0, 512) != 1024)
        return 1;
    must(cuStreamSynchronize(filling));
    if (cuFileWrite(NULL, (void *)buffer, BUFFER_BYTES, 0, 0) != BUFFER_BYTES)
        return 1;
    printf("file_read: done\n");
    return 0;
}
