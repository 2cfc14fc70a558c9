// Atomic operations.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// kernel histogram: p0=atomic p1=read
// range: anchored
// why: memory
extern "C" __global__ void histogram(unsigned *bins, const unsigned char *values, int n)
{
    int i = AT;
    if (i < n)
        atomicAdd(&bins[values[i]], 1u);
}

// kernel histogram_shared: p0=atomic p1=read
// range: exact
// launch: block=64,1,1 grid=1..3,1,1 p2=0..500
extern "C" __global__ void histogram_shared(unsigned *bins, const unsigned char *values, int n)
{
    __shared__ unsigned mine[64];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = AT; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&mine[values[i] & 63], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

// kernel sum_all: p0=atomic p1=read
// range: exact
extern "C" __global__ void sum_all(float *sum, const float *from)
{
    atomicAdd(sum, from[AT]);
}

// kernel old_values: p0=atomic p1=write
// range: exact
extern "C" __global__ void old_values(int *counters, int *to)
{
    to[AT] = atomicAdd(&counters[blockIdx.x], 2);
}

// kernel kinds: p0=atomic
// range: exact
extern "C" __global__ void kinds(int *data)
{
    int *at = data + 16 * AT;
    atomicSub(at, 3);
    atomicExch(at + 1, 4);
    atomicMin(at + 2, 5);
    atomicMax(at + 3, 6);
    atomicInc(reinterpret_cast<unsigned *>(at + 4), 7);
    atomicDec(reinterpret_cast<unsigned *>(at + 5), 8);
    atomicAnd(at + 6, 9);
    atomicOr(at + 7, 10);
    atomicXor(at + 8, 11);
    atomicCAS(at + 9, 12, 13);
}

// kernel kinds_used: p0=atomic p1=write
// range: exact
extern "C" __global__ void kinds_used(unsigned *data, unsigned *to)
{
    unsigned *at = data + 8 * AT;
    to[AT] = atomicInc(at, 7) + atomicMin(at + 1, 5) + atomicExch(at + 2, 9) + atomicCAS(at + 3, 1, 2)
        + atomicOr(at + 4, 8);
}

// kernel wide: p0=atomic
// range: exact
extern "C" __global__ void wide(unsigned long long *data, int n)
{
    int i = AT;
    if (i < n) {
        atomicAdd(&data[2 * i], 3ull);
        atomicMax(&data[2 * i + 1], 4ull);
    }
}

// kernel doubles: p0=atomic p1=read
// range: exact
extern "C" __global__ void doubles(double *to, const double *from)
{
    atomicAdd(&to[AT], from[AT]);
}

// kernel compare_loop: p0=read-write p1=read
// range: exact
extern "C" __global__ void compare_loop(float *to, const float *from)
{
    int *word = reinterpret_cast<int *>(to + AT);
    int old = *word, seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __float_as_int(fmaxf(__int_as_float(seen), from[AT])));
    } while (old != seen);
}

// kernel lock: p0=atomic p1=read-write
// range: exact
// launch: zeroed
extern "C" __global__ void lock(int *taken, int *counter)
{
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        while (atomicCAS(taken, 0, 1) != 0) {
        }
        __threadfence();
        volatile int *word = counter;
        *word = *word + 1;
        __threadfence();
        atomicExch(taken, 0);
    }
}

// kernel last_block: p0=read-write p1=atomic p2=read
// range: bounded
// why: memory
// launch: block=32,1,1 grid=1..6,1,1
extern "C" __global__ void last_block(volatile float *sums, unsigned *arrived, const float *from)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = from[blockIdx.x];
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            total += sums[i];
        sums[0] = total;
    }
}

// kernel append: p0=atomic p1=write p2=read
// range: anchored
// why: memory
extern "C" __global__ void append(int *count, int *to, const int *from)
{
    int value = from[AT];
    if (value > 30)
        to[atomicAdd(count, 1)] = value;
}

// kernel flags: p0=write p1=read
// range: exact
extern "C" __global__ void flags(int *flag, const int *other)
{
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(other + blockIdx.x) : "memory");
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag + blockIdx.x), "r"(value + 1) : "memory");
}

// kernel system_wide: p0=atomic
// range: exact
extern "C" __global__ void system_wide(int *data)
{
    atomicAdd_system(data + blockIdx.x, 1);
    atomicAdd_block(data + gridDim.x + blockIdx.x, 1);
}

// kernel generic_atomic: p0=atomic p1=write
// range: bounded
// why: choice
// launch: block=32,1,1 grid=1..4,1,1
extern "C" __global__ void generic_atomic(int *data, int *to, int which)
{
    __shared__ int mine[32];
    mine[threadIdx.x] = 0;
    __syncthreads();
    int *at = which > 60 ? mine : data;
    to[AT] = atomicAdd(at + threadIdx.x, 1);
}

// Strong operations whose scope is the system, beside weak ones.
// kernel system_scope: p0=read-write
// range: exact
extern "C" __global__ void system_scope(unsigned *flags)
{
    unsigned *own = flags + 8 * AT;
    volatile unsigned *seen = own;
    unsigned first = seen[0], second;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(second) : "l"(own + 1) : "memory");
    atomicAdd_system(own + 2, first);
    seen[3] = second;
    asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(own + 4), "r"(first) : "memory");
    own[5] = own[6];
    atomicAdd(own + 7, 1u);
}
