// Sorted byte ranges on the host: made, merged, taken from each other, written down.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

struct Range {
    uint64_t start, end; // half-open
};
using Ranges = std::vector<Range>;

// Adds behind the last one, to which it may be joined.
inline void push(Ranges &ranges, uint64_t start, uint64_t end)
{
    if (!ranges.empty() && ranges.back().end >= start && ranges.back().start <= start)
        ranges.back().end = std::max(ranges.back().end, end);
    else
        ranges.push_back({start, end});
}

inline void normalise(Ranges &ranges)
{
    std::sort(ranges.begin(), ranges.end(),
              [](const Range &a, const Range &b) { return a.start < b.start; });
    Ranges merged;
    for (const Range &range : ranges)
        push(merged, range.start, range.end);
    ranges.swap(merged);
}

// The bytes of `of` that are not in `without`; both normalised.
inline Ranges subtract(const Ranges &of, const Ranges &without)
{
    Ranges left;
    auto next = without.begin();
    for (Range range : of) {
        while (next != without.end() && next->end <= range.start)
            ++next;
        for (auto at = next; at != without.end() && at->start < range.end; ++at) {
            if (at->start > range.start)
                left.push_back({range.start, at->start});
            range.start = std::max(range.start, at->end);
            if (range.start >= range.end)
                break;
        }
        if (range.start < range.end)
            left.push_back(range);
    }
    return left;
}

inline uint64_t bytes(const Ranges &ranges)
{
    uint64_t sum = 0;
    for (const Range &range : ranges)
        sum += range.end - range.start;
    return sum;
}

// Writes a JSON array of [start, length, pitch, count]: equal ranges at equal distances are one entry.
inline void write(FILE *file, const Ranges &ranges)
{
    fputc('[', file);
    for (size_t at = 0; at < ranges.size();) {
        uint64_t length = ranges[at].end - ranges[at].start;
        uint64_t pitch = at + 1 < ranges.size() ? ranges[at + 1].start - ranges[at].start : 0;
        size_t behind = at + 1;
        while (behind < ranges.size() && ranges[behind].end - ranges[behind].start == length
               && ranges[behind].start - ranges[behind - 1].start == pitch)
            ++behind;
        fprintf(file, "%s[%lu,%lu,%lu,%zu]", at ? "," : "", (unsigned long)ranges[at].start,
                (unsigned long)length, (unsigned long)(behind - at > 1 ? pitch : 0), behind - at);
        at = behind;
    }
    fputc(']', file);
}
