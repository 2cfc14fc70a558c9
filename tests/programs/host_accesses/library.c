/* Stands for a communication library that allocates page-locked memory for itself. */
#include <stddef.h>

int cuMemAllocHost_v2(void **start, size_t bytes);

void *memory_of_the_library(size_t bytes);

void *memory_of_the_library(size_t bytes)
{
    void *start = NULL;
    return cuMemAllocHost_v2(&start, bytes) == 0 ? start : NULL;
}
