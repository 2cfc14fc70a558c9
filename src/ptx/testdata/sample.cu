// Source of sample.ptx: clang-16 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70
// --cuda-feature=+ptx60 -nocudainc -nocudalib -O2 -S '-D__syncthreads()=__nvvm_bar_sync(0)'
#define G __attribute__((global))
#define D __attribute__((device))
#define S __attribute__((shared))
#define NI __attribute__((noinline))
#define TX __nvvm_read_ptx_sreg_tid_x()
#define BX __nvvm_read_ptx_sreg_ctaid_x()
#define NX __nvvm_read_ptx_sreg_ntid_x()
struct P { float a; double b; int c[3]; };
__attribute__((device)) __attribute__((noinline)) float helper(P p, int i, float* out){ if(i>100) return helper(p,i-1,out); out[i]=p.a; return p.a*i+(float)p.b; }
D int tab[4] = {1,2,3,4};
D int* ptab[2] = {tab, tab+2};
__attribute__((constant)) float cst[3] = {1.5f,2.f,3.f};
extern "C" G void k(P p, float* out, int n){ int i=BX*NX+TX; int loc[8]; for(int j=0;j<n;j++) loc[(j*i)&7]=j; if(i<n) out[i]=helper(p,i,out)+loc[i&7]+*ptab[i&1]+cst[i&1]; }
extern S float dyn[];
extern "C" G void red(const float* in, float* out){ S float s[128]; s[TX]=in[TX]; dyn[TX]=0; __syncthreads(); for(int st=64;st;st>>=1){ if(TX<st) s[TX]+=s[TX+st]; __syncthreads(); } if(TX==0) __nvvm_atom_add_gen_f(out, s[0]); }
extern "C" G void sh(const float* in, float* out){ float v=in[TX]; for(int o=16;o;o>>=1) v+=__nvvm_shfl_sync_down_f32(-1,v,o,31); if(TX==0) *out=v; }
extern "C" G void sw(int* o,int v){ switch(v){case 0:o[0]=5;break;case 1:o[1]=7;o[8]=0;break;case 2:o[9]=1;break;case 3:o[2]=o[3];break;case 4: o[5]=o[1]*3;break; case 5:o[2]+=o[7];break;} }
