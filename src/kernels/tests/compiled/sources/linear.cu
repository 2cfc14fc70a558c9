// Addresses that are sums of thread and block indices and arguments.
// What the comments in front of the kernels mean: ../corpus.rs.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// kernel elementwise: p0=write p1=read p2=read
// range: exact
extern "C" __global__ void elementwise(float *to, const float *a, const float *b, int n)
{
    int i = AT;
    if (i < n)
        to[i] = a[i] + b[i];
}

// kernel saxpy: p2=read p3=read-write
// range: exact
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = AT;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// kernel restricted: p0=write p1=read
// range: exact
extern "C" __global__ void restricted(float *__restrict__ to, const float *__restrict__ from)
{
    to[AT] = 2 * from[AT];
}

// kernel grid_stride: p0=write p1=read
// range: exact
// launch: p2=0..900
extern "C" __global__ void grid_stride(float *to, const float *from, int n)
{
    for (int i = AT; i < n; i += blockDim.x * gridDim.x)
        to[i] = from[i] * from[i];
}

// kernel grid_stride_wide: p0=write p1=read
// range: exact
// launch: p2=0..900
extern "C" __global__ void grid_stride_wide(double *to, const double *from, size_t n)
{
    size_t step = (size_t)blockDim.x * gridDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        to[i] = from[i] + 1;
}

// kernel offset: p0=read-write
// range: exact
// launch: p1=0..500
extern "C" __global__ void offset(int *data, int first, int n)
{
    int i = AT;
    if (i < n)
        data[first + i] += 1;
}

// kernel reversed: p0=write p1=read
// range: exact
extern "C" __global__ void reversed(float *to, const float *from, int n)
{
    int i = AT;
    if (i < n)
        to[n - 1 - i] = from[i];
}

// kernel negative_stride: p0=read-write
// range: exact
extern "C" __global__ void negative_stride(int *end, int n)
{
    int i = AT;
    if (i < n)
        end[-i] = end[-i] * 3;
}

// kernel strided: p0=write p1=read
// range: exact
// launch: p2=1..9
extern "C" __global__ void strided(float *to, const float *from, int stride, int n)
{
    int i = AT;
    if (i < n)
        to[i] = from[i * stride];
}

// kernel every_third: p0=write
// range: exact
extern "C" __global__ void every_third(short *to, int n)
{
    int i = AT;
    if (i < n)
        to[3 * i + 1] = (short)i;
}

// kernel two_dimensions: p0=write p1=read
// range: exact
// launch: p2=200..230 p3=0..100 p4=0..9
extern "C" __global__ void two_dimensions(float *to, const float *from, int pitch, int width, int height)
{
    int x = AT, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        to[y * pitch + x] = from[y * pitch + x];
}

// kernel pitched_bytes: p0=read-write
// range: exact
// launch: p1=512|640 p2=0..100 p3=0..9
extern "C" __global__ void pitched_bytes(char *base, size_t pitch, int width, int height)
{
    int x = AT, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float *row = (float *)(base + y * pitch);
    row[x] = -row[x];
}

// kernel three_dimensions: p0=write
// range: exact
// launch: p1=300 p2=16 p3=0..250 p4=0..16 p5=0..4
extern "C" __global__ void three_dimensions(int *to, int pitch, int rows, int nx, int ny, int nz)
{
    int x = AT, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz)
        to[((size_t)z * rows + y) * pitch + x] = x ^ y ^ z;
}

// kernel column_block: p0=write
// range: exact
// launch: p1=256 p2=16..100 p3=0..64
extern "C" __global__ void column_block(float *to, int pitch, int column, int width)
{
    if ((int)threadIdx.x < width)
        to[blockIdx.x * pitch + column + threadIdx.x] = 1;
}

// kernel vectors: p0=write p1=read
// range: exact
extern "C" __global__ void vectors(float4 *to, const float4 *from, int n)
{
    int i = AT;
    if (i < n) {
        float4 v = from[i];
        to[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}

// kernel vector_casts: p0=write p1=read
// range: exact
// launch: p2=0..128
extern "C" __global__ void vector_casts(double *to, const double *from, int n)
{
    int i = AT;
    if (2 * i < n) {
        double2 v = reinterpret_cast<const double2 *>(from)[i];
        reinterpret_cast<double2 *>(to)[i] = make_double2(v.y + 1, v.x);
    }
}

// kernel unrolled_by_hand: p0=write p1=read
// range: exact
extern "C" __global__ void unrolled_by_hand(int *to, const int *from)
{
    int i = 4 * AT;
    to[i] = from[i] + 1;
    to[i + 1] = from[i + 1] + 2;
    to[i + 2] = from[i + 2] + 3;
    to[i + 3] = from[i + 3] + 4;
}

// kernel narrow_indices: p0=write p1=read p2=read
// range: exact
// launch: block=1..200,1,1 grid=1,1,1
extern "C" __global__ void narrow_indices(int *to, const int *from, const char *bytes)
{
    unsigned char a = (unsigned char)threadIdx.x;
    short b = (short)threadIdx.x;
    to[b] = from[a] + bytes[threadIdx.x];
}

// kernel wide_indices: p0=write p1=read
// range: exact
// launch: p2=0..100000
extern "C" __global__ void wide_indices(float *to, const float *from, long long first)
{
    long long i = first + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] * 0.5f;
}

// kernel unsigned_indices: p0=write p1=read
// range: exact
extern "C" __global__ void unsigned_indices(float *to, const float *from, unsigned n)
{
    unsigned i = AT;
    if (i < n)
        to[i] = from[i + 7];
}

// kernel in_place: p0=read-write
// range: exact
extern "C" __global__ void in_place(float *data, float factor)
{
    data[AT] *= factor;
}

// kernel shifted_in_place: p0=read-write
// range: exact
extern "C" __global__ void shifted_in_place(int *data, int n)
{
    int i = AT;
    if (i + 1 < n)
        data[i] = data[i + 1];
}

// kernel single_thread: p0=write
// range: exact
extern "C" __global__ void single_thread(int *to)
{
    if (threadIdx.x == 0 && threadIdx.y == 0 && blockIdx.x == 0)
        *to = gridDim.x;
}

// kernel one_a_block: p0=write
// range: exact
extern "C" __global__ void one_a_block(int *to, int value)
{
    if (threadIdx.x == 0)
        to[blockIdx.x] = value;
}

// kernel untouched: p0=none p1=write
// range: exact
extern "C" __global__ void untouched(const float *not_read, int *to)
{
    to[threadIdx.x] = not_read == nullptr;
}

// kernel bounded_launch: p0=write p1=read
// range: exact
// launch: block=1..40,1,1
extern "C" __global__ void __launch_bounds__(128, 2) bounded_launch(float *to, const float *from, int n)
{
    int i = AT;
    if (i < n)
        to[i] = sqrtf(from[i]);
}

// kernel early_exit: p0=write p1=read
// range: exact
extern "C" __global__ void early_exit(float *to, const float *from, int first, int end)
{
    int i = AT;
    if (i < first)
        return;
    if (i >= end)
        return;
    to[i] = from[i - first];
}

// kernel clamped: p0=write p1=read
// range: bounded
// why: arithmetic
// launch: p2=1..100
extern "C" __global__ void clamped(float *to, const float *from, int n)
{
    int i = AT;
    to[i] = from[min(max(i - 2, 0), n - 1)];
}

// kernel div_mod: p0=write p1=read
// range: bounded
// why: arithmetic
// launch: p2=1..20
extern "C" __global__ void div_mod(int *to, const int *from, int width, int pitch)
{
    int i = AT;
    to[i] = from[i / width * pitch + i % width];
}

// kernel div_mod_constant: p0=write p1=read
// range: bounded
// why: arithmetic
extern "C" __global__ void div_mod_constant(int *to, const int *from)
{
    unsigned i = AT;
    to[i] = from[i / 12 * 16 + i % 12];
}

// kernel powers_of_two: p0=write p1=read
// range: bounded
// why: arithmetic
extern "C" __global__ void powers_of_two(int *to, const int *from)
{
    unsigned i = AT;
    to[(i >> 5) * 64 + (i & 31)] = from[i ^ 1];
}

// kernel predicated: p0=write p1=read p2=read
// range: exact
extern "C" __global__ void predicated(float *to, const float *a, const float *b, int which, int n)
{
    int i = AT;
    float value = 0;
    if (i < n)
        value = a[i];
    if (which > 3)
        value += b[i];
    to[i] = value;
}

// kernel chosen_pointer: p0=write p1=read p2=read
// range: bounded
// why: choice
extern "C" __global__ void chosen_pointer(float *to, const float *a, const float *b, int which)
{
    const float *from = which > 50 ? a : b;
    to[AT] = from[AT];
}

// kernel mixed_widths: p0=write p1=read p2=read
// range: exact
extern "C" __global__ void mixed_widths(double *to, const short *a, const unsigned char *b, int n)
{
    int i = AT;
    if (i < n)
        to[i] = a[i] * b[2 * i + 1];
}

// More conditions than there are predicates: compilers keep some in general registers, or test again.
// kernel many_guards: p0=write p1=read
// range: exact
// launch: block=8,1,1 grid=1..3,1..3,1 p2=1..40 p3=1..30 p4=32..40
extern "C" __global__ void many_guards(float *to, const float *from, int rows, int columns, int pitch)
{
    int x = AT, y = blockIdx.y * 12;
    float kept[12];
#pragma unroll
    for (int j = 0; j < 12; j++)
        kept[j] = x < columns && y + j < rows ? from[(y + j) * pitch + x] : 0;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 12; j++)
        sum += kept[j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 12; j++)
        if (x < columns && y + j < rows)
            to[(y + j) * pitch + x] = kept[j] - sum;
}

// kernel guards_in_loop: p0=write p1=read
// range: exact
// launch: block=8,1,1 grid=1..3,1..3,1 p2=1..30 p3=1..30 p4=32..40 p5=1..4 p6=1000..1100
extern "C" __global__ void guards_in_loop(float *to, const float *from, int rows, int columns, int pitch, int rounds, int plane)
{
    int x = AT, y = blockIdx.y * 8;
    bool in[8];
#pragma unroll
    for (int j = 0; j < 8; j++)
        in[j] = x < columns && y + j < rows;
#pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        float kept[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            kept[j] = in[j] ? from[r * plane + (y + j) * pitch + x] : 0;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (in[j])
                to[r * plane + (y + j) * pitch + x] = kept[j] + kept[(j + 1) % 8];
    }
}
