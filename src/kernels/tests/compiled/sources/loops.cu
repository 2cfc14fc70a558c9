// Loops of every shape.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// kernel rows: p0=write p1=read
// range: exact
// launch: p2=0..20
extern "C" __global__ void rows(float *to, const float *from, int width)
{
    float sum = 0;
    for (int i = 0; i < width; i++)
        sum += from[AT * width + i];
    to[AT] = sum;
}

// kernel columns: p0=write p1=read
// range: exact
// launch: p2=0..20 p3=250
extern "C" __global__ void columns(float *to, const float *from, int height, int pitch)
{
    float sum = 0;
    for (int i = 0; i < height; i++)
        sum += from[i * pitch + AT];
    to[AT] = sum;
}

// kernel running_pointer: p0=write p1=read
// range: exact
// launch: p2=1..20
extern "C" __global__ void running_pointer(float *to, const float *from, int n)
{
    const float *at = from + threadIdx.x * n, *end = at + n;
    float sum = 0;
    while (at != end)
        sum += *at++;
    to[threadIdx.x] = sum;
}

// kernel fixed_count: p0=write p1=read
// range: exact
extern "C" __global__ void fixed_count(float *to, const float *from)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 16; i++)
        sum += from[16 * AT + i];
    to[AT] = sum;
}

// kernel unrolled: p0=write p1=read
// range: exact
// launch: p2=0..50
extern "C" __global__ void unrolled(float *to, const float *from, int n)
{
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < n; i++)
        sum += from[i];
    to[AT] = sum;
}

// kernel backwards: p0=read-write
// range: exact
// launch: p1=0..30
extern "C" __global__ void backwards(int *data, int n)
{
    for (int i = n - 1; i >= 0; i--)
        data[AT * n + i] ^= i;
}

// kernel nested: p0=write
// range: exact
// launch: p1=1..9 p2=1..9
extern "C" __global__ void nested(int *to, int rows, int columns)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            to[(AT * rows + i) * columns + j] = i - j;
}

// kernel triangle: p0=write p1=read
// range: bounded
// why: shape
// launch: p2=1..12 block=1..12,1,1 grid=1,1,1
extern "C" __global__ void triangle(int *to, const int *from, int n)
{
    int row = threadIdx.x;
    if (row < n)
        for (int column = 0; column <= row; column++)
            to[row * n + column] = from[column * n + row];
}

// kernel breaks: p0=write p1=read
// range: bounded
// why: memory
// launch: p2=0..40
extern "C" __global__ void breaks(int *to, const int *from, int n)
{
    int i = 0;
    for (; i < n; i++)
        if (from[AT * n + i] > 50)
            break;
    to[AT] = i;
}

// kernel continues: p0=read-write p1=read
// range: bounded
// why: memory
// launch: p2=0..40
extern "C" __global__ void continues(int *to, const int *from, int n)
{
    for (int i = 0; i < n; i++) {
        if (from[i] & 1)
            continue;
        to[AT * n + i] += 5;
    }
}

// kernel data_bound: p0=write p1=read p2=read
// range: anchored
// why: memory
extern "C" __global__ void data_bound(float *to, const int *offsets, const float *values)
{
    float sum = 0;
    for (int i = offsets[AT]; i < offsets[AT + 1]; i++)
        sum += values[i];
    to[AT] = sum;
}

// kernel search: p0=write p1=read p2=read
// range: anchored
// why: memory
// launch: p3=1..64
extern "C" __global__ void search(int *to, const int *sorted, const int *keys, int n)
{
    int low = 0, high = n, key = keys[AT];
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    to[AT] = low;
}

// kernel doubling: p0=write p1=read
// range: bounded
// why: arithmetic
// launch: p2=1..130
extern "C" __global__ void doubling(int *to, const int *from, int n)
{
    int sum = 0;
    for (int i = 1; i < n; i *= 2)
        sum += from[i];
    to[AT] = sum;
}

// kernel until_zero: p0=write p1=read
// range: anchored
// why: memory
extern "C" __global__ void until_zero(int *to, const char *text)
{
    int length = 0;
    while (text[length] != 0)
        length++;
    to[AT] = length;
}

// kernel blocks_of_four: p0=write p1=read
// range: exact
// launch: p2=0..600
extern "C" __global__ void blocks_of_four(float *to, const float *from, int n)
{
    int step = 4 * blockDim.x * gridDim.x;
    for (int i = 4 * AT; i < n; i += step) {
        if (i + 3 < n) {
            *reinterpret_cast<float4 *>(to + i) = *reinterpret_cast<const float4 *>(from + i);
        } else {
            for (int j = i; j < n; j++)
                to[j] = from[j];
        }
    }
}

// kernel sieve: p0=write
// range: bounded
// why: shape
// launch: p1=2..100
extern "C" __global__ void sieve(char *composite, int n)
{
    int step = AT + 2;
    for (int i = 2 * step; i < n; i += step)
        composite[i] = 1;
}

// kernel collatz: p0=read-write
// range: exact
// launch: p1=1..64
extern "C" __global__ void collatz(int *data, int n)
{
    int i = AT;
    if (i >= n)
        return;
    int value = data[i] + 1, steps = 0;
    while (value > 1 && steps < 50) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        steps++;
    }
    data[i] = steps;
}

// kernel repeated: p0=read-write
// range: exact
// launch: p1=1..6
extern "C" __global__ void repeated(int *data, int rounds)
{
    for (int round = 0; round < rounds; round++)
        data[AT] = data[AT] * 5 + round;
}
