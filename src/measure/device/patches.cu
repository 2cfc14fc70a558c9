// Called before each access to global memory of a patched kernel: marks the bytes in the launch's log.
//
// The functions have the signatures that NVIDIA's documentation of the Compute Sanitizer API gives for
// the instructions that they are put before ("Sanitizer Patching API", SanitizerCallbackMemoryAccess,
// ...MemcpyAsync, ...BulkCopyGlobalToShared, ...BulkCopySharedToGlobal, ...BulkReductionSharedToGlobal,
// ...TensorMemoryLoad; for one of them also the form that it had before); none of NVIDIA's headers is used. They return 0,
// which lets the kernel go on. A launch that is not measured has no log. patches.ptx is made from this
// file by make.sh.

#include "log.h"

namespace {

constexpr uint32_t FLAG_READ = 1, FLAG_WRITE = 2, FLAG_ATOMIC_OF_SYSTEM = 4, FLAG_PREFETCH = 8;
constexpr uint32_t FLAG_ATOMIC_WITHOUT_RESULT = 1 << 8;

__device__ __forceinline__ uint64_t mixed(uint64_t x)
{
    x ^= x >> 29;
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ x >> 32;
}

// The marks of a page for one mode, null where the table is full.
__device__ __forceinline__ uint32_t *page(Log *log, uint64_t key, uint32_t mode)
{
    Table &table = log->table;
    uint32_t mask = table.mask, at = (uint32_t)mixed(key);
    for (uint32_t probe = 0; probe < PROBES; ++probe, ++at) {
        unsigned long long *entry = (unsigned long long *)&table.keys[at & mask];
        uint64_t found = *(volatile unsigned long long *)entry;
        if (found == 0) {
            found = atomicCAS(entry, 0ull, (unsigned long long)key);
            if (found == 0) {
                // The drain has cleared the marks before it freed the entry.
                __threadfence();
                found = key;
            }
        }
        if (found == key)
            return table.marks + ((uint64_t)(at & mask) * MODES + mode) * WORDS;
    }
    return nullptr;
}

// The log that this grid marks in, null where a graph has more nodes than logs.
__device__ __forceinline__ Log *log_of(void *data)
{
    Log *log = (Log *)data;
    if (log == nullptr || log->nodes == 0)
        return log;
    unsigned long long grid;
    asm("mov.u64 %0, %%gridid;" : "=l"(grid));
    for (uint32_t probe = 0, at = (uint32_t)mixed(grid); probe < log->nodes; ++probe, ++at) {
        Log *own = log + (at & (log->nodes - 1));
        unsigned long long found = *(volatile unsigned long long *)&own->grid;
        if (found == 0)
            found = atomicCAS((unsigned long long *)&own->grid, 0ull, grid);
        if (found == 0 || found == grid)
            return own;
    }
    atomicAdd(&log->lost, 1u);
    return nullptr;
}

// Sets `count` bits from number `first` on, of sectors or of bytes.
__device__ __forceinline__ void set(Log *log, uint64_t kind, uint64_t first, uint64_t count, uint32_t mode)
{
    while (count != 0) {
        uint32_t at = first & ((1u << PAGE_BITS) - 1);
        uint32_t here = (1u << PAGE_BITS) - at;
        here = count < here ? (uint32_t)count : here;
        uint64_t key = USED | (uint64_t)log->id << ID_SHIFT | kind | (first >> PAGE_BITS & NUMBER_MASK);
        uint32_t *words = page(log, key, mode);
        if (words == nullptr) {
            atomicAdd(&log->lost, 1u);
        } else {
            for (uint32_t end = at + here; at < end;) {
                uint32_t bit = at & 31;
                uint32_t bits = end - at < 32 - bit ? end - at : 32 - bit;
                uint32_t mask = (bits == 32 ? ~0u : (1u << bits) - 1) << bit;
                uint32_t *word = &words[at >> 5];
                if ((*(volatile uint32_t *)word & mask) != mask)
                    atomicOr(word, mask);
                at += bits;
            }
        }
        first += here;
        count -= here;
    }
}

} // namespace

// Marks the bytes of a range: its whole sectors, and what lies before and behind them. Not inlined, and
// with a name of its own, so that the code is small and the text the same wherever it is compiled.
extern "C" __device__ __noinline__ void streamsan_mark(Log *log, uint64_t address, uint64_t size, uint32_t mode)
{
    uint64_t end = address + size;
    uint64_t from = (address + 31) >> SECTOR_BITS, to = end >> SECTOR_BITS;
    bool some = from < to;
    uint64_t first = address, until = some ? from << SECTOR_BITS : end, kind = OF_BYTES;
    for (uint32_t piece = 0; piece < 3; ++piece) {
        set(log, kind, first, until - first, mode);
        if (!some)
            return;
        kind = piece == 0 ? 0 : OF_BYTES;
        first = piece == 0 ? from : to << SECTOR_BITS;
        until = piece == 0 ? to : end;
    }
}

namespace {

// The same for the lanes that are here together, each with an access of the same mode and of at least
// one byte: those behind each other, or equal, are joined, and the first of them marks.
__device__ __forceinline__ void mark_together(Log *log, uint64_t address, uint32_t size, uint32_t mode)
{
    uint32_t lanes = __activemask(), lane, below;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    uint32_t before = lanes & below, source = before ? 31 - __clz(before) : lane;
    uint64_t end = address + size;
    uint64_t previous = __shfl_sync(lanes, address, source);
    uint64_t previous_end = __shfl_sync(lanes, end, source);
    bool same = address == previous && end == previous_end;
    bool first = before == 0 || (!same && address != previous_end);
    uint32_t firsts = __ballot_sync(lanes, first);
    uint32_t next = firsts & ~below & ~(1u << lane);
    uint32_t run = lanes & ~below & (next ? (next & (0u - next)) - 1 : ~0u);
    uint64_t last = __shfl_sync(lanes, end, 31 - __clz(run));
    if (first)
        streamsan_mark(log, address, last - address, mode);
}

// Whether this lane speaks for the lanes that are here together: for what a warp does once.
__device__ __forceinline__ bool speaks()
{
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane == __ffs(__activemask()) - 1;
}

} // namespace

extern "C" __device__ __noinline__ int streamsan_on_access(
    void *data, uint64_t, void *address, uint32_t size, uint32_t flags, const void *)
{
    Log *log = (flags & FLAG_PREFETCH) ? nullptr : log_of(data);
    if (log == nullptr)
        return 0;
    bool atomic = (flags & (FLAG_READ | FLAG_WRITE)) == (FLAG_READ | FLAG_WRITE)
        || (flags & (FLAG_ATOMIC_OF_SYSTEM | FLAG_ATOMIC_WITHOUT_RESULT));
    uint32_t mode = atomic ? ATOMIC : (flags & FLAG_WRITE) ? WRITE : READ;
    mark_together(log, (uint64_t)address, size, mode);
    return 0;
}

extern "C" __device__ __noinline__ int streamsan_on_copy_async(
    void *data, uint64_t, void *source, uint32_t, uint32_t size, uint32_t zeros)
{
    Log *log = log_of(data);
    if (log != nullptr && source != nullptr && zeros < size)
        mark_together(log, (uint64_t)source, size - zeros, READ);
    return 0;
}

// Libraries before 2026.4 do not tell how many bytes are filled with zeros instead of read.
extern "C" __device__ __noinline__ int streamsan_on_copy_async_before_2026_4(
    void *data, uint64_t, void *source, uint32_t, uint32_t size)
{
    Log *log = log_of(data);
    if (log == nullptr || source == nullptr)
        return 0;
    ((volatile Log *)log)->inexact = 1;
    if (size != 0)
        mark_together(log, (uint64_t)source, size, READ);
    return 0;
}

// An instruction that is asked for to learn whether the library knows it.
extern "C" __device__ __noinline__ int streamsan_on_other(void *, uint64_t) { return 0; }

extern "C" __device__ __noinline__ int streamsan_on_bulk_load(
    void *data, uint64_t, uint64_t source, uint32_t, uint32_t, uint32_t mask_and_blocks, uint32_t)
{
    Log *log = speaks() ? log_of(data) : nullptr;
    if (log != nullptr)
        streamsan_mark(log, source, (mask_and_blocks & 0xffff) * 16ull, READ);
    return 0;
}

extern "C" __device__ __noinline__ int streamsan_on_bulk_store(
    void *data, uint64_t, uint64_t target, uint32_t, uint32_t mask_and_blocks, uint32_t has_mask)
{
    Log *log = speaks() ? log_of(data) : nullptr;
    if (log == nullptr)
        return 0;
    // With a byte mask, the 16 bits above say which bytes of each block of 16 are written.
    uint32_t blocks = mask_and_blocks & 0xffff, bytes = mask_and_blocks >> 16;
    if (!has_mask || bytes == 0xffff) {
        streamsan_mark(log, target, blocks * 16ull, WRITE);
        return 0;
    }
    for (uint32_t at = 0; at < blocks * 16; ++at)
        if (bytes >> (at & 15) & 1)
            streamsan_mark(log, target + at, 1, WRITE);
    return 0;
}

extern "C" __device__ __noinline__ int streamsan_on_bulk_reduction(
    void *data, uint64_t, uint64_t target, uint32_t, uint32_t blocks)
{
    Log *log = speaks() ? log_of(data) : nullptr;
    if (log != nullptr)
        streamsan_mark(log, target, blocks * 16ull, ATOMIC);
    return 0;
}

extern "C" __device__ __noinline__ int streamsan_on_tensor_load(
    void *data, uint64_t, uint64_t map, uint32_t, uint32_t, int32_t c0, int32_t c1, int32_t c2,
    int32_t c3, int32_t c4, uint32_t rank, uint32_t, uint32_t arguments, uint32_t mode)
{
    Log *log = speaks() ? log_of(data) : nullptr;
    if (log == nullptr)
        return 0;
    int32_t coordinates[5] = {c0, c1, c2, c3, c4};
    // Coordinates beyond the rank mean nothing, and the multicast mask changes no byte.
    uint64_t hash = (uint64_t)rank << 32 | mode << 16 | (arguments & 0xffff);
    for (uint32_t at = 0; at < 5; ++at)
        hash = mixed(hash ^ (at < rank ? (uint32_t)coordinates[at] : 0u)) + at;
    volatile uint64_t *contents = (volatile uint64_t *)map;
    for (uint32_t word = 0; word < 16; ++word)
        hash = mixed(hash + contents[word]);
    uint64_t key = USED | (uint64_t)log->id << ID_SHIFT | (hash & ((1ull << ID_SHIFT) - 1));
    // The place adds bits to the key that it does not hold: two loads are taken for one by a chance of
    // less than one in 2^55 for each pair.
    uint32_t at = (uint32_t)mixed(hash + log->id);
    for (uint32_t probe = 0; probe < PROBES; ++probe, ++at) {
        TensorLoad *load = log->table.loads + (at & log->table.load_mask);
        uint64_t found = *(volatile uint64_t *)&load->key;
        if (found == 0)
            found = atomicCAS((unsigned long long *)&load->key, 0ull, (unsigned long long)key);
        if (found == key)
            return 0;
        if (found != 0)
            continue;
        for (uint32_t axis = 0; axis < 5; ++axis)
            load->coordinates[axis] = coordinates[axis];
        load->rank = rank;
        load->mode = mode;
        load->arguments = arguments & 0xffff;
        for (uint32_t word = 0; word < 16; ++word)
            load->map[word] = contents[word];
        return 0;
    }
    atomicAdd(&log->lost_loads, 1u);
    return 0;
}
