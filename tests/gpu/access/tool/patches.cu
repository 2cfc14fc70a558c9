// The device side of the tool: called before each access to global memory, marks its bytes.
//
// Compiled with `nvcc --fatbin --compile-as-tools-patch`. The signatures are those of NVIDIA's public
// Compute Sanitizer API (sanitizer_patching.h). A launch that is not measured has no log.

#include "log.h"

#include <sanitizer_patching.h>

namespace {

__device__ uint64_t slot_of(uint64_t line)
{
    // Sixteen neighbouring lines stay together.
    uint64_t group = (line >> 4) * 0x9e3779b97f4a7c15ull;
    return ((group >> 24) << 4) + (line & 15);
}

__device__ Line *find(Log *log, uint64_t line)
{
    uint64_t slot = slot_of(line);
    for (uint32_t probe = 0; probe < PROBES; ++probe) {
        Line *entry = log->lines + ((slot + probe) & log->line_mask);
        uint64_t key = *(volatile uint64_t *)&entry->key;
        if (key == 0)
            key = atomicCAS((unsigned long long *)&entry->key, 0ull, line + 1);
        if (key == 0 || key == line + 1)
            return entry;
    }
    return nullptr;
}

__device__ void mark(Log *log, uint64_t address, uint64_t size, Kind kind)
{
    while (size > 0) {
        uint32_t from = address & 127;
        uint32_t here = size < 128 - from ? (uint32_t)size : 128 - from;
        Line *line = find(log, address >> 7);
        if (line == nullptr) {
            atomicAdd(&log->lost, 1u);
        } else {
            for (uint32_t at = from; at < from + here;) {
                uint32_t bit = at & 31;
                uint32_t count = min(from + here - at, 32 - bit);
                uint32_t mask = (count == 32 ? ~0u : (1u << count) - 1) << bit;
                uint32_t *word = &line->bits[kind][at >> 5];
                if ((*(volatile uint32_t *)word & mask) != mask)
                    atomicOr(word, mask);
                at += count;
            }
        }
        address += here;
        size -= here;
    }
}

// Of instructions that a warp executes once, one thread speaks.
__device__ bool speaks()
{
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane == __ffs(__activemask()) - 1;
}

} // namespace

extern "C" __device__ SanitizerPatchResult on_access(
    void *data, uint64_t, void *address, uint32_t size, uint32_t flags, const void *)
{
    if (data == nullptr || (flags & SANITIZER_MEMORY_DEVICE_FLAG_PREFETCH))
        return SANITIZER_PATCH_SUCCESS;
    constexpr uint32_t BOTH = SANITIZER_MEMORY_DEVICE_FLAG_READ | SANITIZER_MEMORY_DEVICE_FLAG_WRITE;
    // Bit 8 (atomic that only writes) came after the first versions of the API.
    bool atomic = (flags & BOTH) == BOTH
        || (flags & (SANITIZER_MEMORY_DEVICE_FLAG_ATOMSYS | (1u << 8)));
    Kind kind = atomic ? ATOMIC : (flags & SANITIZER_MEMORY_DEVICE_FLAG_WRITE) ? WRITE : READ;
    mark((Log *)data, (uint64_t)address, size, kind);
    return SANITIZER_PATCH_SUCCESS;
}

extern "C" __device__ SanitizerPatchResult on_copy_async(
    void *data, uint64_t, void *source, uint32_t, uint32_t size, uint32_t zeros)
{
    if (data != nullptr && source != nullptr && zeros < size)
        mark((Log *)data, (uint64_t)source, size - zeros, READ);
    return SANITIZER_PATCH_SUCCESS;
}

extern "C" __device__ SanitizerPatchResult on_bulk_load(
    void *data, uint64_t, uint64_t source, uint32_t, uint32_t, uint32_t mask_and_size, uint32_t)
{
    if (data != nullptr && speaks())
        mark((Log *)data, source, (mask_and_size & 0xffff) * 16ull, READ);
    return SANITIZER_PATCH_SUCCESS;
}

extern "C" __device__ SanitizerPatchResult on_bulk_store(
    void *data, uint64_t, uint64_t target, uint32_t, uint32_t mask_and_size, uint32_t has_mask)
{
    // With a byte mask, the 16 bits above say which bytes of each block of 16 are written.
    if (data == nullptr || !speaks())
        return SANITIZER_PATCH_SUCCESS;
    uint32_t blocks = mask_and_size & 0xffff, bytes = mask_and_size >> 16;
    if (!has_mask || bytes == 0xffff) {
        mark((Log *)data, target, blocks * 16ull, WRITE);
        return SANITIZER_PATCH_SUCCESS;
    }
    for (uint32_t block = 0; block < blocks; ++block)
        for (uint32_t byte = 0; byte < 16; ++byte)
            if (bytes >> byte & 1)
                mark((Log *)data, target + block * 16ull + byte, 1, WRITE);
    return SANITIZER_PATCH_SUCCESS;
}

extern "C" __device__ SanitizerPatchResult on_bulk_reduction(
    void *data, uint64_t, uint64_t target, uint32_t, uint32_t blocks)
{
    if (data != nullptr && speaks())
        mark((Log *)data, target, blocks * 16ull, ATOMIC);
    return SANITIZER_PATCH_SUCCESS;
}

extern "C" __device__ SanitizerPatchResult on_tensor_load(
    void *data, uint64_t, uint64_t map, uint32_t, uint32_t, int32_t c0, int32_t c1, int32_t c2,
    int32_t c3, int32_t c4, uint32_t rank, uint32_t, uint32_t, uint32_t mode)
{
    if (data == nullptr || !speaks())
        return SANITIZER_PATCH_SUCCESS;
    Log *log = (Log *)data;
    uint32_t at = atomicAdd(&log->tensor_count, 1u);
    if (at < log->tensor_capacity)
        log->tensor[at] = TensorAccess{map, {c0, c1, c2, c3, c4}, rank, mode, 0};
    for (uint32_t probe = 0; probe < TENSOR_MAPS; ++probe) {
        TensorMap *entry = &log->maps[((map >> 6) + probe) % TENSOR_MAPS];
        uint64_t was = *(volatile uint64_t *)&entry->address;
        if (was == 0)
            was = atomicCAS((unsigned long long *)&entry->address, 0ull, map);
        if (was == map)
            break;
        if (was == 0) {
            for (int word = 0; word < 16; ++word)
                entry->words[word] = ((volatile uint64_t *)map)[word];
            break;
        }
    }
    return SANITIZER_PATCH_SUCCESS;
}
