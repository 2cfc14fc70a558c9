//! Conditions that contradict each other in one launch and not in another.

use streamsan_model::Extent;

use crate::access::launch::instantiate::{Launch, Reach, instantiate};
use crate::access::summary::conclude::analyse_kernel;
use crate::ptx;

/// `i = 1024 * block + thread`; `a[i]` is written where `m <= i < n`.
const BETWEEN: &str = r"
.version 7.8
.target sm_80
.address_size 64
.visible .entry between(.param .u64 a, .param .u32 n, .param .u32 m)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [a];
    ld.param.u32 %r0, [n];
    ld.param.u32 %r1, [m];
    mov.u32 %r2, %ctaid.x;
    shl.b32 %r2, %r2, 10;
    mov.u32 %r3, %tid.x;
    add.s32 %r4, %r2, %r3;
    setp.lt.s32 %p0, %r4, %r1;
    @%p0 bra DONE;
    setp.ge.s32 %p1, %r4, %r0;
    @%p1 bra DONE;
    mul.wide.s32 %d1, %r4, 4;
    add.s64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r4;
DONE:
    ret;
}
";

/// A word of the array and whether some thread writes it.
fn is_written(word: u64, n: u32, m: u32) -> bool {
    (u64::from(m)..u64::from(n)).contains(&word) && word / 1024 < 8 && word % 1024 < 128
}

#[test]
fn conditions_that_exclude_each_other_are_met_by_no_thread() {
    const START: u64 = 0x7f00_0000_0000;
    let kernel = analyse_kernel(&ptx::parse(BETWEEN).expect("PTX"), "between");
    let kernel = kernel.expect("a kernel").expect("it is not too large");
    for (n, m) in [(1000, 1000), (500, 5000), (1024, 1023), (1025, 1024), (5000, 500), (8192, 0)] {
        let mut params = START.to_le_bytes().to_vec();
        params.extend([n, m].iter().flat_map(|number: &u32| number.to_le_bytes()));
        let launch = Launch { grid: [8, 1, 1], block: [128, 1, 1], params: &params };
        let touched = instantiate(&kernel, &launch);
        let within = |word: u64| {
            touched.iter().any(|touched| match touched.reach {
                Reach::Bytes { extent: Extent::Range(range), .. } => {
                    (range.start..range.end).contains(&(START + 4 * word))
                }
                Reach::Bytes { extent: Extent::Strided(pattern), .. } => {
                    pattern.runs().any(|run| (run.start..run.end).contains(&(START + 4 * word)))
                }
                Reach::Anchored { .. } => true,
            })
        };
        for word in (0..8 * 1024).filter(|&word| is_written(word, n, m)) {
            assert!(within(word), "word {word} for n = {n}, m = {m}");
        }
        assert!(n > m || touched.is_empty(), "for n = {n}, m = {m}: {touched:?}");
    }
}
