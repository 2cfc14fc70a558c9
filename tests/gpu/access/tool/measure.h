// Modules are patched, launches get a log, and what stands in it becomes ranges.
#pragma once

#include "layout.h"
#include "log.h"
#include "output.h"
#include "ranges.h"
#include "tensor.h"

#include <sanitizer.h>

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

constexpr uint32_t TENSOR_ACCESSES = 1 << 18;

struct Measurement {
    CUcontext context = nullptr;
    uint64_t ordinal = 0;
    bool is_measured = false, has_snapshot = false;
    uint32_t grid[3], block[3];
    std::string name;
    std::string code;            // file of the machine code, where it is kept
    std::vector<uint8_t> values; // the parameter block
};

// The parameters of the launch that this thread is calling.
struct Given {
    void **values = nullptr;
    void **extra = nullptr;
};
inline thread_local Given given;

// A module whose machine code is kept.
struct Code {
    std::string file;
    Layouts layouts;
};

// Buffers of one context, made at its first measured launch.
struct Buffers {
    Log *log = nullptr;             // on the device
    TensorAccess *tensor = nullptr; // on the device
    Line *lines = nullptr;          // on the device
    Line *host_lines = nullptr;
    uint8_t *before = nullptr, *after = nullptr;
};

class Tool {
public:
    void module_loaded(const Sanitizer_ResourceModuleData &data)
    {
        std::lock_guard<std::mutex> guard(patch_mutex_);
        if (patched_contexts_.insert(data.context).second) {
            Dl_info where{};
            dladdr((void *)&open_output, &where);
            std::string path = where.dli_fname;
            path = path.substr(0, path.rfind('/') + 1) + "patches.fatbin";
            ok(sanitizerAddPatchesFromFile(path.c_str(), data.context), "sanitizerAddPatchesFromFile");
        }
        keep_code(data);
        struct Patch {
            int instruction; // Sanitizer_InstructionId; older headers lack the later ones
            const char *function;
        };
        static const Patch patches[] = {
            {3, "on_access"}, {14, "on_copy_async"}, {30, "on_bulk_load"}, {35, "on_bulk_store"},
            {37, "on_bulk_reduction"}, {43, "on_tensor_load"},
        };
        static const bool with_tensors = number("ACCESS_TENSOR", 1) != 0;
        for (const Patch &patch : patches)
            if (patch.instruction != 43 || with_tensors)
                ok(sanitizerPatchInstructions((Sanitizer_InstructionId)patch.instruction, data.module,
                                              patch.function),
                   patch.function);
        ok(sanitizerPatchModule(data.module), "sanitizerPatchModule");
    }

    void allocated(const Sanitizer_ResourceMemoryData &data, bool is_new)
    {
        constexpr uint32_t NOT_OURS = SANITIZER_MEMORY_FLAG_HOST_MAPPED | SANITIZER_MEMORY_FLAG_HOST_PINNED
            | SANITIZER_MEMORY_FLAG_PEER | SANITIZER_MEMORY_FLAG_CG_RUNTIME | SANITIZER_MEMORY_FLAG_CNP;
        std::lock_guard<std::mutex> guard(allocation_mutex_);
        if (!is_new)
            allocations_.erase(data.address);
        else if (!(data.flags & NOT_OURS))
            allocations_[data.address] = data.size;
    }

    void begin(const Sanitizer_LaunchData &launch)
    {
        Measurement &now = current();
        if (now.is_measured) // its launch failed and had no end
            measuring_.unlock();
        now = Measurement{};
        now.ordinal = ordinals_.fetch_add(1);
        now.context = launch.context;
        now.name = launch.functionName ? launch.functionName : "";
        now.grid[0] = launch.gridDim_x, now.grid[1] = launch.gridDim_y, now.grid[2] = launch.gridDim_z;
        now.block[0] = launch.blockDim_x, now.block[1] = launch.blockDim_y;
        now.block[2] = launch.blockDim_z;
        void *log = nullptr;
        // Never waits here: another thread may need what this one holds in the driver.
        if (is_wanted(now) && measuring_.try_lock()) {
            now.is_measured = prepare(now, launch);
            if (now.is_measured) {
                log = buffers_[now.context].log;
                keep_parameters(now, launch.module);
            } else
                measuring_.unlock();
        }
        ok(sanitizerSetLaunchCallbackData(launch.hLaunch, launch.function, launch.hStream, log),
           "sanitizerSetLaunchCallbackData");
    }

    void end(const Sanitizer_LaunchData &launch)
    {
        Measurement &now = current();
        Ranges touched[KINDS], unseen, memory;
        uint64_t lost = 0, unknown = 0, changed = 0;
        if (now.is_measured) {
            collect(now, launch, touched, lost, unknown, unseen, changed);
            memory = held_;
            measuring_.unlock();
        }
        std::lock_guard<std::mutex> guard(output_mutex);
        fprintf(output, "{\"ordinal\":%lu,\"name\":", (unsigned long)now.ordinal);
        write_text(now.name.c_str());
        fprintf(output, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", now.grid[0], now.grid[1],
                now.grid[2], now.block[0], now.block[1], now.block[2]);
        if (now.is_measured) {
            fprintf(output, ",\"lost\":%lu,\"unknown_tensor_loads\":%lu", (unsigned long)lost,
                    (unsigned long)unknown);
            const char *names[KINDS] = {"read", "write", "atomic"};
            for (uint32_t kind = 0; kind < KINDS; ++kind) {
                fprintf(output, ",\"%s\":", names[kind]);
                write(output, touched[kind]);
            }
            if (!now.code.empty()) {
                fprintf(output, ",\"code\":\"%s\",\"params\":\"", now.code.c_str());
                for (uint8_t byte : now.values)
                    fprintf(output, "%02x", byte);
                fputs("\",\"memory\":", output);
                write(output, memory);
            }
            if (now.has_snapshot) {
                fprintf(output, ",\"changed_bytes\":%lu,\"unseen\":", (unsigned long)changed);
                write(output, unseen);
            }
        }
        fputs("}\n", output);
        fflush(output);
        now = Measurement{};
    }

private:
    void keep_code(const Sanitizer_ResourceModuleData &data)
    {
        static const char *folder = getenv("ACCESS_MODULES");
        if (folder == nullptr || data.pCubin == nullptr || data.cubinSize == 0)
            return;
        uint64_t hash = 0xcbf29ce484222325; // FNV-1a
        for (size_t at = 0; at < data.cubinSize; ++at)
            hash = (hash ^ (uint8_t)data.pCubin[at]) * 0x100000001b3;
        char name[32];
        snprintf(name, sizeof name, "%016lx.cubin", (unsigned long)hash);
        if (FILE *file = fopen((folder + std::string("/") + name).c_str(), "w")) {
            fwrite(data.pCubin, 1, data.cubinSize, file);
            fclose(file);
        }
        codes_[data.module] = Code{name, layouts((const uint8_t *)data.pCubin, data.cubinSize)};
    }

    // The parameter block of the launch that is being called, where its module is kept.
    void keep_parameters(Measurement &now, CUmodule module)
    {
        std::lock_guard<std::mutex> guard(patch_mutex_);
        auto code = codes_.find(module);
        if (code == codes_.end())
            return;
        auto layout = code->second.layouts.find(now.name);
        if (layout == code->second.layouts.end())
            return;
        if (given.extra != nullptr) {
            const void *buffer = nullptr;
            size_t size = 0;
            for (void **at = given.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
                if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
                    buffer = at[1];
                else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
                    size = *(const size_t *)at[1];
            }
            if (buffer != nullptr)
                now.values.assign((const uint8_t *)buffer, (const uint8_t *)buffer + size);
        } else if (given.values != nullptr) {
            for (const Parameter &parameter : layout->second) {
                size_t end = parameter.offset + parameter.size;
                if (now.values.size() < end)
                    now.values.resize(end);
                memcpy(&now.values[parameter.offset], given.values[parameter.index], parameter.size);
            }
        } else if (!layout->second.empty()) {
            return; // not called in a way that is understood
        }
        now.code = code->second.file;
    }

    static Measurement &current()
    {
        static thread_local Measurement now;
        return now;
    }

    bool is_wanted(const Measurement &launch)
    {
        static const uint64_t most = number("ACCESS_LAUNCHES", 3);
        std::lock_guard<std::mutex> guard(count_mutex_);
        std::string shape = launch.name;
        for (int axis = 0; axis < 3; ++axis)
            shape += "," + std::to_string(launch.grid[axis]) + "," + std::to_string(launch.block[axis]);
        bool is_new = shapes_.insert(shape).second;
        uint64_t &count = counts_[launch.name];
        if (count >= (is_new ? 4 * most : most))
            return false;
        ++count;
        return true;
    }

    bool prepare(Measurement &now, const Sanitizer_LaunchData &launch)
    {
        static const uint64_t lines = number("ACCESS_LINES", 1 << 20);
        static const uint64_t snapshot = number("ACCESS_SNAPSHOT", 256) << 20;
        Buffers &b = buffers_[now.context];
        if (b.log == nullptr) {
            bool made = ok(sanitizerAlloc(now.context, (void **)&b.lines, lines * sizeof(Line)), "lines")
                && ok(sanitizerAlloc(now.context, (void **)&b.tensor,
                                     TENSOR_ACCESSES * sizeof(TensorAccess)), "tensor accesses")
                && ok(sanitizerAllocHost(now.context, (void **)&b.host_lines, lines * sizeof(Line)),
                      "host lines")
                && ok(sanitizerAllocHost(now.context, (void **)&b.before, snapshot), "snapshot")
                && ok(sanitizerAllocHost(now.context, (void **)&b.after, snapshot), "snapshot")
                && ok(sanitizerAlloc(now.context, (void **)&b.log, sizeof(Log)), "log");
            if (!made) {
                b.log = nullptr;
                return false;
            }
        }
        Log log{};
        log.lines = b.lines;
        log.line_mask = lines - 1;
        log.tensor = b.tensor;
        log.tensor_capacity = TENSOR_ACCESSES;
        bool done = ok(sanitizerMemset(b.lines, 0, lines * sizeof(Line), launch.hStream), "clearing")
            && ok(sanitizerMemcpyHostToDeviceAsync(b.log, &log, sizeof log, launch.hStream), "log")
            && ok(sanitizerStreamSynchronize(launch.hStream), "waiting before a launch");
        if (!done)
            return false;
        {
            std::lock_guard<std::mutex> guard(allocation_mutex_);
            held_.clear();
            uint64_t sum = 0;
            for (auto [address, size] : allocations_) {
                held_.push_back({address, address + size});
                sum += size;
            }
            now.has_snapshot = sum <= snapshot;
        }
        now.has_snapshot = now.has_snapshot && copy_held(b.before, launch.hStream);
        return true;
    }

    bool copy_held(uint8_t *to, Sanitizer_StreamHandle stream)
    {
        for (const Range &range : held_) {
            uint64_t size = range.end - range.start;
            if (!ok(sanitizerMemcpyDeviceToHost(to, (void *)range.start, size, stream), "snapshot"))
                return false;
            to += size;
        }
        return true;
    }

    void collect(Measurement &now, const Sanitizer_LaunchData &launch, Ranges (&touched)[KINDS],
                 uint64_t &lost, uint64_t &unknown, Ranges &unseen, uint64_t &changed)
    {
        static const uint64_t lines = number("ACCESS_LINES", 1 << 20);
        Buffers &b = buffers_[now.context];
        auto log = std::make_unique<Log>();
        bool done = ok(sanitizerStreamSynchronize(launch.hStream), "waiting for a launch")
            && ok(sanitizerMemcpyDeviceToHost(log.get(), b.log, sizeof(Log), launch.hStream), "log")
            && ok(sanitizerMemcpyDeviceToHost(b.host_lines, b.lines, lines * sizeof(Line),
                                              launch.hStream), "lines");
        if (!done) {
            lost = ~0ull;
            return;
        }
        lost = log->lost;
        std::vector<const Line *> used;
        for (uint64_t at = 0; at < lines; ++at)
            if (b.host_lines[at].key != 0)
                used.push_back(&b.host_lines[at]);
        std::sort(used.begin(), used.end(),
                  [](const Line *x, const Line *y) { return x->key < y->key; });
        for (const Line *line : used)
            for (uint32_t kind = 0; kind < KINDS; ++kind)
                add_line(touched[kind], (line->key - 1) * 128, line->bits[kind]);
        unknown = tensor_loads(*log, launch, touched[READ]);
        if (now.has_snapshot && copy_held(b.after, launch.hStream))
            compare(b, touched, unseen, changed);
        else
            now.has_snapshot = false;
    }

    static void add_line(Ranges &ranges, uint64_t address, const uint32_t (&bits)[4])
    {
        for (uint32_t at = 0; at < 128;) {
            uint32_t word = bits[at / 32] >> (at % 32);
            if (word == 0) {
                at = (at / 32 + 1) * 32;
            } else if (!(word & 1)) {
                at += __builtin_ctz(word);
            } else {
                uint32_t count = ~word ? __builtin_ctz(~word) : 32;
                count = std::min(count, 32 - at % 32);
                push(ranges, address + at, address + at + count);
                at += count;
            }
        }
    }

    // Adds what tensor loads read, gives how many could not be resolved.
    uint64_t tensor_loads(const Log &log, const Sanitizer_LaunchData &launch, Ranges &read)
    {
        if (log.tensor_count == 0)
            return 0;
        uint64_t count = std::min(log.tensor_count, TENSOR_ACCESSES);
        uint64_t unknown = log.tensor_count - count;
        std::vector<TensorAccess> all(count);
        if (!ok(sanitizerMemcpyDeviceToHost(all.data(), buffers_[launch.context].tensor,
                                            count * sizeof(TensorAccess), launch.hStream), "tensor"))
            return log.tensor_count;
        auto key = [](const TensorAccess &a) {
            return std::tie(a.map, a.mode, a.rank, a.coordinates[0], a.coordinates[1], a.coordinates[2],
                            a.coordinates[3], a.coordinates[4]);
        };
        std::sort(all.begin(), all.end(), [&](auto &x, auto &y) { return key(x) < key(y); });
        all.erase(std::unique(all.begin(), all.end(),
                              [&](auto &x, auto &y) { return key(x) == key(y); }), all.end());
        std::map<uint64_t, TensorMapFields::Contents> contents;
        for (const TensorMap &map : log.maps)
            if (map.address != 0)
                memcpy(contents[map.address].data(), map.words, sizeof map.words);
        std::vector<TensorAccess> unresolved;
        for (const TensorAccess &access : all) {
            auto found = contents.find(access.map);
            TensorMapFields fields;
            if (access.mode == 0 && found != contents.end() && fields.read(found->second)
                && fields.rank == access.rank)
                fields.load(access.coordinates, read);
            else
                unresolved.push_back(access);
        }
        normalise(read);
        static const bool write_down = number("ACCESS_UNRESOLVED", 0) != 0;
        if (write_down && !unresolved.empty())
            write_unresolved(unresolved, contents);
        return unknown + unresolved.size();
    }

    static void write_unresolved(const std::vector<TensorAccess> &loads,
                                 const std::map<uint64_t, TensorMapFields::Contents> &contents)
    {
        std::lock_guard<std::mutex> guard(output_mutex);
        fprintf(output, "{\"unresolved\":%lu,\"maps\":{", (unsigned long)current().ordinal);
        const char *comma = "";
        for (auto &[address, words] : contents) {
            fprintf(output, "%s\"%lu\":[", comma, (unsigned long)address);
            for (size_t at = 0; at < words.size(); ++at)
                fprintf(output, "%s%lu", at ? "," : "", (unsigned long)words[at]);
            fputc(']', output);
            comma = ",";
        }
        fputs("},\"loads\":[", output);
        for (size_t at = 0; at < loads.size(); ++at) {
            const TensorAccess &load = loads[at];
            fprintf(output, "%s[%lu,%u,%u,%d,%d,%d,%d,%d]", at ? "," : "", (unsigned long)load.map,
                    load.mode, load.rank, load.coordinates[0], load.coordinates[1],
                    load.coordinates[2], load.coordinates[3], load.coordinates[4]);
        }
        fputs("]}\n", output);
    }

    void compare(const Buffers &b, const Ranges (&touched)[KINDS], Ranges &unseen, uint64_t &changed)
    {
        Ranges differs;
        uint64_t base = 0;
        for (const Range &range : held_) {
            uint64_t size = range.end - range.start;
            const uint8_t *x = b.before + base, *y = b.after + base;
            for (uint64_t at = 0; at < size;) {
                uint64_t chunk = std::min<uint64_t>(4096, size - at);
                if (memcmp(x + at, y + at, chunk) != 0)
                    for (uint64_t byte = at; byte < at + chunk; ++byte)
                        if (x[byte] != y[byte])
                            push(differs, range.start + byte, range.start + byte + 1);
                at += chunk;
            }
            base += size;
        }
        changed = bytes(differs);
        Ranges seen = touched[WRITE];
        seen.insert(seen.end(), touched[ATOMIC].begin(), touched[ATOMIC].end());
        normalise(seen);
        unseen = subtract(differs, seen);
    }

    std::atomic<uint64_t> ordinals_{0};
    std::mutex patch_mutex_, allocation_mutex_, count_mutex_, measuring_;
    std::set<CUcontext> patched_contexts_;
    std::map<CUmodule, Code> codes_; // guarded by patch_mutex_
    std::map<uint64_t, uint64_t> allocations_; // address to bytes
    std::set<std::string> shapes_;
    std::map<std::string, uint64_t> counts_;
    // The rest belongs to the thread that holds `measuring_`.
    std::map<CUcontext, Buffers> buffers_;
    Ranges held_;
};
