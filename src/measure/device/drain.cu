// Takes the marks of launches that have ended out of the table: one launch of this kernel for any
// number of them, in a stream of its own. Ordinary code, loaded by the driver; drain.ptx is made from
// this file by make.sh.

#include "log.h"

// The marks of one page for one mode. Most pages are marked alike throughout, and those are one word.
struct Record {
    uint64_t key;
    uint32_t mode;  // and, from bit 8 on, 1 + the number of its raw marks, 0 where every word is `word`
    uint32_t word;
};
static_assert(sizeof(Record) == 16);

// In device memory; what was counted beyond a capacity is still in the table.
struct Counters {
    uint32_t records, raws, loads, left;
};

// What a log has counted, and the grid that has taken it.
struct Loss {
    uint64_t grid;
    uint32_t lost, lost_loads, inexact, padding;
};
static_assert(sizeof(Loss) == 24);

struct Job {
    Table table;
    Log *logs;
    const uint32_t *ended;  // a bit for each launch
    const uint32_t *ids;    // their numbers
    uint32_t id_count;
    uint32_t record_capacity, raw_capacity, load_capacity;
    Counters *counters;
    // Page-locked memory of the host:
    Record *records;
    uint32_t *raws; // WORDS each
    TensorLoad *loads;
    Loss *losses; // for each of `ids`
};

__device__ static bool has_ended(const Job &job, uint64_t key)
{
    uint32_t id = (uint32_t)(key >> ID_SHIFT) & ID_MASK;
    return (key & USED) && (job.ended[id >> 5] >> (id & 31) & 1);
}

// One warp: gives the page's marks out and frees the entry, or leaves it where there is no room.
__device__ static void take(const Job &job, uint32_t entry, uint64_t key, uint32_t lane)
{
    uint32_t *marks = job.table.marks + (uint64_t)entry * MODES * WORDS;
    uint32_t words[MODES][WORDS / 32];
    uint32_t kind[MODES], first[MODES]; // 0 nothing, 1 alike, 2 raw
    uint32_t records = 0, raws = 0;
    for (uint32_t mode = 0; mode < MODES; ++mode) {
        bool alike = true, some = false;
        for (uint32_t at = 0; at < WORDS / 32; ++at)
            words[mode][at] = __ldcg(&marks[mode * WORDS + at * 32 + lane]);
        first[mode] = __shfl_sync(~0u, words[mode][0], 0);
        for (uint32_t at = 0; at < WORDS / 32; ++at) {
            alike = alike && words[mode][at] == first[mode];
            some = some || words[mode][at] != 0;
        }
        some = __any_sync(~0u, some);
        alike = __all_sync(~0u, alike);
        kind[mode] = !some ? 0 : alike ? 1 : 2;
        records += some;
        raws += some && !alike;
    }
    // Room is taken as a whole or not at all: both counters only grow, so a late check is enough.
    uint32_t record = 0, raw = 0;
    if (lane == 0) {
        record = atomicAdd(&job.counters->records, records);
        raw = atomicAdd(&job.counters->raws, raws);
    }
    record = __shfl_sync(~0u, record, 0);
    raw = __shfl_sync(~0u, raw, 0);
    bool fits = record + records <= job.record_capacity && raw + raws <= job.raw_capacity;
    if (!fits) {
        // What was reserved inside the capacities is filled with records that say nothing.
        for (uint32_t at = record + lane; at < record + records && at < job.record_capacity; at += 32)
            job.records[at] = Record{0, 0, 0};
        if (lane == 0)
            atomicAdd(&job.counters->left, 1u);
        return;
    }
    for (uint32_t mode = 0; mode < MODES; ++mode) {
        if (kind[mode] == 0)
            continue;
        if (kind[mode] == 2)
            for (uint32_t at = 0; at < WORDS / 32; ++at)
                job.raws[(uint64_t)raw * WORDS + at * 32 + lane] = words[mode][at];
        if (lane == 0)
            job.records[record] = Record{key, mode | (kind[mode] == 2 ? raw + 1 : 0) << 8, first[mode]};
        record += 1;
        raw += kind[mode] == 2;
        for (uint32_t at = 0; at < WORDS / 32; ++at)
            __stcg(&marks[mode * WORDS + at * 32 + lane], 0u);
    }
    __threadfence();
    __syncwarp();
    if (lane == 0)
        __stcg((unsigned long long *)&job.table.keys[entry], 0ull);
}

extern "C" __global__ void __launch_bounds__(256) streamsan_drain(Job job)
{
    uint32_t lane = threadIdx.x & 31;
    uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    uint32_t warps = gridDim.x * blockDim.x >> 5;
    for (uint64_t base = (uint64_t)warp * 32; base <= job.table.mask; base += (uint64_t)warps * 32) {
        uint64_t key = __ldcg((unsigned long long *)&job.table.keys[base + lane]);
        uint32_t found = __ballot_sync(~0u, has_ended(job, key));
        while (found != 0) {
            uint32_t from = __ffs(found) - 1;
            found &= found - 1;
            take(job, (uint32_t)base + from, __shfl_sync(~0u, key, from), lane);
        }
    }
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (uint32_t at = thread; at <= job.table.load_mask; at += threads) {
        TensorLoad *load = job.table.loads + at;
        uint64_t key = __ldcg((unsigned long long *)&load->key);
        if (!has_ended(job, key))
            continue;
        uint32_t place = atomicAdd(&job.counters->loads, 1u);
        if (place >= job.load_capacity) {
            atomicAdd(&job.counters->left, 1u);
            continue;
        }
        const uint64_t *from = (const uint64_t *)load;
        uint64_t *to = (uint64_t *)(job.loads + place);
        for (uint32_t word = 0; word < sizeof(TensorLoad) / 8; ++word)
            to[word] = __ldcg((const unsigned long long *)from + word);
        __threadfence();
        __stcg((unsigned long long *)&load->key, 0ull);
    }
    for (uint32_t at = thread; at < job.id_count; at += threads) {
        Log *log = job.logs + job.ids[at];
        job.losses[at] = Loss{log->grid, log->lost, log->lost_loads, log->inexact, 0};
        log->lost = log->lost_loads = log->inexact = 0;
        log->grid = 0;
    }
}
