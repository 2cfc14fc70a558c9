// Which bytes a copy through a tensor map touches.
//
// A tensor map is opaque, and libraries bring some that they made without the driver. Where its fields
// lie was found by encoding some 2,000 maps with cuTensorMapEncodeTiled and looking which bits change;
// each map that the driver encodes under the tool is read back to check it. What is not understood
// (im2col, interleaved layouts, unknown element types) is left unresolved, never guessed.
#pragma once

#include "log.h"
#include "ranges.h"

#include <array>

struct TensorMapFields {
    using Contents = std::array<uint64_t, 16>;

    uint64_t address;
    uint64_t element; // bytes
    uint32_t rank;
    std::array<uint64_t, 5> sizes, strides; // strides in bytes, the innermost is `element`
    std::array<uint32_t, 5> box, steps;

    // False where the map is of a kind that is not understood.
    bool read(const Contents &words)
    {
        auto bits = [&](uint32_t at, uint32_t count) {
            uint64_t low = words[at / 64] >> (at % 64);
            if (at % 64 + count > 64)
                low |= words[at / 64 + 1] << (64 - at % 64);
            return low & ((1ull << count) - 1);
        };
        // By element type; the driver's numbering of them is not the public one.
        static const uint8_t SIZES[16] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2};
        uint64_t kind = bits(64, 4), interleave = bits(75, 2);
        address = bits(0, 57);
        rank = bits(68, 3) + 1;
        element = SIZES[bits(71, 4)];
        // Tiled maps of the driver have kind 0, those of cuBLAS and cuDNN kind 2.
        if ((kind != 0 && kind != 2) || interleave != 0 || element == 0 || rank > 5)
            return false;
        for (uint32_t at = 0; at < rank; ++at) {
            sizes[at] = bits(256 + 32 * at, 32) + 1;
            box[at] = bits(440 + 8 * at, 8) + 1;
            steps[at] = bits(416 + 3 * at, 3) + 1;
            strides[at] = at == 0 ? element
                                  : bits(64 + 32 * at, 32) << 4 | bits(220 + 4 * at, 4) << 36;
        }
        return true;
    }

    // Appends the bytes that a tiled load at these coordinates reads.
    void load(const int32_t *at, Ranges &ranges) const { rows(at, rank - 1, address, ranges); }

private:
    void rows(const int32_t *at, uint32_t dimension, uint64_t base, Ranges &ranges) const
    {
        int64_t size = sizes[dimension], step = steps[dimension];
        int64_t from = at[dimension], to = from + box[dimension];
        if (dimension == 0 && step == 1) {
            from = std::max<int64_t>(from, 0);
            to = std::min(to, size);
            if (from < to)
                ranges.push_back({base + from * element, base + to * element});
            return;
        }
        for (int64_t index = from; index < to; index += step) {
            if (index < 0 || index >= size)
                continue;
            uint64_t inside = base + index * strides[dimension];
            if (dimension == 0)
                ranges.push_back({inside, inside + element});
            else
                rows(at, dimension - 1, inside, ranges);
        }
    }
};
