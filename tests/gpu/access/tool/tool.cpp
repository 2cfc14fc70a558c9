// The host side of the tool: measures which bytes each kernel launch of a process touches.
//
// Injected with CUDA_INJECTION64_PATH; uses NVIDIA's public Compute Sanitizer API. Every module is
// patched; a measured launch gets an empty log, is waited for, and becomes one line of JSON. What the
// patches cannot see (stores through tensor maps, reductions in their way, textures, surfaces,
// multimem) is caught in part by comparing device memory before and after: `unseen` lists changed bytes
// that no patch reported. Environment:
//   ACCESS_LOG        the log; %p becomes the process id (required)
//   ACCESS_LAUNCHES   measured launches a kernel name (default 3), fourfold for other grids and blocks
//   ACCESS_LINES      room for touched lines of 128 bytes (default 1048576; a power of two)
//   ACCESS_SNAPSHOT   most MiB of device memory that are compared before and after (default 256)
//   ACCESS_TENSOR=0   leaves tensor loads alone
//   ACCESS_UNRESOLVED=1  writes down the tensor loads that could not be resolved, and their maps
//   ACCESS_MODULES    a folder that gets the machine code of every module loaded; each measured launch
//                     then tells its code, its parameters and the allocations, so that conclusions can
//                     be checked again without a GPU (replay.rs)

#include "measure.h"
#include "output.h"
#include "tensor.h"

#include <sanitizer.h>

#include <cstring>

namespace {

Tool &tool()
{
    static Tool *the_tool = new Tool; // outlives the exit handlers of the program
    return *the_tool;
}

// The parameters of cuTensorMapEncodeTiled, in its order.
struct EncodeTiled {
    CUtensorMap *map;
    CUtensorMapDataType type;
    cuuint32_t rank;
    void *address;
    const cuuint64_t *sizes;
    const cuuint64_t *strides; // of dimensions 1 and up
    const cuuint32_t *box;
    const cuuint32_t *steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

// Reads a map back that the driver has just made.
void encoded(const Sanitizer_CallbackData &data)
{
    if (data.callbackSite != SANITIZER_API_EXIT || data.functionParams == nullptr
        || data.functionReturnValue == nullptr || *(const CUresult *)data.functionReturnValue != 0)
        return;
    const EncodeTiled &call = *(const EncodeTiled *)data.functionParams;
    TensorMapFields::Contents words;
    memcpy(words.data(), call.map, sizeof words);
    TensorMapFields fields;
    if (!fields.read(words))
        return; // such loads stay unresolved
    bool same = fields.address == (uint64_t)call.address && fields.rank == call.rank;
    for (uint32_t at = 0; same && at < call.rank; ++at)
        same = fields.sizes[at] == call.sizes[at] && fields.box[at] == call.box[at]
            && fields.steps[at] == call.steps[at]
            && (at == 0 || fields.strides[at] == call.strides[at - 1]);
    if (!same)
        complain("a tensor map is not what was read from it", SANITIZER_ERROR_UNKNOWN);
}

// The parameters of cuLaunchKernel and, but for `extra`, of cuLaunchCooperativeKernel.
struct LaunchKernel {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **values;
    void **extra;
};

// The parameters of cuLaunchKernelEx.
struct LaunchKernelEx {
    const CUlaunchConfig *config;
    CUfunction function;
    void **values;
    void **extra;
};

// Notes the parameters of a launch for the time of its call.
void launching(Sanitizer_CallbackId id, const Sanitizer_CallbackData &data)
{
    given = Given{};
    if (data.callbackSite != SANITIZER_API_ENTER || data.functionParams == nullptr)
        return;
    switch (id) {
    case SANITIZER_CBID_DRIVER_API_cuLaunchKernel:
    case SANITIZER_CBID_DRIVER_API_cuLaunchKernel_ptsz: {
        auto &call = *(const LaunchKernel *)data.functionParams;
        given = Given{call.values, call.extra};
        break;
    }
    case SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx:
    case SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx_ptsz: {
        auto &call = *(const LaunchKernelEx *)data.functionParams;
        given = Given{call.values, call.extra};
        break;
    }
    default:
        given = Given{((const LaunchKernel *)data.functionParams)->values, nullptr};
    }
}

constexpr Sanitizer_CallbackId LAUNCHES[] = {
    SANITIZER_CBID_DRIVER_API_cuLaunchKernel,
    SANITIZER_CBID_DRIVER_API_cuLaunchKernel_ptsz,
    SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx,
    SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx_ptsz,
    SANITIZER_CBID_DRIVER_API_cuLaunchCooperativeKernel,
    SANITIZER_CBID_DRIVER_API_cuLaunchCooperativeKernel_ptsz,
};

void SANITIZERAPI callback(void *, Sanitizer_CallbackDomain domain, Sanitizer_CallbackId id,
                           const void *data)
{
    switch (domain) {
    case SANITIZER_CB_DOMAIN_RESOURCE:
        if (id == SANITIZER_CBID_RESOURCE_MODULE_LOADED)
            tool().module_loaded(*(const Sanitizer_ResourceModuleData *)data);
        else if (id == SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_ALLOC
                 || id == SANITIZER_CBID_RESOURCE_MEMORY_ALLOC_ASYNC)
            tool().allocated(*(const Sanitizer_ResourceMemoryData *)data, true);
        else if (id == SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_FREE
                 || id == SANITIZER_CBID_RESOURCE_MEMORY_FREE_ASYNC)
            tool().allocated(*(const Sanitizer_ResourceMemoryData *)data, false);
        break;
    case SANITIZER_CB_DOMAIN_LAUNCH:
        if (id == SANITIZER_CBID_LAUNCH_BEGIN)
            tool().begin(*(const Sanitizer_LaunchData *)data);
        else if (id == SANITIZER_CBID_LAUNCH_END)
            tool().end(*(const Sanitizer_LaunchData *)data);
        break;
    case SANITIZER_CB_DOMAIN_DRIVER_API:
        if (id == SANITIZER_CBID_DRIVER_API_cuTensorMapEncodeTiled)
            encoded(*(const Sanitizer_CallbackData *)data);
        else
            launching(id, *(const Sanitizer_CallbackData *)data);
        break;
    default:
        break;
    }
}

} // namespace

// What the driver calls in the library that CUDA_INJECTION64_PATH names.
extern "C" __attribute__((visibility("default"))) int InitializeInjection()
{
    output = open_output();
    if (output == nullptr)
        return 0;
    Sanitizer_SubscriberHandle subscriber;
    if (!ok(sanitizerSubscribe(&subscriber, callback, nullptr), "sanitizerSubscribe"))
        return 0;
    ok(sanitizerEnableDomain(1, subscriber, SANITIZER_CB_DOMAIN_RESOURCE), "resources");
    ok(sanitizerEnableDomain(1, subscriber, SANITIZER_CB_DOMAIN_LAUNCH), "launches");
    ok(sanitizerEnableCallback(1, subscriber, SANITIZER_CB_DOMAIN_DRIVER_API,
                               SANITIZER_CBID_DRIVER_API_cuTensorMapEncodeTiled),
       "cuTensorMapEncodeTiled");
    if (getenv("ACCESS_MODULES"))
        for (Sanitizer_CallbackId id : LAUNCHES)
            ok(sanitizerEnableCallback(1, subscriber, SANITIZER_CB_DOMAIN_DRIVER_API, id), "launch calls");
    fprintf(output, "{\"pid\":%d,\"per_name\":%lu}\n", getpid(),
            (unsigned long)number("ACCESS_LAUNCHES", 3));
    fflush(output);
    return 1;
}
