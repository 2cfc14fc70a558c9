// What patched kernels write and the drain reads: the bytes that launches touched, of all launches of
// a context in one table. src/measure/src/device.rs has the same structures.
//
// Memory is divided into pages of two kinds: of 8,192 sectors of 32 bytes, and of 8,192 bytes. A page
// that a launch touches takes one entry of the table: a key, and 8,192 bits for each mode. A sector
// that is touched whole by one warp is one bit of a sector page, everything else bits of byte pages.
// The table is found by open addressing with the launch's number in the key, so that nothing has to be
// known of allocations and the drain frees entries one by one: a hole in a probe sequence only makes a
// second entry for the same page, and both are drained. What finds no room is counted, never dropped
// silently.
#pragma once

#include <stdint.h>

enum Mode : uint32_t { READ, WRITE, ATOMIC, MODES };

// Bits of a page, as a power of two.
constexpr uint32_t PAGE_BITS = 13;
constexpr uint32_t SECTOR_BITS = 5;
constexpr uint32_t WORDS = 1u << (PAGE_BITS - 5);
constexpr uint32_t PROBES = 128;

// A key: 1 in the highest bit, 17 bits for the launch, 1 bit for a page of bytes, 45 for its number.
constexpr uint64_t USED = 1ull << 63;
constexpr uint32_t ID_SHIFT = 46;
constexpr uint32_t ID_MASK = 0x1ffff;
constexpr uint64_t OF_BYTES = 1ull << 45;
constexpr uint64_t NUMBER_MASK = OF_BYTES - 1;

// A copy through a tensor map; the host resolves it.
struct TensorLoad {
    uint64_t key; // USED, the launch at ID_SHIFT, below it a hash of the rest
    int32_t coordinates[5];
    uint32_t rank;
    uint32_t mode; // of the load: 0 is tiled
    uint32_t arguments;
    uint64_t padding[3];
    uint64_t map[16]; // the map's contents
};
static_assert(sizeof(TensorLoad) == 192);

// What is common to the launches of a context.
struct Table {
    uint64_t *keys;  // 0 while free
    uint32_t *marks; // MODES * WORDS of each entry
    TensorLoad *loads;
    uint32_t mask;      // number of entries less one
    uint32_t load_mask; // number of loads less one
};
static_assert(sizeof(Table) == 32);

// The user data of one launch, or of a graph's. The driver keeps user data for each of the streams that
// it runs a graph in, not for each node, so all nodes are given the first of several logs behind each
// other; a kernel looks for the log of its grid among them and takes a free one at first.
struct Log {
    Table table;
    uint32_t id;
    uint32_t lost;       // accesses that found no entry
    uint32_t lost_loads; // copies through tensor maps that found none
    uint32_t inexact;    // accesses of which the library does not tell the exact bytes
    uint32_t nodes;      // number of logs of a graph, a power of two; 0 for a launch
    uint64_t grid;       // of a graph's log: the grid that has taken it, 0 while free
};
static_assert(sizeof(Log) == 64);
