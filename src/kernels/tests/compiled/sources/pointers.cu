// Pointers inside structures, tables of pointers, pointers in memory.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

struct Vector {
    float *data;
    int size;
};

struct View {
    int rows, columns, pitch;
    const float *from;
    char kind;
    float *to;
};

struct Chunks {
    float *to[8];
    const float *from[8];
    int sizes[8];
};

struct Nested {
    int before;
    struct {
        Vector inner[2];
    } parts;
};

struct Node {
    Node *next;
    long long value;
};

struct Big {
    int values[100];
    const int *from;
    int more[300];
};

// kernel by_value: p0.0=read-write
// range: exact
extern "C" __global__ void by_value(Vector v)
{
    int i = AT;
    if (i < v.size)
        v.data[i] += 1;
}

// kernel view: p0.16=read p0.32=write
// range: exact
// launch: p0.0=0..9 p0.4=0..100 p0.8=200..220
extern "C" __global__ void view(View v)
{
    int x = AT, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < v.columns && y < v.rows)
        v.to[y * v.pitch + x] = v.from[y * v.pitch + x];
}

// kernel nested: p0.8=write p0.24=read
// range: exact
extern "C" __global__ void nested(Nested n)
{
    int i = AT;
    if (i < n.parts.inner[1].size)
        n.parts.inner[0].data[i + n.before] = n.parts.inner[1].data[i];
}

// kernel two_structures: p0.0=write p1.0=read
// range: exact
extern "C" __global__ void two_structures(Vector to, Vector from)
{
    int i = AT;
    if (i < min(to.size, from.size))
        to.data[i] = from.data[i];
}

// kernel large_structure: p0.400=read p1=write
// range: exact
// launch: block=1..90,1,1 grid=1..2,1,1
extern "C" __global__ void large_structure(Big big, int *to)
{
    to[AT] = big.from[AT] + big.values[threadIdx.x] + big.more[blockIdx.x];
}

// Each block its own pointers: what lists of tensors are updated with.
// kernel chunks: p0.0=write p0.8=write p0.16=write p0.24=write p0.32=write p0.40=write p0.48=write p0.56=write p0.64=read p0.72=read p0.80=read p0.88=read p0.96=read p0.104=read p0.112=read p0.120=read
// range: bounded
// why: choice
// launch: grid=1..8,1,1 block=1..40,1,1 p0.128..160=0..40
extern "C" __global__ void chunks(Chunks list)
{
    float *to = list.to[blockIdx.x];
    const float *from = list.from[blockIdx.x];
    for (int i = threadIdx.x; i < list.sizes[blockIdx.x]; i += blockDim.x)
        to[i] = from[i] * 2;
}

// kernel chosen_member: p0.64=read p0.72=read p1=write
// range: bounded
// why: choice
extern "C" __global__ void chosen_member(Chunks list, float *to)
{
    to[AT] = list.from[AT & 1][AT];
}

// kernel table: p0=write p1=read+table anything
// range: anchored
// why: memory
extern "C" __global__ void table(double *to, const double *const *from, int which)
{
    to[AT] = from[which][AT];
}

// kernel table_written: p0=read+table p1=read anything
// range: anchored
// why: memory
extern "C" __global__ void table_written(double **to, const double *from)
{
    to[blockIdx.x][threadIdx.x] = from[AT];
}

// kernel table_of_tables: p0=read+table p1=write anything
// range: anchored
// why: memory
extern "C" __global__ void table_of_tables(int ***from, int *to)
{
    to[AT] = from[blockIdx.x][threadIdx.x][2];
}

// kernel structure_in_memory: p0=read+table anything
// range: anchored
// why: memory
extern "C" __global__ void structure_in_memory(const View *views)
{
    View v = views[blockIdx.x];
    if ((int)threadIdx.x < v.columns)
        v.to[threadIdx.x] = v.from[threadIdx.x];
}

// kernel list: p0=read+table p1=write anything
// range: anchored
// why: memory
// launch: p2=0..9
extern "C" __global__ void list(const Node *first, long long *to, int most)
{
    long long sum = 0;
    for (const Node *at = first; at && most > 0; at = at->next, most--)
        sum += at->value;
    to[AT] = sum;
}

// kernel pointer_written: p0=write p1=none
// range: exact
extern "C" __global__ void pointer_written(const int **to, const int *kept)
{
    to[AT] = kept + AT;
}

// kernel pointers_compared: p0=read p1=none p2=write
// range: exact
extern "C" __global__ void pointers_compared(const int *a, const int *b, int *to)
{
    to[AT] = a + AT < b ? a[AT] : 0;
}

// kernel difference: p0=read p1=none p2=write
// range: exact
extern "C" __global__ void difference(const int *first, const int *end, int *to)
{
    long long n = end - first;
    if (n > 0)
        to[AT] = first[AT];
}

// kernel number_as_pointer: p0=read-write
// range: exact
extern "C" __global__ void number_as_pointer(unsigned long long address)
{
    *reinterpret_cast<int *>(address + 8 * AT) += 1;
}

// kernel aligned_up: p0=write
// range: exact
extern "C" __global__ void aligned_up(char *to)
{
    unsigned long long address = (reinterpret_cast<unsigned long long>(to) + 255) & ~255ull;
    reinterpret_cast<float *>(address)[AT] = 1;
}

// kernel halves: p0=write
// range: exact
extern "C" __global__ void halves(uint2 address)
{
    unsigned long long whole = (unsigned long long)address.y << 32 | address.x;
    reinterpret_cast<int *>(whole)[AT] = 7;
}

// kernel swapped: p0=read-write p1=read-write
// range: bounded
// why: choice
// launch: p2=0..5
extern "C" __global__ void swapped(int *a, int *b, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        b[AT] = a[AT + 1] + round;
        int *other = a;
        a = b;
        b = other;
    }
}

// kernel spilled: p0=write p1=read p2=read p3=read p4=read
// range: bounded
// why: choice
extern "C" __global__ void spilled(float *to, const float *a, const float *b, const float *c, const float *d, int which)
{
    const float *all[4] = {a, b, c, d};
    to[AT] = all[which & 3][AT];
}

// kernel local_array: p0=read p1=write
// range: exact
extern "C" __global__ void local_array(const int *from, int *to, int which)
{
    int values[16];
    for (int i = 0; i < 16; i++)
        values[i] = from[16 * AT + i];
    values[(which + 3) & 15] = 1;
    int sum = 0;
    for (int i = 0; i < 16; i++)
        sum += values[(i * which) & 15];
    to[AT] = sum;
}

// kernel gather: p0=write p1=read p2=read
// range: anchored
// why: memory
extern "C" __global__ void gather(float *to, const float *from, const int *indices, int n)
{
    int i = AT;
    if (i < n)
        to[i] = from[indices[i]];
}

// kernel scatter: p0=write p1=read p2=read
// range: anchored
// why: memory
extern "C" __global__ void scatter(float *to, const float *from, const long long *indices, int n)
{
    int i = AT;
    if (i < n)
        to[indices[i]] = from[i];
}

// kernel csr: p0=write p1=read p2=read p3=read p4=read
// range: anchored
// why: memory
// launch: p5=0..60
extern "C" __global__ void csr(float *y, const int *rows, const int *columns, const float *values, const float *x, int n)
{
    int row = AT;
    if (row >= n)
        return;
    float sum = 0;
    for (int i = rows[row]; i < rows[row + 1]; i++)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// kernel optional: p0=write p1=read p2=read
// range: exact
extern "C" __global__ void optional(float *to, const float *from, const float *bias)
{
    float value = from[AT];
    if (bias != nullptr)
        value += bias[threadIdx.x];
    to[AT] = value;
}
