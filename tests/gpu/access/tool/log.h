// What the patched kernels write and the tool on the host reads: the bytes that one launch touched.
//
// Memory is kept in lines of 128 bytes, found by open addressing, so that nothing has to be known of
// allocations: device memory, managed memory, pinned host memory and variables of modules are alike.
// Lines that find no room are counted, never dropped silently.
#pragma once

#include <cstdint>

enum Kind : uint32_t { READ, WRITE, ATOMIC, KINDS };

// One line of memory. `key` is its address / 128 + 1, 0 while free; a bit a byte.
struct Line {
    uint64_t key;
    uint32_t bits[KINDS][4];
    uint32_t padding[2];
};
static_assert(sizeof(Line) == 64);

// A copy through a tensor map, to be resolved on the host.
struct TensorAccess {
    uint64_t map; // address of the tensor map
    int32_t coordinates[5];
    uint32_t rank;
    uint32_t mode; // Sanitizer_LoadMode
    uint32_t padding;
};

// The contents of a tensor map that a launch used.
struct TensorMap {
    uint64_t address; // 0 while free
    uint64_t words[16];
};

constexpr uint32_t TENSOR_MAPS = 64;
constexpr uint32_t PROBES = 512;

struct Log {
    Line *lines;
    uint64_t line_mask; // number of lines less one
    TensorAccess *tensor;
    uint32_t tensor_capacity;
    uint32_t tensor_count; // may pass the capacity: the rest was lost
    uint32_t lost;         // accesses that found no room
    uint32_t padding;
    TensorMap maps[TENSOR_MAPS];
};
