// The log of the tool: one file a process, a line of JSON a launch or problem.
#pragma once

#include <sanitizer.h>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

inline uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, nullptr, 10) : otherwise;
}

inline FILE *output;
inline std::mutex output_mutex;

inline FILE *open_output()
{
    std::string path = getenv("ACCESS_LOG") ? getenv("ACCESS_LOG") : "";
    size_t at = path.find("%p");
    if (at != std::string::npos)
        path.replace(at, 2, std::to_string(getpid()));
    return path.empty() ? nullptr : fopen(path.c_str(), "w");
}

inline void write_text(const char *text)
{
    fputc('"', output);
    for (; text && *text; ++text) {
        if (*text == '"' || *text == '\\')
            fputc('\\', output);
        if ((unsigned char)*text >= ' ')
            fputc(*text, output);
    }
    fputc('"', output);
}

// Says what did not work, once a kind.
inline void complain(const char *what, SanitizerResult result)
{
    static std::set<std::string> said;
    const char *why = nullptr;
    sanitizerGetResultString(result, &why);
    std::string message = std::string(what) + ": " + (why ? why : "?");
    std::lock_guard<std::mutex> guard(output_mutex);
    if (!said.insert(message).second)
        return;
    fputs("{\"problem\":", output);
    write_text(message.c_str());
    fputs("}\n", output);
    fflush(output);
}

inline bool ok(SanitizerResult result, const char *what)
{
    if (result != SANITIZER_SUCCESS)
        complain(what, result);
    return result == SANITIZER_SUCCESS;
}
