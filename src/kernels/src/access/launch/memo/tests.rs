//! The memo's answers equal answers that are computed with every pointer as a number.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;

use super::{KernelAccess, Launch, MemoResult, Plan, Shapes, Workspace, work_out};
use crate::access::analyse;
use crate::access::domain::condition::Relation;
use crate::access::domain::expression::ExprId;
use crate::ptx;

const CORPUS: [&str; 6] = [
    include_str!("../../../../tests/access/calls.ptx"),
    include_str!("../../../../tests/access/dimensions.ptx"),
    include_str!("../../../../tests/access/linear.ptx"),
    include_str!("../../../../tests/access/loops.ptx"),
    include_str!("../../../../tests/access/operations.ptx"),
    include_str!("../../../../tests/access/pointers.ptx"),
];

/// Kernels that ask where their pointers lie.
const ASKING: &str = r"
.version 7.8
.target sm_80
.address_size 64
.visible .entry unless_null(.param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.s32 %p0, %r1, %r0;
    @%p0 bra DONE;
    cvta.to.global.u64 %d2, %d0;
    mul.wide.s32 %d3, %r1, 4;
    add.s64 %d4, %d2, %d3;
    st.global.u32 [%d4+-8], %r1;
    setp.eq.s64 %p1, %d1, 0;
    @%p1 bra DONE;
    add.s64 %d5, %d1, %d3;
    ld.global.u32 %r2, [%d5];
DONE:
    ret;
}
.visible .entry aligned(.param .u64 a, .param .u64 b)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    and.b64 %d2, %d0, 15;
    setp.ne.s64 %p0, %d2, 0;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d0, %d3;
    add.s64 %d5, %d1, %d3;
    @%p0 bra DONE;
    ld.global.u32 %r0, [%d4];
DONE:
    st.global.u32 [%d5], %r0;
    ret;
}
.visible .entry aligned_half(.param .u64 a, .param .u64 b)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [a];
    ld.param.u32 %r2, [a];
    ld.param.u64 %d1, [b];
    and.b32 %r2, %r2, 12;
    setp.ne.s32 %p0, %r2, 0;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d0, %d3;
    add.s64 %d5, %d1, %d3;
    @%p0 bra DONE;
    ld.global.u32 %r0, [%d4];
DONE:
    st.global.u32 [%d5], %r0;
    ret;
}
.visible .entry peeled(.param .u64 a, .param .u64 b)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [a];
    ld.param.u32 %r2, [a];
    ld.param.u64 %d1, [b];
    mov.u32 %r1, %ctaid.x;
    shl.b32 %r3, %r1, 2;
    add.s32 %r4, %r2, %r3;
    and.b32 %r4, %r4, 12;
    cvt.u64.u32 %d2, %r4;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 16;
    sub.s64 %d4, %d0, %d2;
    add.s64 %d4, %d4, %d3;
    ld.global.u32 %r0, [%d4+16];
    add.s64 %d5, %d1, %d3;
    st.global.u32 [%d5], %r0;
    ret;
}
.visible .entry up_to(.param .u64 a, .param .u64 end)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [end];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d0, %d3;
    setp.ge.u64 %p0, %d4, %d1;
    @%p0 bra DONE;
    st.global.u32 [%d4], %r1;
DONE:
    ret;
}
";

/// The kernels of the corpus, and those above.
static KERNELS: LazyLock<Vec<KernelAccess>> = LazyLock::new(|| {
    let texts = CORPUS.into_iter().chain([ASKING]);
    let mut kernels: Vec<KernelAccess> =
        texts.flat_map(|text| analyse(&ptx::parse(text).expect("PTX"))).collect();
    let asking = kernels.iter().find(|kernel| kernel.name == "unless_null").expect("it is there");
    kernels.push(negated(asking.clone()));
    kernels
});

/// The kernel with minus its pointer compared with null, as machine code does it.
fn negated(mut kernel: KernelAccess) -> KernelAccess {
    kernel.name = "unless_minus_null".to_owned();
    let conditions = kernel.accesses.iter_mut().flat_map(|access| &mut access.conditions);
    for condition in conditions.filter(|condition| condition.relation == Relation::Differs) {
        let mut minus = kernel.expressions[condition.expression.0 as usize].clone();
        minus.no_wraps.clear();
        minus.terms.iter_mut().for_each(|term| term.coefficient = -term.coefficient);
        condition.expression = ExprId(kernel.expressions.len() as u32);
        kernel.expressions.push(minus);
    }
    kernel
}

fn value() -> impl Strategy<Value = u64> {
    let top = 1u64 << 63;
    prop_oneof![
        3 => prop::sample::select(vec![0x7f00_0000_0000, 0x7f00_0010_0000, 0x7f00_0010_0008]),
        1 => 0u64..64,
        1 => prop::sample::select(vec![0, 1, 4, 4096, top - 1, top - 64, top, u64::MAX - 63, u64::MAX]),
        1 => top - 4096..top,
        1 => any::<u64>(),
    ]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => prop::sample::select(vec![0, 1, 7, 100]), 1 => any::<u32>()]
}

/// Sizes of a launch, and all words but pointers.
type Numbers = ([u32; 2], Vec<u32>);

fn numbers() -> impl Strategy<Value = Numbers> {
    let sizes = (1u32..3, prop::sample::select(vec![8u32, 33]));
    (sizes.prop_map(|(grid, block)| [grid, block]), prop::collection::vec(number(), 3))
}

/// Launches: the value of each pointer in turn, and now and then other numbers.
fn launches() -> impl Strategy<Value = Vec<(Vec<u64>, Option<Numbers>)>> {
    let others = prop::option::weighted(0.2, numbers());
    prop::collection::vec((prop::collection::vec(value(), 4), others), 1..12)
}

fn counted(shapes: &Shapes) -> usize {
    shapes.memo.values().flat_map(|memo| &memo.results).map(MemoResult::size).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn launches_by_what_is_kept_are_those_worked_out(
        kernel in any::<Index>(),
        mut numbers in numbers(),
        launches in launches(),
        cut in prop::option::weighted(0.1, 0usize..40),
    ) {
        let kernel = kernel.get(&KERNELS);
        let (mut shapes, fixed) = (Shapes::new(kernel), Plan::fixed(kernel));
        let mut workspace = Workspace::default();
        for (pointers, others) in launches {
            numbers = others.unwrap_or(numbers);
            let ([grid, block], numbers) = &numbers;
            let numbers = numbers.iter().cycle().flat_map(|number| number.to_le_bytes());
            let mut params: Vec<u8> = numbers.take(kernel.params_size as usize).collect();
            for (word, value) in kernel.pointers.iter().zip(pointers.iter().cycle()) {
                let at = word.block_offset as usize;
                params[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            params.truncate(cut.unwrap_or(params.len()));
            let launch = Launch { grid: [*grid, 2, 1], block: [*block, 1, 1], params: &params };
            let mut fresh = Workspace::default();
            work_out(kernel, &fixed, &launch, &mut fresh);
            let touched = shapes.launch(kernel, &launch, &mut workspace);
            prop_assert_eq!(touched, &fresh.touched()[..], "{}", kernel.name);
            prop_assert_eq!(shapes.size(), counted(&shapes));
        }
    }
}

fn shapes_of(name: &str, launches: &[[u64; 2]]) -> Vec<usize> {
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name).expect("a kernel");
    let (mut shapes, mut workspace) = (Shapes::new(kernel), Workspace::default());
    let sizes = launches.iter().map(|pointers| {
        let mut params = pointers.map(u64::to_le_bytes).concat();
        params.extend(100u32.to_le_bytes());
        let launch = Launch { grid: [1; 3], block: [32, 1, 1], params: &params };
        shapes.launch(kernel, &launch, &mut workspace);
        shapes.memo.values().map(|memo| memo.results.len()).sum()
    });
    sizes.collect()
}

#[test]
fn pointers_that_only_say_where_are_of_one_shape() {
    let moved = [[1 << 40, 2 << 40], [3 << 40, 3 << 40], [5 << 40, 1 << 20]];
    assert_eq!(shapes_of("unless_null", &moved), [1, 1, 1]);
    // Null, and back.
    assert_eq!(shapes_of("unless_null", &[[1 << 40, 2 << 40], [1 << 40, 0], moved[2]]), [1, 2, 2]);
    // Two words below the first address there is.
    assert_eq!(shapes_of("unless_null", &[moved[0], [4, 1 << 40]]), [1, 2]);
    assert_eq!(shapes_of("aligned", &[moved[0], [1 << 40, 7 << 40]]), [1, 1]);
    assert_eq!(shapes_of("aligned", &[moved[0], [3 << 40, 2 << 40]]), [1, 2]);
    for name in ["aligned_half", "peeled"] {
        assert_eq!(shapes_of(name, &[moved[0], [3 << 40, 2 << 40], moved[2]]), [1, 1, 1]);
        let unaligned = [[1 << 40 | 4, 2 << 40], [3 << 40 | 4, 7 << 40]];
        assert_eq!(shapes_of(name, &[moved[0], unaligned[0], unaligned[1]]), [1, 2, 2]);
    }
    assert_eq!(shapes_of("up_to", &moved), [1, 2, 3]);
    assert_eq!(shapes_of("unless_minus_null", &[moved[0], moved[1], [1 << 40, 0]]), [1, 1, 2]);
}
