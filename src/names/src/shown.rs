//! Names of kernels for people: the part of a name that tells one kernel from another, in one line.
//!
//! The steps, in this order:
//! 1. Result and parameters are left out, and anonymous namespaces.
//! 2. Within template arguments, names lose their namespaces: `std::array<char*, 2>` is
//!    `array<char*, 2>`. A lambda is named by its enclosing function and its own parameters,
//!    `copy_kernel::{lambda(float)#1}`, and a number loses its type.
//! 3. A name that is still longer than [`KERNEL`] bytes has `...` for some template arguments: lists
//!    of arguments are opened from the outermost inwards and from left to right, each as far as the
//!    whole name fits.

use crate::demangle::{bare, cut};
use crate::pieces::{Kind, List, Piece, components, parse, render};
use crate::printable;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Length in bytes above which template arguments are left out of a name.
pub const KERNEL: usize = 128;
/// Length of the text for a list of arguments that is left out, with its brackets.
const LEFT_OUT: usize = "<...>".len();

/// A kernel's name for reports for people, [`printable()`]. A name that does not demangle stays
/// whole, however long.
pub fn kernel(name: &str) -> Cow<'_, str> {
    let Some(readable) = bare(name) else { return printable(name) };
    let Some(pieces) = parse(&readable) else { return shortest(readable) };
    let mut pieces = tidy_name(&pieces);
    fit(&mut pieces, KERNEL);
    let mut text = String::new();
    render(&pieces, &mut text);
    shortest(text)
}

/// Shortens a name whose function alone is too long.
fn shortest(mut text: String) -> Cow<'static, str> {
    cut(&mut text, KERNEL);
    Cow::Owned(printable(&text).into_owned())
}

fn is_anonymous(component: &[Piece]) -> bool {
    let [Piece::List(List { kind: Kind::Round, items, .. })] = component else { return false };
    let [item] = items.as_slice() else { return false };
    matches!(item.as_slice(), [Piece::Text(text)] if text == "anonymous namespace")
}

fn joined(components: impl IntoIterator<Item = Vec<Piece>>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, component) in components.into_iter().enumerate() {
        if index > 0 {
            pieces.push(Piece::Text("::".to_owned()));
        }
        pieces.extend(component);
    }
    pieces
}

/// The function's own name, without anonymous namespaces.
fn tidy_name(pieces: &[Piece]) -> Vec<Piece> {
    let named = components(pieces).into_iter().filter(|component| !is_anonymous(component));
    joined(named).into_iter().map(tidy_list).collect()
}

/// Tidies the contents of brackets.
fn tidy_list(piece: Piece) -> Piece {
    match piece {
        Piece::List(List { kind, items, shown }) => {
            let items = items.iter().map(|item| tidy_argument(item)).collect();
            Piece::List(List { kind, items, shown })
        }
        text @ Piece::Text(_) => text,
    }
}

/// A template argument, or another name within brackets.
fn tidy_argument(pieces: &[Piece]) -> Vec<Piece> {
    if let [Piece::List(cast), Piece::Text(number)] = pieces
        && cast.kind == Kind::Round
        && number.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    {
        let cast = tidy_list(Piece::List(cast.clone()));
        let number = Piece::Text(number.clone());
        return if is_builtin(&cast) { vec![number] } else { vec![cast, number] };
    }
    // `Type as Trait`, of Rust, is two names.
    if pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.contains(" as "))) {
        return pieces.iter().cloned().map(tidy_list).collect();
    }
    let parts = components(pieces);
    let (last, before) = parts.split_last().expect("there is one");
    let is_lambda = last.first().is_some_and(|piece| piece.is(Kind::Curly));
    let kept = if is_lambda {
        let owner = before.iter().rev().find(|part| is_named(part)).cloned();
        joined(owner.map(is_stood_in).into_iter().chain([last.clone()]))
    } else {
        // A part with template arguments of its own is more than a namespace.
        let from = before.iter().position(|part| part.iter().any(|p| p.is(Kind::Angle)));
        let outer = before[from.unwrap_or(before.len())..].iter().cloned().map(is_stood_in);
        joined(outer.filter(|part| !part.is_empty()).chain([last.clone()]))
    };
    let sign = match pieces.first() {
        Some(Piece::Text(text)) if kept.first() != pieces.first() => sign(text),
        _ => "",
    };
    let mut tidy: Vec<Piece> = Vec::new();
    if !sign.is_empty() {
        tidy.push(Piece::Text(sign.to_owned()));
    }
    tidy.extend(kept.into_iter().map(tidy_list));
    tidy
}

/// The operator or sign in front of a name, which is no part of the name.
fn sign(text: &str) -> &str {
    let end = text.find(|c| !matches!(c, '&' | '*' | '!' | '-' | '~')).unwrap_or(text.len());
    // Only before a name that lost its namespaces.
    if end < text.len() { &text[..end] } else { "" }
}

/// Whether a part is the name of a function or class: no lambda, no call operator, no anonymous
/// namespace.
fn is_named(part: &[Piece]) -> bool {
    matches!(part.first(), Some(Piece::Text(text)) if !text.starts_with("operator()"))
}

/// An enclosing function, without its parameters and the text behind them.
fn is_stood_in(part: Vec<Piece>) -> Vec<Piece> {
    part.into_iter().take_while(|piece| !piece.is(Kind::Round)).collect()
}

/// Whether a cast is to an integer type of the language.
fn is_builtin(cast: &Piece) -> bool {
    let Piece::List(List { items, .. }) = cast else { return false };
    let [item] = items.as_slice() else { return false };
    let [Piece::Text(name)] = item.as_slice() else { return false };
    let words = ["unsigned", "signed", "char", "short", "int", "long", "__int128"];
    name.split(' ').all(|word| words.contains(&word))
}

/// Leaves out template arguments until a name fits.
fn fit(pieces: &mut [Piece], longest: usize) {
    let mut length = length(pieces);
    let mut closed: VecDeque<&mut List> = VecDeque::new();
    for piece in pieces {
        lists(piece, &mut closed);
    }
    while let Some(list) = closed.pop_front() {
        list.shown = 0;
        // Without its arguments it is counted already.
        let base = length - LEFT_OUT;
        let mut inner = "<>".len();
        for (index, item) in list.items.iter().enumerate() {
            let separator = if index > 0 { ", ".len() } else { 0 };
            inner += separator + self::length(item);
            let is_last = index + 1 == list.items.len();
            let rest = if is_last { 0 } else { ", ...".len() };
            if base + inner + rest > longest {
                break;
            }
            list.shown = index + 1;
            length = base + inner + rest;
        }
        if list.items.is_empty() {
            length = base + inner;
        }
        for item in list.items.iter_mut().take(list.shown) {
            for piece in item {
                lists(piece, &mut closed);
            }
        }
    }
}

/// The outermost lists of template arguments.
fn lists<'a>(piece: &'a mut Piece, found: &mut VecDeque<&'a mut List>) {
    let Piece::List(list) = piece else { return };
    if list.kind == Kind::Angle {
        found.push_back(list);
    } else {
        list.items.iter_mut().flatten().for_each(|piece| lists(piece, found));
    }
}

/// Length in bytes of pieces with all template arguments left out.
fn length(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::List(list) if list.kind == Kind::Angle => LEFT_OUT,
        Piece::List(list) => {
            let separators = list.items.len().saturating_sub(1) * ", ".len();
            "()".len() + separators + list.items.iter().map(|item| length(item)).sum::<usize>()
        }
    };
    pieces.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::{KERNEL, kernel};
    use crate::{printable, whole};
    use proptest::prelude::*;

    #[test]
    fn kernels_are_shown_in_a_line() {
        for (mangled, shown) in [
            ("cuMemcpyAsync", "cuMemcpyAsync"),
            ("_Znot", "_Znot"),
            ("Square", "Square"),
            ("_Z6SquarePKiPxi", "Square"),
            ("_ZN12_GLOBAL__N_14fillEPf", "fill"),
            ("_ZN4demo4fill17h05af221e174051e9E", "demo::fill"),
            ("_RNvNtC4demo6kernel4fill", "demo::kernel::fill"),
            (
                "_RNvXCs15kBYyAo9fc_7mycrateNtB2_4DropNtB2_5Trait4drop",
                "<mycrate::Drop as mycrate::Trait>::drop",
            ),
            (
                "_ZN15stream_executor3gpu56_GLOBAL__N__0adca48f_23_delay_kernel_cuda_cu_cc_a9426d21\
                 11DelayKernelEPVNS_17GpuSemaphoreStateES2_",
                "stream_executor::gpu::DelayKernel",
            ),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15bina\
                 ry_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
                "at::native::vectorized_elementwise_kernel<4, AUnaryFunctor<float, float, float, \
                 MulFunctor<float>>, array<char*, 2>>",
            ),
            (
                "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_2\
                 3direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE\
                 _EEvS4_RKT_EUliE_EEviT1_",
                "at::native::elementwise_kernel<128, 2, \
                 gpu_kernel_impl_nocast<direct_copy_kernel_cuda::{lambda(float)#1}>::{lambda(int)#1}>",
            ),
            // Too long to be shown in full.
            (
                "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_1\
                 1sum_functorIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",
                "at::native::reduce_kernel<512, 1, ReduceOp<float, func_wrapper_t<float, ...>, \
                 unsigned int, float, 4, 4>>",
            ),
            (
                "_ZN8internal5gemvx6kernelIiiffffLb0ELb1ELb0ELb0ELi6ELb0E18cublasGemvParamsExIi30cu\
                 blasGemvTensorStridedBatchedIKfES5_S3_IfEfEEENSt9enable_ifIXntT5_EvE4typeET11_",
                "internal::gemvx::kernel<int, int, float, float, float, float, false, true, false, \
                 false, 6, false, cublasGemvParamsEx<int, ...>>",
            ),
        ] {
            assert_eq!(kernel(mangled), shown, "{mangled}");
            assert!(kernel(mangled).len() <= KERNEL);
        }
    }

    #[test]
    fn whole_names_have_everything() {
        let mangled = "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_11FillFunctorIlEESt5ar\
                       rayIPcLm1EEEEviT0_T1_";
        let name = whole(mangled).expect("a name");
        assert!(
            name.starts_with("void at::native::vectorized_elementwise_kernel<2, at::"),
            "{name}"
        );
        assert!(name.ends_with(')'), "{name}");
        assert_eq!(whole("flash_fwd"), None);
    }

    proptest! {
        #[test]
        fn no_name_is_too_long_or_panics(rest in "[0-9A-Za-z_<>(){},: ]{0,60}", deep in 0usize..300) {
            let deep = format!("_Z1f{}{rest}", "IS".repeat(deep));
            for name in [format!("_Z{rest}"), format!("_R{rest}"), deep] {
                if whole(&name).is_some() {
                    // Without the escapes of `printable`.
                    let fits = |shown: &str| shown.replace("\\x3a", ":").len() <= KERNEL + 3;
                    prop_assert!(fits(&kernel(&name)));
                } else {
                    prop_assert_eq!(kernel(&name), printable(&name));
                }
            }
        }

        #[test]
        fn template_arguments_of_any_shape_fit(arguments in proptest::collection::vec(0..6usize, 1..80)) {
            let of = ["i", "f", "Li3E", "St5arrayIPcLm2EE", "1aIi1bIfEE", "N1c1dI1eEE"];
            let arguments: Vec<&str> = arguments.into_iter().map(|which| of[which]).collect();
            let name = format!("_ZN2at6kernelI{}EEvv", arguments.concat());
            let shown = kernel(&name);
            prop_assert!(shown.starts_with("at::kernel<"), "{}", shown);
            prop_assert!(shown.ends_with('>') && shown.len() <= KERNEL, "{}", shown);
        }
    }
}
