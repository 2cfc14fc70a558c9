//! Labels of kernels where many stand beside each other: a label begins with what tells a kernel
//! from its neighbours.
//!
//! Libraries launch few functions with many functors: of `vectorized_elementwise_kernel<4,
//! AUnaryFunctor<float, float, float, MulFunctor<float>>, ...>` the function says nothing, and
//! `MulFunctor` says all. Compilers put a word for the shape of a kernel before the words for its
//! work (`triton_poi_fused_add_0`, `loop_multiply_fusion`), and libraries the architecture
//! (`ampere_sgemm_128x64_nn`). These come behind, in brackets.
//!
//! The rules know no kernel by its name, only the words by which libraries call functors, carriers
//! of functors, and data.

use crate::demangle::{bare, cut};
use crate::pieces::{Kind, Piece, components, parse};
use crate::printable;
use std::borrow::Cow;

/// Bytes above which a label is cut.
const LONGEST: usize = 128;
/// Depth of template arguments beyond which nothing is looked for.
const DEEPEST: usize = 24;

/// Functions that say nothing: they carry another one.
const CARRIERS: [&str; 12] = [
    "kernel",
    "Kernel",
    "Kernel2",
    "device_kernel",
    "static_kernel",
    "global_kernel",
    "_kernel_agent",
    "kernel_agent",
    "KernelAgent",
    "multi_tensor_apply_kernel",
    "run",
    "main",
];
/// Words for functors that only hold another one, by their begins.
const HOLDERS: [&str; 11] = [
    "ParallelForAgent",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "UnaryFunctor",
    "BinaryFunctor",
    "UnaryOp",
    "BinaryOp",
    "PointwiseOp",
    "TernaryOp",
    "ReduceOp",
    "func_wrapper",
];
/// Words for template arguments that say how data lie, or how a kernel is tuned.
const DATA: [&str; 22] = [
    "array",
    "Calculator",
    "LoadWith",
    "StoreWith",
    "Metadata",
    "olicy",
    "terator",
    "_ptr",
    "tuple",
    "Half",
    "BFloat16",
    "complex",
    "arams",
    "raits",
    "TensorMap",
    "Tensor<",
    "constant",
    "curand",
    "CUDAGenerator",
    "Evaluator",
    "ArgRange",
    "Descriptor",
];
/// Words before the words for a kernel's work in names that are not mangled.
const SHAPES: [&str; 11] = [
    "triton_poi_fused_",
    "triton_red_fused_",
    "triton_per_fused_",
    "triton_tem_fused_",
    "triton_for_fused_",
    "triton_",
    "wrapped_",
    "ampere_",
    "volta_",
    "turing_",
    "hopper_",
];

/// How much a template argument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A functor that holds another one.
    Holder,
    /// A class of any kind.
    Class,
    /// A functor, or the function around a lambda.
    Functor,
}

/// The begin of a [`label()`], without the function that carries it: `MulFunctor`.
pub fn gist(name: &str) -> Cow<'_, str> {
    let label = label(name);
    match label.strip_suffix(')').and_then(|label| label.rsplit_once(" (")) {
        Some((what, _)) if !what.is_empty() => Cow::Owned(what.to_owned()),
        _ => label,
    }
}

/// A kernel's name with what differs between neighbours first: `MulFunctor
/// (vectorized_elementwise_kernel)`, `sgemm_128x64_nn (ampere)`; without namespaces,
/// [`printable()`].
pub fn label(name: &str) -> Cow<'_, str> {
    let Some(readable) = bare(name) else {
        return match turned(name) {
            Some(turned) => shown(turned),
            None => printable(name),
        };
    };
    let Some(pieces) = parse(&readable) else { return shown(readable) };
    let parts = components(&pieces);
    let Some(function) = parts.iter().rev().find_map(|part| named(part)) else {
        return shown(readable);
    };
    let carries = CARRIERS.contains(&function.as_str());
    let least = if carries { Rank::Holder } else { Rank::Functor };
    let arguments = parts.last().map(Vec::as_slice).unwrap_or_default();
    let found = best_of(arguments, DEEPEST).filter(|(rank, _)| *rank >= least);
    shown(match found {
        Some((_, what)) => {
            let what = turned(&what).unwrap_or(what);
            let says_nothing = carries && function != "multi_tensor_apply_kernel";
            if says_nothing || what == function { what } else { format!("{what} ({function})") }
        }
        None if carries => {
            let around = parts.iter().rev().skip(1).find_map(|part| named(part));
            around.unwrap_or(function)
        }
        None => function,
    })
}

fn shown(mut text: String) -> Cow<'static, str> {
    cut(&mut text, LONGEST);
    Cow::Owned(printable(&text).into_owned())
}

/// A name that is not mangled, or the name of a class, with the words for its shape behind.
fn turned(name: &str) -> Option<String> {
    let turn = |shape: &str, rest: &str| {
        // A number alone is no name.
        let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic());
        is_name.then(|| format!("{rest} ({})", shape.trim_end_matches('_')))
    };
    if let Some(found) = SHAPES.iter().find_map(|shape| turn(shape, name.strip_prefix(shape)?)) {
        return Some(found);
    }
    if name.contains("_fusion") {
        let shapes = ["loop_", "input_"];
        return shapes.iter().find_map(|shape| turn(shape, name.strip_prefix(shape)?));
    }
    // `sm80_xmma_gemm_...`, `cutlass_80_simt_sgemm_...`
    let (first, rest) = name.split_once('_')?;
    let (second, rest) = rest.split_once('_')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_architecture = (first == "cutlass" && number(second))
        || (second == "xmma" && first.strip_prefix("sm").is_some_and(number));
    is_architecture.then(|| turn(&format!("{first}_{second}"), rest)).flatten()
}

/// The name that a part of a path begins with, where it is one of a function or class.
fn named(part: &[Piece]) -> Option<String> {
    let Some(Piece::Text(text)) = part.first() else { return None };
    let text = text.trim_start_matches("const ").trim_end_matches(['&', '*', ' ']);
    let text = text.trim_end_matches(" const").trim();
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.starts_with("operator")
        && !text.contains(' ');
    is_name.then(|| text.to_owned())
}

/// What says most in the template arguments of a part of a path; the first one of its rank.
fn best_of(part: &[Piece], depth: usize) -> Option<(Rank, String)> {
    let mut best: Option<(Rank, String)> = None;
    let lists = part.iter().filter_map(|piece| match piece {
        Piece::List(list) if list.kind == Kind::Angle => Some(list),
        _ => None,
    });
    for found in lists.flat_map(|list| &list.items).filter_map(|item| says(item, depth)) {
        if best.as_ref().is_none_or(|(rank, _)| found.0 > *rank) {
            best = Some(found);
        }
    }
    best
}

/// What a template argument says.
fn says(item: &[Piece], depth: usize) -> Option<(Rank, String)> {
    let depth = depth.checked_sub(1)?;
    let parts = components(item);
    let is_lambda = parts.last()?.first().is_some_and(|piece| piece.is(Kind::Curly));
    let place = parts.iter().rposition(|part| named(part).is_some())?;
    let mut name = named(&parts[place])?;
    let inner = best_of(&parts[place], depth);
    if let Some((Rank::Functor, _)) = inner {
        return inner;
    }
    let mut rank = if is_lambda || parts.len() > place + 1 {
        Rank::Functor
    } else if HOLDERS.iter().any(|begin| name.starts_with(begin)) {
        Rank::Holder
    } else if is_functor(&name) {
        Rank::Functor
    } else if is_data(&name) {
        return None;
    } else {
        Rank::Class
    };
    // `__transform::functor`: the name of the algorithm is outside.
    if matches!(name.as_str(), "functor" | "op" | "type") {
        rank = Rank::Functor;
        let outer = parts[..place].iter().rev().find_map(|part| named(part));
        name = outer.unwrap_or(name).trim_start_matches('_').to_owned();
    }
    match inner {
        Some((inner_rank, what)) if inner_rank > rank => Some((inner_rank, what)),
        _ => Some((rank, name)),
    }
}

fn is_functor(name: &str) -> bool {
    name.contains("unctor") || ["Op", "Ops", "_op"].iter().any(|end| name.ends_with(end))
}

/// Whether a name is one of data, of tuning, or of a type of the language.
fn is_data(name: &str) -> bool {
    let types = ["int", "float", "double", "bool", "char", "long", "short", "void", "unsigned"];
    types.contains(&name)
        || name == "Tensor"
        || ["true", "false", "half", "signed"].contains(&name)
        || DATA.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{gist, label};
    use proptest::prelude::*;

    /// Kernels as the drivers' traces name them: mangled where C++ made them.
    #[test]
    fn labels_begin_with_what_differs() {
        for (name, expected) in [
            // PyTorch: functors in functors, lambdas in functions, lambdas in functors.
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15bina\
                 ry_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
                "MulFunctor (vectorized_elementwise_kernel)",
            ),
            (
                "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_13BUn\
                 aryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEEEEvRNS_18TensorIteratorBaseERKT_E\
                 UliE_EEviT1_",
                "MulFunctor (elementwise_kernel)",
            ),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_21CUDAFunctorOnSelf_addIfEESt5\
                 arrayIPcLm2EEEEviT0_T1_",
                "CUDAFunctorOnSelf_add (vectorized_elementwise_kernel)",
            ),
            (
                "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23\
                 direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE_EEvS\
                 4_RKT_EUliE_EEviT1_",
                "direct_copy_kernel_cuda (elementwise_kernel)",
            ),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_49_GLOBAL__N__d2ba64fb_16_T\
                 ensorCompare_cu_71e06f4e19launch_clamp_scalarERNS_18TensorIteratorBaseEN3c106ScalarES6\
                 _NS0_6detail11ClampLimitsEENKUlvE_clEvENKUlvE5_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
                "launch_clamp_scalar (vectorized_elementwise_kernel)",
            ),
            (
                "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11s\
                 um_functorIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",
                "sum_functor (reduce_kernel)",
            ),
            (
                "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EE\
                 EEEvT1_",
                "MeanOps (reduce_kernel)",
            ),
            (
                "_ZN2at6native55_GLOBAL__N__d25d856e_22_ForeachBinaryOpList_cu_a911ec4325multi_tenso\
                 r_apply_kernelINS1_18TensorListMetadataILi2EEENS1_24BinaryOpListAlphaFunctorIfLi2ELi2E\
                 Li0EEEJSt4plusIfEfEEEvT_T0_DpT1_",
                "plus (multi_tensor_apply_kernel)",
            ),
            (
                "_ZN2at6native54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu_0c5b6e8543distrib\
                 ution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda20normal_and_tra\
                 nsformIffPNS_17CUDAGeneratorImplEZZZNS4_13normal_kernelIS7_EEvRKNS_10TensorBas\
                 eEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvRNS_18TensorIteratorBaseET1_T2_EUlP24c\
                 urandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SM_SF\
                 _EEvSH_SJ_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESI_SJ_",
                "normal_kernel (distribution_elementwise_grid_stride_kernel)",
            ),
            // cuBLAS and CUTLASS.
            (
                "_ZN7cutlass7Kernel2I42cutlass_80_simt_sgemm_128x32_8x5_nn_align1EEvNT_6ParamsE",
                "simt_sgemm_128x32_8x5_nn_align1 (cutlass_80)",
            ),
            (
                "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_alig\
                 na4_alignc4_execute_kernel__5x_cublas",
                "gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_align\
                 c4_execute_kernel__5x_cublas (sm80_xmma)",
            ),
            ("ampere_sgemm_128x64_nn", "sgemm_128x64_nn (ampere)"),
            (
                "_Z11scal_kernelIffLi1ELb1ELi6ELi5ELi5ELi3EEv21cublasTransposeParamsIT0_EPKT_PS3_PKS1_",
                "scal_kernel",
            ),
            (
                "_ZN8internal5gemvx6kernelIiiffffLb0ELb1ELb0ELb0ELi6ELb0E18cublasGemvParamsExIi30cub\
                 lasGemvTensorStridedBatchedIKfES5_S3_IfEfEEENSt9enable_ifIXntT5_EvE4typeET11_",
                "gemvx",
            ),
            (
                "_ZN8cublasLt8epilogue4impl12globalKernelILi8ELi32EfffLb1ELb1ELi1EEEviilPT1_18cublas\
                 LtEpilogue_tiPT2_lPvlllPT3_lPi",
                "globalKernel",
            ),
            // Triton, JAX and XLA.
            ("triton_poi_fused_add_mul_0", "add_mul_0 (triton_poi_fused)"),
            ("triton_red_fused_0", "red_fused_0 (triton)"),
            ("add_kernel", "add_kernel"),
            ("loop_multiply_fusion", "multiply_fusion (loop)"),
            ("input_reduce_fusion_1", "reduce_fusion_1 (input)"),
            ("wrapped_broadcast", "broadcast (wrapped)"),
            ("fusion_12", "fusion_12"),
            ("_ZN15stream_executor3gpu17xla_fp_comparisonIfEEvPT_S3_fmPi", "xla_fp_comparison"),
            (
                "_ZN15stream_executor3gpu56_GLOBAL__N__0adca48f_23_delay_kernel_cuda_cu_cc_a9426d21\
                 11DelayKernelEPVNS_17GpuSemaphoreStateES2_",
                "DelayKernel",
            ),
            // cub, thrust and Eigen.
            (
                "_ZN3cub16_V_300200_SM_7506detail6reduce28DeviceReduceSingleTileKernelINS2_10po\
                 licy_hubIfjN4cuda3std3__44plusIvEEE10Policy1000EPfSC_iS9_ffNS7_8identityEEEvT0\
                 _T1_T2_T3_T4_T6_",
                "DeviceReduceSingleTileKernel",
            ),
            (
                "_ZN3cub28DeviceReduceSingleTileKernelINS_18DeviceReducePolicyImiiN6thrust4plus\
                 IiEEE9Policy600EPmPiiS4_iEEvT0_T1_T2_T3_T4_",
                "DeviceReduceSingleTileKernel",
            ),
            ("_ZN3cub17CUB_200200_860_NS11EmptyKernelIvEEvv", "EmptyKernel"),
            (
                "_ZN6thrust8cuda_cub4core13_kernel_agentINS0_14__parallel_for16ParallelForAgent\
                 INS0_20__uninitialized_fill7functorINS_10device_ptrIfEEfEEmEES9_mEEvT0_T1_",
                "uninitialized_fill",
            ),
            (
                "_ZN6thrust8cuda_cub4core13_kernel_agentINS0_14__parallel_for16ParallelForAgent\
                 INS0_11__transform17unary_transform_fIPKiNS_10device_ptrIiEENS5_14no_stencil_t\
                 agENS_8identityIiEENS5_21always_true_predicateEEElEESF_lEEvT0_T1_",
                "unary_transform_f",
            ),
            (
                "_ZN6thrust8cuda_cub4core13_kernel_agentINS0_12__merge_sort10MergeAgentIPP8hitt\
                 ableS7_lPFbPKS5_S9_ENS_6detail17integral_constantIbLb0EEEEEbS7_S7_lS7_S7_SB_Pl\
                 lEEvT0_T1_T2_T3_T4_T5_T6_T7_T8_",
                "MergeAgent",
            ),
            (
                "_ZN5Eigen8internal15EigenMetaKernelINS_15TensorEvaluatorIKNS_14TensorAssignOpI\
                 NS_9TensorMapINS_6TensorIfLi1ELi0ElEELi16EEEKNS_19TensorCwiseBinaryOpINS0_13sc\
                 alar_sum_opIffEEKS7_SB_EEEENS_9GpuDeviceEEElEEvT_T0_",
                "scalar_sum_op (EigenMetaKernel)",
            ),
            (
                "_ZN5Eigen8internal15EigenMetaKernelINS_15TensorEvaluatorIKNS_14TensorAssignOpI\
                 NS_9TensorMapINS_6TensorIjLi3ELi1ExEELi16ENS_11MakePointerEEEKNS_17TensorShuff\
                 lingOpIKNS_5arrayIiLy3EEEKNS4_INS5_IKjLi3ELi1ExEELi16ES7_EEEEEENS_9GpuDeviceEE\
                 ExEEvT_T0_",
                "TensorShufflingOp (EigenMetaKernel)",
            ),
            // One's own.
            ("_Z6SquarePKiPxi", "Square"),
            ("_ZN2ns5scaleIfEEvPT_PKS1_S1_i", "scale"),
            ("_ZN4demo4fill17h05af221e174051e9E", "fill"),
            ("_RNvNtC4demo6kernel4fill", "fill"),
            ("produce", "produce"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(label(name), expected, "{name}");
            assert_eq!(gist(name), expected.split(" (").next().unwrap_or_default(), "{name}");
        }
    }

    #[test]
    fn names_of_programs_are_printable() {
        assert_eq!(label("loop_\u{1b}_fusion"), "loop_\\x1b_fusion");
        assert_eq!(label("wrapped_a\u{1b}[2J"), "a\\x1b[2J (wrapped)");
    }

    proptest! {
        #[test]
        fn no_label_is_empty_or_too_long(rest in "[0-9A-Za-z_<>(){},: ]{0,60}", deep in 0usize..300) {
            let nested = format!("_Z1f{}{rest}", "IS".repeat(deep));
            let arguments = format!("_ZN2at6kernelI{}1bI1aE{}EEvv", "N1cI".repeat(deep.min(40)), "EE".repeat(deep.min(40)));
            for name in [format!("_Z{rest}"), format!("_R{rest}"), nested, arguments] {
                let label = label(&name);
                prop_assert!(!label.is_empty());
                prop_assert!(label.len() <= name.len().max(4 * super::LONGEST), "{}", label);
            }
        }
    }
}
