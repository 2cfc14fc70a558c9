// Which bytes a copy through a tensor map touches. The map's contents are opaque; what they mean is
// known from the call that encoded them.
#pragma once

#include "log.h"
#include "ranges.h"

#include <cuda.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

class TensorMaps {
public:
    struct Encoded {
        uint64_t address;
        uint64_t element; // bytes
        uint32_t rank;
        std::array<uint64_t, 5> sizes, strides; // strides in bytes, the innermost is `element`
        std::array<uint32_t, 5> box, steps;
        bool is_plain; // tiled, not interleaved, elements of whole bytes
    };
    using Contents = std::array<uint64_t, 16>;

    void add(const CUtensorMap *map, const Encoded &encoded)
    {
        Contents contents;
        memcpy(contents.data(), map, sizeof contents);
        std::lock_guard<std::mutex> guard(mutex_);
        known_[contents] = encoded;
    }

    // Appends the bytes read; false where that cannot be told.
    bool resolve(const Contents &contents, const TensorAccess &access, Ranges &ranges)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = known_.find(contents);
        if (found == known_.end() || !found->second.is_plain || access.mode != 0
            || access.rank != found->second.rank)
            return false;
        rows(found->second, access.coordinates, found->second.rank - 1, found->second.address, ranges);
        return true;
    }

private:
    static void rows(const Encoded &map, const int32_t *at, uint32_t dimension, uint64_t address,
                     Ranges &ranges)
    {
        int64_t size = map.sizes[dimension], step = map.steps[dimension];
        int64_t from = at[dimension], to = from + map.box[dimension];
        if (dimension == 0 && step == 1) {
            from = std::max<int64_t>(from, 0);
            to = std::min(to, size);
            if (from < to)
                ranges.push_back({address + from * map.element, address + to * map.element});
            return;
        }
        for (int64_t index = from; index < to; index += step) {
            if (index < 0 || index >= size)
                continue;
            uint64_t inside = address + index * map.strides[dimension];
            if (dimension == 0)
                ranges.push_back({inside, inside + map.element});
            else
                rows(map, at, dimension - 1, inside, ranges);
        }
    }

    std::mutex mutex_;
    std::map<Contents, Encoded> known_;
};

// Bytes of an element, 0 where elements are not whole bytes or unknown.
inline uint64_t element_size(CUtensorMapDataType type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return 0;
    }
}
