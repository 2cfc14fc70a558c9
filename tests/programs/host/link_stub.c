/* Something to link with where no libcuda.so.1 is installed; see ../c/link_stub.c. */
#include "../c/link_stub.c"
STUB(cuMemAllocHost_v2)
STUB(cuMemcpyDtoHAsync_v2)
STUB(cuMemcpyDtoDAsync_v2)
STUB(cuEventCreate)
STUB(cuEventDestroy_v2)
STUB(cuEventRecord)
STUB(cuStreamWaitEvent)
