//! Comparisons (PTX ISA, "Comparison and Selection Instructions").

use streamsan_ptx::Type;

use super::half::Half;
use super::word::Word;
use super::{Fn2, Fn3};

macro_rules! comparison {
    ($($name:ident: $op:tt $negated:literal),*) => {$(
        // A negated comparison is the unordered form: true where either side is NaN.
        fn $name<T: Word>(a: u64, b: u64) -> u64 {
            u64::from((T::get(a) $op T::get(b)) != $negated)
        }
    )*};
}
comparison!(
    eq: == false, ne_unordered: == true, lt: < false, le: <= false, gt: > false, ge: >= false,
    ltu: >= true, leu: > true, gtu: <= true, geu: < true
);
fn is_nan<T: Word>(a: u64) -> bool {
    let a = T::get(a);
    a.partial_cmp(&a).is_none()
}
fn nan<T: Word>(a: u64, b: u64) -> u64 {
    u64::from(is_nan::<T>(a) || is_nan::<T>(b))
}
fn num<T: Word>(a: u64, b: u64) -> u64 {
    1 - nan::<T>(a, b)
}
fn ne_ordered<T: Word>(a: u64, b: u64) -> u64 {
    num::<T>(a, b) & ne_unordered::<T>(a, b)
}

fn integers<T: Word>(name: &str) -> Option<Fn2> {
    Some(match name {
        "eq" => eq::<T>,
        "ne" => ne_unordered::<T>,
        "lt" | "lo" => lt::<T>,
        "le" | "ls" => le::<T>,
        "gt" | "hi" => gt::<T>,
        "ge" | "hs" => ge::<T>,
        _ => return None,
    })
}

fn floats<T: Word>(name: &str) -> Option<Fn2> {
    Some(match name {
        "eq" => eq::<T>,
        "ne" => ne_ordered::<T>,
        "lt" => lt::<T>,
        "le" => le::<T>,
        "gt" => gt::<T>,
        "ge" => ge::<T>,
        "equ" => |a, b| eq::<T>(a, b) | nan::<T>(a, b),
        "neu" => ne_unordered::<T>,
        "ltu" => ltu::<T>,
        "leu" => leu::<T>,
        "gtu" => gtu::<T>,
        "geu" => geu::<T>,
        "num" => num::<T>,
        "nan" => nan::<T>,
        _ => return None,
    })
}

/// The comparison `name` of two values of type `ty`.
pub(crate) fn compare(name: &str, ty: Type) -> Option<Fn2> {
    match ty {
        Type::U16 | Type::B16 => integers::<u16>(name),
        Type::S16 => integers::<i16>(name),
        Type::U32 | Type::B32 => integers::<u32>(name),
        Type::S32 => integers::<i32>(name),
        Type::U64 | Type::B64 => integers::<u64>(name),
        Type::S64 => integers::<i64>(name),
        Type::F32 => floats::<f32>(name),
        Type::F64 => floats::<f64>(name),
        Type::F16 => floats::<Half<false>>(name),
        Type::BF16 => floats::<Half<true>>(name),
        _ => None,
    }
}

/// The boolean operator that combines a comparison with a third predicate.
pub(crate) fn boolean(name: &str) -> Option<Fn2> {
    Some(match name {
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        _ => return None,
    })
}

/// `slct`: `a` where `c >= 0`, else `b`. NaN selects `b`.
pub(crate) fn select_by_sign(ty: Type) -> Option<Fn3> {
    Some(match ty {
        Type::S32 => |a, b, c| if c as i32 >= 0 { a } else { b },
        Type::F32 => |a, b, c| if f32::get(c) >= 0.0 { a } else { b },
        _ => return None,
    })
}
