//! Floating-point arithmetic (PTX ISA, "Floating-Point Instructions").
//!
//! Exact operations round as IEEE 754 says, in all four modes. The approximate instructions
//! (`sin.approx`, `ex2.approx`, ...) return the correctly rounded value or its neighbour, which is
//! more accurate than hardware and so may differ from it in the last bits.

use streamsan_ptx::Type;

use super::convert::Round;
use super::half::{half1, half2, half3};
use super::rounding::Directed;
use super::word::Word;
use super::{Fn1, Fn2, Fn3};

/// The NaN that single-precision instructions return (PTX ISA: payloads are not preserved).
const NAN32: u32 = 0x7fff_ffff;

const RN: u8 = 0;
const RZ: u8 = 1;
const RM: u8 = 2;
const RP: u8 = 3;

trait Float: Word + Directed {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn multiply_add(self, b: Self, c: Self) -> Self;
    fn square_root(self) -> Self;
    fn flip(self) -> Self;
    fn negative(self) -> bool;
    fn not_a_number(self) -> bool;
    /// The NaN that an operation on these inputs returns.
    fn nan(inputs: &[Self]) -> u64;

    /// The bits of the result of an operation on `inputs`.
    fn result(self, inputs: &[Self]) -> u64 {
        if self.not_a_number() { Self::nan(inputs) } else { self.put() }
    }
}

macro_rules! float {
    ($($ty:ident: |$inputs:ident| $nan:expr;)*) => {$(
        impl Float for $ty {
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn over(self, other: Self) -> Self {
                self / other
            }
            fn multiply_add(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            fn square_root(self) -> Self {
                self.sqrt()
            }
            fn flip(self) -> Self {
                -self
            }
            fn negative(self) -> bool {
                self.is_sign_negative()
            }
            fn not_a_number(self) -> bool {
                self.is_nan()
            }
            fn nan($inputs: &[Self]) -> u64 {
                $nan
            }
        }
    )*};
}
float! {
    f32: |_inputs| u64::from(NAN32);
    // Doubles keep the payload of a NaN, as measured on a GPU.
    f64: |inputs| match inputs.iter().find(|input| input.is_nan()) {
        Some(input) => input.to_bits() | 0x0008_0000_0000_0000,
        None => 0xfff8_0000_0000_0000,
    };
}

fn mode<const R: u8>() -> Round {
    match R {
        RZ => Round::Zero,
        RM => Round::Down,
        RP => Round::Up,
        _ => Round::Nearest,
    }
}

fn add<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    if R == RN { a.plus(b) } else { T::sum(a, b, mode::<R>()) }.result(&[a, b])
}
fn sub<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    let result = if R == RN { a.plus(b.flip()) } else { T::sum(a, b.flip(), mode::<R>()) };
    result.result(&[a, b])
}
fn mul<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    if R == RN { a.times(b) } else { T::product(a, b, mode::<R>()) }.result(&[a, b])
}
fn div<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    if R == RN { a.over(b) } else { T::quotient(a, b, mode::<R>()) }.result(&[a, b])
}
fn fma<T: Float, const R: u8>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (T::get(a), T::get(b), T::get(c));
    let result = if R == RN { a.multiply_add(b, c) } else { T::fused(a, b, c, mode::<R>()) };
    result.result(&[a, b, c])
}
fn sqrt<T: Float, const R: u8>(a: u64) -> u64 {
    let a = T::get(a);
    if R == RN { a.square_root() } else { T::root(a, mode::<R>()) }.result(&[a])
}
fn rcp32<const R: u8>(a: u64) -> u64 {
    div::<f32, R>(1f32.put(), a)
}
fn rcp64<const R: u8>(a: u64) -> u64 {
    div::<f64, R>(1f64.put(), a)
}

/// `f::<ty, mode>` of a rounding mode known at lowering time.
macro_rules! rounded {
    ($round:expr, $f:ident, $ty:ident) => {
        match $round {
            Round::Nearest => $f::<$ty, RN>,
            Round::Zero => $f::<$ty, RZ>,
            Round::Down => $f::<$ty, RM>,
            Round::Up => $f::<$ty, RP>,
        }
    };
    ($round:expr, $f:ident) => {
        match $round {
            Round::Nearest => $f::<RN>,
            Round::Zero => $f::<RZ>,
            Round::Down => $f::<RM>,
            Round::Up => $f::<RP>,
        }
    };
}

fn min<T: Float>(a: u64, b: u64) -> u64 {
    let (x, y) = (T::get(a), T::get(b));
    match (x.not_a_number(), y.not_a_number()) {
        (true, true) => T::nan(&[x, y]),
        (true, _) => b,
        (_, true) => a,
        _ if x < y || (x == y && x.negative()) => a,
        _ => b,
    }
}
fn max<T: Float>(a: u64, b: u64) -> u64 {
    let (x, y) = (T::get(a), T::get(b));
    match (x.not_a_number(), y.not_a_number()) {
        (true, true) => T::nan(&[x, y]),
        (true, _) => b,
        (_, true) => a,
        _ if x > y || (x == y && !x.negative()) => a,
        _ => b,
    }
}
/// `.NaN`: NaN if either side is.
fn min_nan(a: u64, b: u64) -> u64 {
    let nan = f32::get(a).is_nan() || f32::get(b).is_nan();
    if nan { u64::from(NAN32) } else { min::<f32>(a, b) }
}
fn max_nan(a: u64, b: u64) -> u64 {
    let nan = f32::get(a).is_nan() || f32::get(b).is_nan();
    if nan { u64::from(NAN32) } else { max::<f32>(a, b) }
}

const SIGN32: u64 = 1 << 31;
const SIGN64: u64 = 1 << 63;

/// A single-precision function computed in double precision.
macro_rules! via64 {
    ($f:expr) => {
        |a| {
            let f: fn(f64) -> f64 = $f;
            {
                let a = f32::get(a);
                (f(f64::from(a)) as f32).result(&[a])
            }
        }
    };
}

fn testp(class: &str, ty: Type) -> Option<Fn1> {
    macro_rules! test {
        ($t:ident) => {
            Some(match class {
                "finite" => |a| u64::from($t::get(a).is_finite()),
                "infinite" => |a| u64::from($t::get(a).is_infinite()),
                "number" => |a| u64::from(!$t::get(a).is_nan()),
                "notanumber" => |a| u64::from($t::get(a).is_nan()),
                // Zero counts as normal, as measured on a GPU.
                "normal" => |a| {
                    let a = $t::get(a);
                    u64::from(a.is_finite() && !a.is_subnormal())
                },
                "subnormal" => |a| u64::from($t::get(a).is_subnormal()),
                _ => return None,
            })
        };
    }
    match ty {
        Type::F32 => test!(f32),
        Type::F64 => test!(f64),
        _ => None,
    }
}

/// `mode` is `approx`, a class of `testp`, or empty; the rounding comes beside it.
pub(crate) fn float1(opcode: &str, mode: &str, round: Round, ty: Type) -> Option<Fn1> {
    Some(match (opcode, ty) {
        ("testp", _) => testp(mode, ty)?,
        ("neg", Type::F32) => |a| (a ^ SIGN32) & 0xffff_ffff,
        ("neg", Type::F64) => |a| a ^ SIGN64,
        ("abs", Type::F32) => |a| a & (SIGN32 - 1),
        ("abs", Type::F64) => |a| a & !SIGN64,
        ("sqrt", Type::F32) => rounded!(round, sqrt, f32),
        ("sqrt", Type::F64) => rounded!(round, sqrt, f64),
        ("rcp", Type::F32) => rounded!(round, rcp32),
        ("rcp", Type::F64) => rounded!(round, rcp64),
        ("rsqrt", Type::F32) => via64!(|x| 1.0 / x.sqrt()),
        ("rsqrt", Type::F64) => |a| {
            let a = f64::get(a);
            (1.0 / a.sqrt()).result(&[a])
        },
        ("ex2", Type::F32) => via64!(f64::exp2),
        ("lg2", Type::F32) => via64!(f64::log2),
        ("sin", Type::F32) => via64!(f64::sin),
        ("cos", Type::F32) => via64!(f64::cos),
        ("tanh", Type::F32) => via64!(f64::tanh),
        _ => return half1(opcode, ty),
    })
}

/// `mode` is `nan`, `xorsign` or empty.
pub(crate) fn float2(opcode: &str, mode: &str, round: Round, ty: Type) -> Option<Fn2> {
    Some(match (opcode, mode, ty) {
        ("add", "", Type::F32) => rounded!(round, add, f32),
        ("add", "", Type::F64) => rounded!(round, add, f64),
        ("sub", "", Type::F32) => rounded!(round, sub, f32),
        ("sub", "", Type::F64) => rounded!(round, sub, f64),
        ("mul", "", Type::F32) => rounded!(round, mul, f32),
        ("mul", "", Type::F64) => rounded!(round, mul, f64),
        ("div", "", Type::F32) => rounded!(round, div, f32),
        ("div", "", Type::F64) => rounded!(round, div, f64),
        ("min", "", Type::F32) => min::<f32>,
        ("min", "", Type::F64) => min::<f64>,
        ("max", "", Type::F32) => max::<f32>,
        ("max", "", Type::F64) => max::<f64>,
        ("min", "nan", Type::F32) => min_nan,
        ("max", "nan", Type::F32) => max_nan,
        ("min", "xorsign", Type::F32) => {
            |a, b| min::<f32>(a & !SIGN32, b & !SIGN32) | ((a ^ b) & SIGN32)
        }
        ("max", "xorsign", Type::F32) => {
            |a, b| max::<f32>(a & !SIGN32, b & !SIGN32) | ((a ^ b) & SIGN32)
        }
        // `copysign d, a, b`: the sign of `a` on the magnitude of `b`.
        ("copysign", "", Type::F32) => |a, b| (a & SIGN32) | (b & (SIGN32 - 1)),
        ("copysign", "", Type::F64) => |a, b| (a & SIGN64) | (b & !SIGN64),
        _ => return half2(opcode, mode, ty),
    })
}

pub(crate) fn float3(opcode: &str, round: Round, ty: Type) -> Option<Fn3> {
    Some(match (opcode, ty) {
        ("fma" | "mad", Type::F32) => rounded!(round, fma, f32),
        ("fma" | "mad", Type::F64) => rounded!(round, fma, f64),
        _ => return half3(opcode, ty),
    })
}

/// `atom.add` and `red.add` of floating-point values.
pub(crate) fn atomic_add(ty: Type) -> Option<Fn3> {
    Some(match ty {
        Type::F32 => |a, b, _| add::<f32, RN>(a, b),
        Type::F64 => |a, b, _| add::<f64, RN>(a, b),
        Type::F16 | Type::BF16 | Type::F16x2 | Type::BF16x2 => {
            return super::half::half_atomic_add(ty);
        }
        _ => return None,
    })
}

/// `.ftz`: a subnormal single becomes a zero of its sign.
pub(crate) fn flush(a: u64) -> u64 {
    if f32::get(a).is_subnormal() { a & SIGN32 } else { a }
}

/// `.sat` of a result: `[0, 1]`, NaN becomes 0.
pub(crate) fn saturate(ty: Type) -> Option<Fn1> {
    Some(match ty {
        Type::F32 => |a| {
            let a = f32::get(a);
            if a > 0.0 { a.min(1.0).put() } else { 0 }
        },
        Type::F64 => |a| {
            let a = f64::get(a);
            if a > 0.0 { a.min(1.0).put() } else { 0 }
        },
        _ => return super::half::half_saturate(ty),
    })
}
