// Device functions, templates, switches.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__device__ __noinline__ void put(int *to, int at, int value)
{
    to[at] = value;
}

__device__ __noinline__ int get(const int *from, int at)
{
    return from[at];
}

__device__ __noinline__ const int *row(const int *from, int at, int width)
{
    return from + at * width;
}

__device__ __noinline__ int both(int *to, const int *from, int at)
{
    put(to, at, get(from, at));
    return get(from, at + 1);
}

// kernel called: p0=write p1=read
// range: exact
extern "C" __global__ void called(int *to, const int *from)
{
    put(to, AT, get(from, AT));
}

// kernel called_by_both: p0=write p1=read-write
// range: exact
extern "C" __global__ void called_by_both(int *to, int *from)
{
    int more = both(to, from, AT);
    put(from, AT, more);
}

// kernel returned: p0=write p1=read
// range: exact
// launch: p2=1..9
extern "C" __global__ void returned(int *to, const int *from, int width)
{
    to[AT] = row(from, blockIdx.x, width)[threadIdx.x];
}

__device__ __noinline__ void through(int **at)
{
    (*at)[AT] = 3;
}

// kernel by_address: p0=write
// range: exact
extern "C" __global__ void by_address(int *to)
{
    int *local = to;
    through(&local);
}

__device__ __noinline__ int depth(const int *from, int at)
{
    return at <= 0 ? 1 : from[at] + depth(from, at - 1) * 3;
}

// kernel recursive: p0=write p1=read
// range: anchored
// why: code
// launch: p2=0..20
extern "C" __global__ void recursive(int *to, const int *from, int n)
{
    to[AT] = depth(from, n);
}

typedef void (*Operation)(float *, const float *, int);
__device__ void first_way(float *to, const float *from, int at)
{
    to[at] = from[at];
}
__device__ void second_way(float *to, const float *from, int at)
{
    to[at] += from[at];
}
__device__ Operation ways[2] = {first_way, second_way};

// kernel function_pointers: p0=read-write p1=read ways=read
// range: anchored
// why: code
// launch: p2=0..1
extern "C" __global__ void function_pointers(float *to, const float *from, int way)
{
    ways[way](to, from, AT);
}

template <class T, int N> __device__ T sum(const T *from, int at)
{
    T total = 0;
    for (int i = 0; i < N; i++)
        total += from[at * N + i];
    return total;
}

template <class T, int N> __global__ void sums(T *to, const T *from)
{
    to[AT] = sum<T, N>(from, AT);
}

// kernel _Z4sumsIfLi3EEvPT_PKS0_: p0=write p1=read
// range: exact
template __global__ void sums<float, 3>(float *, const float *);
// kernel _Z4sumsIxLi1EEvPT_PKS0_: p0=write p1=read
// range: exact
template __global__ void sums<long long, 1>(long long *, const long long *);

template <class F> __device__ void each(int n, F f)
{
    for (int i = AT; i < n; i += gridDim.x * blockDim.x)
        f(i);
}

// kernel lambda: p0=write p1=read
// range: exact
// launch: p2=0..600
extern "C" __global__ void lambda(float *to, const float *from, int n, float factor)
{
    each(n, [=](int i) { to[i] = from[i] * factor; });
}

// kernel switched: p0=read-write p1=read p2=read
// range: bounded
// why: code
// launch: p3=0..9
extern "C" __global__ void switched(int *to, const int *a, const int *b, int which)
{
    int value;
    switch (which) {
    case 0:
        value = a[AT];
        break;
    case 1:
        value = b[AT];
        break;
    case 2:
        value = to[AT] * 3;
        break;
    case 3:
        value = a[AT + 1] - b[AT];
        break;
    case 4:
        value = to[AT] / 5;
        break;
    case 5:
        value = __popc(a[AT]);
        break;
    case 6:
        return;
    default:
        value = 0;
    }
    to[AT] = value;
}

// kernel divided: p0=read-write p1=read
// range: exact
extern "C" __global__ void divided(double *to, const double *by, long long n)
{
    long long i = AT;
    if (i < n)
        to[i] = to[i] / by[i];
}

// kernel long_division: p0=write p1=read
// range: anchored
// why: arithmetic
// launch: p2=1..50
extern "C" __global__ void long_division(int *to, const int *from, long long width)
{
    long long i = AT;
    to[i] = from[i / width];
}

// kernel asserts: p0=write
// range: exact
extern "C" __global__ void asserts(int *to, int n)
{
    if (n < 0)
        __trap();
    to[AT] = n;
}

// kernel sines: p0=read-write
// range: exact
extern "C" __global__ void sines(float *data)
{
    data[AT] = sinf(data[AT]);
}
