//! Half precision and bfloat16, computed in double precision and rounded once.

use std::cmp::Ordering;

use streamsan_ptx::Type;

use super::convert::Round;
use super::word::Word;
use super::{Fn1, Fn2, Fn3};

/// A 16-bit float as its value; `BRAIN` is bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Half<const BRAIN: bool>(f64);

impl<const BRAIN: bool> PartialEq for Half<BRAIN> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<const BRAIN: bool> PartialOrd for Half<BRAIN> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl<const BRAIN: bool> Word for Half<BRAIN> {
    fn get(bits: u64) -> Self {
        Half(widen(bits, BRAIN))
    }
    fn put(self) -> u64 {
        narrow(self.0, BRAIN, Round::Nearest)
    }
}

fn format(brain: bool) -> (i32, i32) {
    // Smallest normal exponent, bits of the fraction.
    if brain { (-126, 7) } else { (-14, 10) }
}

/// The value of a 16-bit float.
pub(super) fn widen(bits: u64, brain: bool) -> f64 {
    let bits = bits as u16;
    if brain {
        return f64::from(f32::from_bits(u32::from(bits) << 16));
    }
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The 16-bit float nearest to a value in a rounding mode. NaN becomes `0x7fff`.
pub(super) fn narrow(value: f64, brain: bool, round: Round) -> u64 {
    let (least, fraction_bits) = format(brain);
    let sign = u64::from(value.is_sign_negative()) << 15;
    let infinity = if brain { 0x7f80 } else { 0x7c00 };
    if value.is_nan() {
        return 0x7fff;
    }
    if value.is_infinite() {
        return sign | infinity;
    }
    let magnitude = value.abs();
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(least);
    let unit = exponent - fraction_bits;
    // A power of two scales exactly.
    let scaled = magnitude * f64::from_bits(((1023 - unit) as u64) << 52);
    let away = match round {
        Round::Nearest => None,
        Round::Zero => Some(false),
        Round::Down => Some(sign != 0),
        Round::Up => Some(sign == 0),
    };
    let rounded = match away {
        None => scaled.round_ties_even(),
        Some(false) => scaled.floor(),
        Some(true) => scaled.ceil(),
    };
    let bits = (((exponent - least) as u64) << fraction_bits) + rounded as u64;
    if bits >= infinity {
        let overflow = if away == Some(false) { infinity - 1 } else { infinity };
        return sign | overflow;
    }
    sign | bits
}

fn add<const B: bool>(a: u64, b: u64) -> u64 {
    narrow(widen(a, B) + widen(b, B), B, Round::Nearest)
}
fn sub<const B: bool>(a: u64, b: u64) -> u64 {
    narrow(widen(a, B) - widen(b, B), B, Round::Nearest)
}
fn mul<const B: bool>(a: u64, b: u64) -> u64 {
    narrow(widen(a, B) * widen(b, B), B, Round::Nearest)
}
fn fma<const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    narrow(widen(a, B).mul_add(widen(b, B), widen(c, B)), B, Round::Nearest)
}
fn fma_relu<const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let value = widen(a, B).mul_add(widen(b, B), widen(c, B));
    narrow(if value <= 0.0 { 0.0 } else { value }, B, Round::Nearest)
}
fn min<const B: bool>(a: u64, b: u64) -> u64 {
    let (x, y) = (widen(a, B), widen(b, B));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => 0x7fff,
        (true, _) => b,
        (_, true) => a,
        _ if x < y || (x == y && x.is_sign_negative()) => a,
        _ => b,
    }
}
fn max<const B: bool>(a: u64, b: u64) -> u64 {
    let (x, y) = (widen(a, B), widen(b, B));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => 0x7fff,
        (true, _) => b,
        (_, true) => a,
        _ if x > y || (x == y && !x.is_sign_negative()) => a,
        _ => b,
    }
}
fn min_nan<const B: bool>(a: u64, b: u64) -> u64 {
    if widen(a, B).is_nan() || widen(b, B).is_nan() { 0x7fff } else { min::<B>(a, b) }
}
fn max_nan<const B: bool>(a: u64, b: u64) -> u64 {
    if widen(a, B).is_nan() || widen(b, B).is_nan() { 0x7fff } else { max::<B>(a, b) }
}
fn neg<const B: bool>(a: u64) -> u64 {
    a & 0xffff ^ 0x8000
}
fn abs<const B: bool>(a: u64) -> u64 {
    a & 0x7fff
}
fn ex2<const B: bool>(a: u64) -> u64 {
    narrow(widen(a, B).exp2(), B, Round::Nearest)
}
fn tanh<const B: bool>(a: u64) -> u64 {
    narrow(widen(a, B).tanh(), B, Round::Nearest)
}
fn clamp<const B: bool>(a: u64) -> u64 {
    let a = widen(a, B);
    if a > 0.0 { narrow(a.min(1.0), B, Round::Nearest) } else { 0 }
}

/// `f` of one value or of both halves of a pair, by type.
macro_rules! halves {
    ($ty:expr, $f:ident, $($a:ident),+) => {
        match $ty {
            Type::F16 => Some($f::<false>),
            Type::BF16 => Some($f::<true>),
            Type::F16x2 => Some(|$($a),+| {
                $f::<false>($($a & 0xffff),+) | $f::<false>($($a >> 16 & 0xffff),+) << 16
            }),
            Type::BF16x2 => Some(|$($a),+| {
                $f::<true>($($a & 0xffff),+) | $f::<true>($($a >> 16 & 0xffff),+) << 16
            }),
            _ => None,
        }
    };
}

pub(super) fn half1(opcode: &str, ty: Type) -> Option<Fn1> {
    match opcode {
        "neg" => halves!(ty, neg, a),
        "abs" => halves!(ty, abs, a),
        "ex2" => halves!(ty, ex2, a),
        "tanh" => halves!(ty, tanh, a),
        _ => None,
    }
}

pub(super) fn half2(opcode: &str, mode: &str, ty: Type) -> Option<Fn2> {
    match (opcode, mode) {
        ("add", "") => halves!(ty, add, a, b),
        ("sub", "") => halves!(ty, sub, a, b),
        ("mul", "") => halves!(ty, mul, a, b),
        ("min", "") => halves!(ty, min, a, b),
        ("max", "") => halves!(ty, max, a, b),
        ("min", "nan") => halves!(ty, min_nan, a, b),
        ("max", "nan") => halves!(ty, max_nan, a, b),
        _ => None,
    }
}

pub(super) fn half3(opcode: &str, ty: Type) -> Option<Fn3> {
    match opcode {
        "fma" => halves!(ty, fma, a, b, c),
        "fma.relu" => halves!(ty, fma_relu, a, b, c),
        _ => None,
    }
}

pub(super) fn half_atomic_add(ty: Type) -> Option<Fn3> {
    fn add3<const B: bool>(a: u64, b: u64, _: u64) -> u64 {
        add::<B>(a, b)
    }
    halves!(ty, add3, a, b, c)
}

pub(super) fn half_saturate(ty: Type) -> Option<Fn1> {
    halves!(ty, clamp, a)
}
