// A library that calls back, from a function with a mangled name. Built twice, under two names.
#include <vector>

namespace PLUGIN {
template <typename T> struct Job {
    std::vector<T> values;
    __attribute__((noinline)) int run(int (*call)(void *), void *argument);
};

template <typename T> int Job<T>::run(int (*call)(void *), void *argument)
{
    int answer = call(argument);
    values.push_back(T(answer));
    return int(values.size());
}
}

extern "C" int plugin(int (*call)(void *), void *argument)
{
    PLUGIN::Job<float> job;
    return job.run(call, argument) + int(job.values[0]);
}
