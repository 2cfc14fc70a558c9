// Source of kernels.ptx: clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70
// --cuda-feature=+ptx60 -nocudainc -nocudalib -O2 -S
#define GLOBAL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define SYNC() __nvvm_bar_sync(0)
#define TX __nvvm_read_ptx_sreg_tid_x()
#define TY __nvvm_read_ptx_sreg_tid_y()
#define BX __nvvm_read_ptx_sreg_ctaid_x()
#define BY __nvvm_read_ptx_sreg_ctaid_y()
#define NX __nvvm_read_ptx_sreg_ntid_x()
#define GX __nvvm_read_ptx_sreg_nctaid_x()

GLOBAL vadd(const float *a, const float *b, float *c, int n) {
  int i = BX * NX + TX;
  if (i < n) c[i] = a[i] + b[i];
}
GLOBAL fill(unsigned *p, unsigned value, int n) {
  int i = BX * NX + TX;
  if (i < n) p[i] = value;
}
GLOBAL scale(double *p, double k, int n) {
  int i = BX * NX + TX;
  if (i < n) p[i] *= k;
}
GLOBAL saxpy(int n, float a, const float *x, float *y) {
  for (int i = BX * NX + TX; i < n; i += NX * GX) y[i] = a * x[i] + y[i];
}
GLOBAL reduce(const float *in, float *out) {
  SHARED float s[128];
  s[TX] = in[BX * 128 + TX];
  SYNC();
  for (int step = 64; step; step >>= 1) {
    if (TX < step) s[TX] += s[TX + step];
    SYNC();
  }
  if (TX == 0) out[BX] = s[0];
}
extern SHARED float dynamic[];
GLOBAL reverse(const float *in, float *out, int n) {
  dynamic[TX] = in[TX];
  SYNC();
  out[TX] = dynamic[n - 1 - TX];
}
GLOBAL warp_sum(const float *in, float *out) {
  float v = in[BX * 32 + TX];
  for (int o = 16; o; o >>= 1) v += __nvvm_shfl_sync_down_f32(-1, v, o, 31);
  if (TX == 0) out[BX] = v;
}
#define N 32
#define T 8
GLOBAL matmul(const float *a, const float *b, float *c) {
  SHARED float sa[T][T], sb[T][T];
  int row = BY * T + TY, col = BX * T + TX;
  float sum = 0;
  for (int t = 0; t < N / T; t++) {
    sa[TY][TX] = a[row * N + t * T + TX];
    sb[TY][TX] = b[(t * T + TY) * N + col];
    SYNC();
    for (int k = 0; k < T; k++) sum += sa[TY][k] * sb[k][TX];
    SYNC();
  }
  c[row * N + col] = sum;
}
GLOBAL pointer_table(float **rows, float *sums, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += rows[TX][i];
  sums[TX] = sum;
}
struct Job {
  int offset;
  float factor;
  double *where;
  short weights[5];
};
GLOBAL by_value(Job job, int n) {
  int i = TX;
  if (i < n) job.where[i + job.offset] = job.factor * job.weights[i % 5];
}
GLOBAL histogram(const unsigned *in, unsigned *bins, float *total, unsigned long long *most) {
  unsigned v = in[BX * NX + TX];
  __nvvm_atom_add_gen_i((volatile int *)&bins[v & 7], 1);
  __nvvm_atom_add_gen_f((volatile float *)total, 0.5f);
  __nvvm_atom_max_gen_ull((volatile unsigned long long *)most, v);
}
DEVICE __attribute__((noinline)) int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
DEVICE __attribute__((noinline)) double weigh(Job job, int i) {
  return job.weights[i] * job.factor;
}
GLOBAL calls(int *out, double *weights, Job job) {
  out[TX] = ackermann(2, TX);
  weights[TX] = weigh(job, TX);
}
DEVICE int twice(int x) { return 2 * x; }
DEVICE int square(int x) { return x * x; }
typedef int (*Function)(int);
DEVICE Function functions[2] = {twice, square};
GLOBAL through_pointer(int *out) { out[TX] = functions[TX & 1](TX); }
GLOBAL local_array(const int *order, int *out) {
  int mine[16];
  for (int i = 0; i < 16; i++) mine[order[i]] = i * i + TX;
  int sum = 0;
  for (int i = 0; i < 16; i++) sum = sum * 3 + mine[(order[TX] + i) & 15];
  out[TX] = sum;
}
struct alignas(16) Four { float x, y, z, w; };
GLOBAL vectors(const Four *in, Four *out) {
  Four v = in[TX];
  out[TX] = Four{v.w, v.z, v.y, v.x};
}
DEVICE int table[4] = {3, 1, 4, 1};
DEVICE int *where = &table[2];
__attribute__((constant)) short weights[6] = {-1, 2, -3, 4, -5, 6};
GLOBAL globals(int *out) { out[TX] = table[TX & 3] + *where * 100 + weights[TX] * 1000; }
GLOBAL choose(int *out, int n) {
  int v = out[TX];
  switch (v) {
  case 0: v = 5; break;
  case 1: v = n * 7; break;
  case 2: v = -n; break;
  case 3: v = n / 3; break;
  case 4: v = n % 5; break;
  case 5: v = n << 3; break;
  default: v = 99;
  }
  out[TX] = v;
}
GLOBAL bytes(const signed char *in, unsigned char *out, long long *wide) {
  out[TX] = in[TX] * 3;
  wide[TX] = in[TX];
}
GLOBAL spin(volatile int *flag, int *out) {
  while (*flag == 0) {}
  *out = *flag;
}
GLOBAL handover(volatile int *flag, int *out) {
  if (BX == 0) {
    while (*flag == 0) {}
    out[0] = *flag;
  } else {
    *flag = 7;
  }
}
