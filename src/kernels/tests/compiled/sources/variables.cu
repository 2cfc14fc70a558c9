// Variables of the module; textures and surfaces.

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__constant__ float weights[64];
__constant__ int table_size = 40;
__device__ int counter;
__device__ float field[4096];
__device__ int *held;
__device__ const float *several[4];
__constant__ float *constant_pointer;
struct Pair {
    const float *first;
    int n;
    float *second;
};
__constant__ Pair pair;
__device__ float **held_table;
__device__ int *bumped;

// kernel constants: p0=write weights=read
// range: exact
extern "C" __global__ void constants(float *to)
{
    to[AT] = weights[threadIdx.x % 64];
}

// kernel constant_scalar: p0=write table_size=read
// range: bounded
// why: memory
extern "C" __global__ void constant_scalar(float *to)
{
    int i = AT;
    if (i < table_size)
        to[i] = 1;
}

// kernel counted: counter=atomic
// range: exact
extern "C" __global__ void counted()
{
    atomicAdd(&counter, 1);
}

// kernel field_read: p0=write field=read
// range: exact
extern "C" __global__ void field_read(float *to)
{
    to[AT] = field[AT];
}

// kernel field_updated: p0=read field=read-write
// range: exact
extern "C" __global__ void field_updated(const float *from)
{
    field[AT] += from[AT];
}

// kernel held_pointer: held=read *held=write p0=read
// range: exact
extern "C" __global__ void held_pointer(const int *from)
{
    held[AT] = from[AT];
}

// kernel several_pointers: several=read+table p0=write anything
// range: anchored
// why: memory
extern "C" __global__ void several_pointers(float *to)
{
    to[AT] = several[blockIdx.x & 3][threadIdx.x];
}

// kernel pointer_in_constant: constant_pointer=read *constant_pointer=write p0=read
// range: exact
extern "C" __global__ void pointer_in_constant(const float *from)
{
    constant_pointer[AT] = from[AT];
}

// kernel pointers_in_structure: pair=read *pair=read *pair.16=write
// range: bounded
// why: memory
extern "C" __global__ void pointers_in_structure()
{
    int i = AT;
    if (i < pair.n)
        pair.second[i] = pair.first[i];
}

// kernel element_of_held: several=read *several.16=read p0=write
// range: exact
extern "C" __global__ void element_of_held(float *to)
{
    to[AT] = several[2][threadIdx.x];
}

// kernel updated_through_held: held=read *held=atomic p0=read
// range: anchored
// why: memory
extern "C" __global__ void updated_through_held(const int *from)
{
    atomicAdd(&held[from[AT]], 1);
}

// kernel held_or_given: held=read *held=read p0=write p1=read
// range: bounded
// why: choice
extern "C" __global__ void held_or_given(int *to, const int *from, int which)
{
    const int *at = which > 20 ? held : from;
    to[AT] = at[AT];
}

// kernel through_held_table: held_table=read+table *held_table=read p0=read anything
// range: anchored
// why: memory
extern "C" __global__ void through_held_table(const float *from)
{
    held_table[blockIdx.x & 3][threadIdx.x] = from[AT];
}

// kernel bump: bumped=read-write+table p0=read anything
// range: anchored
// why: memory
extern "C" __global__ void bump(const int *from)
{
    bumped[AT] = from[AT];
    __syncthreads();
    if (AT == 0)
        bumped = bumped + 1;
}

// kernel either: p0=write p1=read field=read
// range: exact
extern "C" __global__ void either(float *to, const float *from, int which)
{
    const float *at = which > 20 ? field : from;
    to[AT] = at[AT];
}

// kernel textured: p0=read:handle p1=write
// range: exact
extern "C" __global__ void textured(cudaTextureObject_t texture, float *to)
{
    to[AT] = tex2D<float>(texture, AT + 0.5f, 0.5f);
}

// kernel fetched: p0=read:handle p1=write
// range: exact
extern "C" __global__ void fetched(cudaTextureObject_t texture, int4 *to)
{
    to[AT] = tex1Dfetch<int4>(texture, AT);
}

// kernel surface_read: p0=read:handle p1=write
// range: exact
extern "C" __global__ void surface_read(cudaSurfaceObject_t surface, float *to)
{
    to[AT] = surf2Dread<float>(surface, AT * 4, blockIdx.y);
}

// kernel surface_written: p0=write:handle p1=read
// range: exact
extern "C" __global__ void surface_written(cudaSurfaceObject_t surface, const float *from)
{
    surf2Dwrite(from[AT], surface, AT * 4, blockIdx.y);
}

struct Textures {
    int n;
    cudaTextureObject_t texture[2];
    float *to;
};

// kernel textures_in_structure: p0.8=read:handle p0.16=read:handle p0.24=write
// range: exact
extern "C" __global__ void textures_in_structure(Textures all)
{
    int i = AT;
    if (i < all.n)
        all.to[i] = tex2D<float>(all.texture[0], i, 0) + tex2D<float>(all.texture[1], i, 0);
}
