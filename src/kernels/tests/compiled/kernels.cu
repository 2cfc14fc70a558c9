// Kernels of every kind of parameter, for tests of what images tell of them.

struct Packed {
    float *to;
    int count;
    const double *from;
    char tail[3];
};

// More than KPARAM_INFO can describe.
struct Large {
    int values[5000];
};

namespace ns {
template <class T>
__global__ void scale(T *to, const T *from, T factor, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        to[at] = from[at] * factor;
}
template __global__ void scale<float>(float *, const float *, float, int);
} // namespace ns

__global__ void by_struct(Packed arguments, short more)
{
    if (threadIdx.x < arguments.count)
        arguments.to[threadIdx.x] = arguments.from[threadIdx.x] + more;
}

__global__ void large(Large values, int *to)
{
    *to = values.values[threadIdx.x];
}

extern "C" __global__ void nothing()
{
}

extern "C" __global__ void narrow(char value, float *to)
{
    *to = value;
}

#ifdef PROGRAM
int main()
{
    nothing<<<1, 1>>>();
    return 0;
}
#endif
