//! Floating-point arithmetic (PTX ISA, "Floating-Point Instructions").
//!
//! Exact operations round as IEEE 754 says, in all four modes. The approximate instructions
//! (`sin.approx`, `ex2.approx`, ...) return the correctly rounded value or its neighbour, which is
//! more accurate than hardware and so may differ from it in the last bits.

use streamsan_kernels::ptx::Type;

use super::convert::Round;
use super::half::{half1, half2, half3};
use super::word::Word;
use super::{Fn1, Fn2, Fn3};

/// The NaN that single-precision instructions return (PTX ISA: payloads are not preserved).
const NAN32: u32 = 0x7fff_ffff;

const RN: u8 = 0;
const RZ: u8 = 1;
const RM: u8 = 2;
const RP: u8 = 3;

trait Float: Word {
    const LARGEST: Self;
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn fused(self, b: Self, c: Self) -> Self;
    fn root(self) -> Self;
    fn flip(self) -> Self;
    fn up(self) -> Self;
    fn down(self) -> Self;
    fn finite(self) -> bool;
    fn negative(self) -> bool;
    fn not_a_number(self) -> bool;
    /// The bits of a result, NaN made canonical.
    fn result(self) -> u64;
}

macro_rules! float {
    ($($ty:ident $canonical:expr),*) => {$(
        impl Float for $ty {
            const LARGEST: Self = $ty::MAX;
            const ZERO: Self = 0.0;
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
            fn over(self, other: Self) -> Self { self / other }
            fn fused(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
            fn root(self) -> Self { self.sqrt() }
            fn flip(self) -> Self { -self }
            fn up(self) -> Self { self.next_up() }
            fn down(self) -> Self { self.next_down() }
            fn finite(self) -> bool { self.is_finite() }
            fn negative(self) -> bool { self.is_sign_negative() }
            fn not_a_number(self) -> bool { self.is_nan() }
            fn result(self) -> u64 {
                if self.is_nan() { $canonical } else { self.put() }
            }
        }
    )*};
}
float!(f32 u64::from(NAN32), f64 0x7ff8_0000_0000_0000);

/// Moves a result rounded to nearest to the one that mode `R` asks for. `error` has the sign of
/// the exact value minus `nearest`; `exact_inputs` says that an infinite result is an overflow.
fn direct<T: Float, const R: u8>(nearest: T, error: T, finite_inputs: bool) -> T {
    if nearest.not_a_number() {
        return nearest;
    }
    if !nearest.finite() {
        let toward_zero = finite_inputs
            && match R {
                RZ => true,
                RM => !nearest.negative(),
                RP => nearest.negative(),
                _ => false,
            };
        return match (toward_zero, nearest.negative()) {
            (false, _) => nearest,
            (true, false) => T::LARGEST,
            (true, true) => T::LARGEST.flip(),
        };
    }
    let (above, below) = (error > T::ZERO, error < T::ZERO);
    match R {
        RM if below => nearest.down(),
        RP if above => nearest.up(),
        RZ if below && nearest > T::ZERO => nearest.down(),
        RZ if above && nearest < T::ZERO => nearest.up(),
        _ => nearest,
    }
}

/// The rounding error of `a + b = sum`.
fn sum_error<T: Float>(a: T, b: T, sum: T) -> T {
    let virtual_b = sum.minus(a);
    a.minus(sum.minus(virtual_b)).plus(b.minus(virtual_b))
}

fn sum<T: Float, const R: u8>(a: T, b: T) -> T {
    let nearest = a.plus(b);
    if R == RN {
        return nearest;
    }
    if R == RM && nearest == T::ZERO && a.negative() != b.negative() {
        return T::ZERO.flip();
    }
    direct::<T, R>(nearest, sum_error(a, b, nearest), a.finite() && b.finite())
}

fn add<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    sum::<T, R>(T::get(a), T::get(b)).result()
}
fn sub<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    sum::<T, R>(T::get(a), T::get(b).flip()).result()
}
fn mul<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    let nearest = a.times(b);
    if R == RN {
        return nearest.result();
    }
    let error = a.fused(b, nearest.flip());
    direct::<T, R>(nearest, error, a.finite() && b.finite()).result()
}
fn div<T: Float, const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    let nearest = a.over(b);
    if R == RN {
        return nearest.result();
    }
    let rest = nearest.flip().fused(b, a);
    let error = if b.negative() { rest.flip() } else { rest };
    direct::<T, R>(nearest, error, a.finite() && b.finite() && b != T::ZERO).result()
}
fn fma<T: Float, const R: u8>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (T::get(a), T::get(b), T::get(c));
    let nearest = a.fused(b, c);
    if R == RN {
        return nearest.result();
    }
    // The error of a fused multiply-add after Boldo and Muller, as far as its sign.
    let product = a.times(b);
    let product_error = a.fused(b, product.flip());
    let low = c.plus(product_error);
    let low_error = sum_error(c, product_error, low);
    let high = product.plus(low);
    let high_error = sum_error(product, low, high);
    let error = high.minus(nearest).plus(high_error).plus(low_error);
    direct::<T, R>(nearest, error, a.finite() && b.finite() && c.finite()).result()
}
fn sqrt<T: Float, const R: u8>(a: u64) -> u64 {
    let a = T::get(a);
    let nearest = a.root();
    if R == RN {
        return nearest.result();
    }
    direct::<T, R>(nearest, nearest.flip().fused(nearest, a), a.finite()).result()
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
        (true, _) => y.result(),
        (_, true) => x.result(),
        _ if x < y || (x == y && x.negative()) => a,
        _ => b,
    }
}
fn max<T: Float>(a: u64, b: u64) -> u64 {
    let (x, y) = (T::get(a), T::get(b));
    match (x.not_a_number(), y.not_a_number()) {
        (true, _) => y.result(),
        (_, true) => x.result(),
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
            (f(f64::from(f32::get(a))) as f32).result()
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
                "normal" => |a| u64::from($t::get(a).is_normal()),
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
pub(in super::super) fn float1(opcode: &str, mode: &str, round: Round, ty: Type) -> Option<Fn1> {
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
        ("rsqrt", Type::F64) => |a| (1.0 / f64::get(a).sqrt()).result(),
        ("ex2", Type::F32) => via64!(f64::exp2),
        ("lg2", Type::F32) => via64!(f64::log2),
        ("sin", Type::F32) => via64!(f64::sin),
        ("cos", Type::F32) => via64!(f64::cos),
        ("tanh", Type::F32) => via64!(f64::tanh),
        _ => return half1(opcode, ty),
    })
}

/// `mode` is `nan`, `xorsign` or empty.
pub(in super::super) fn float2(opcode: &str, mode: &str, round: Round, ty: Type) -> Option<Fn2> {
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

pub(in super::super) fn float3(opcode: &str, round: Round, ty: Type) -> Option<Fn3> {
    Some(match (opcode, ty) {
        ("fma" | "mad", Type::F32) => rounded!(round, fma, f32),
        ("fma" | "mad", Type::F64) => rounded!(round, fma, f64),
        _ => return half3(opcode, ty),
    })
}

/// `atom.add` and `red.add` of floating-point values.
pub(in super::super) fn atomic_add(ty: Type) -> Option<Fn3> {
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
pub(in super::super) fn flush(a: u64) -> u64 {
    if f32::get(a).is_subnormal() { a & SIGN32 } else { a }
}

/// `.sat` of a result: `[0, 1]`, NaN becomes 0.
pub(in super::super) fn saturate(ty: Type) -> Option<Fn1> {
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

/// A double to a single in any rounding mode.
pub(in super::super) fn narrow_single(value: f64, round: Round) -> f32 {
    let nearest = value as f32;
    let error = if nearest.is_finite() { value - f64::from(nearest) } else { 0.0 };
    // Only the sign of the error counts, and a double's may vanish in a single.
    let error = if error > 0.0 { 1.0f32 } else { -f32::from(error < 0.0) };
    match round {
        Round::Nearest => nearest,
        Round::Zero => direct::<f32, RZ>(nearest, error, value.is_finite()),
        Round::Down => direct::<f32, RM>(nearest, error, value.is_finite()),
        Round::Up => direct::<f32, RP>(nearest, error, value.is_finite()),
    }
}

/// Moves a double rounded to nearest by the sign of its error.
pub(super) fn adjust_double(nearest: f64, error: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => nearest,
        Round::Zero => direct::<f64, RZ>(nearest, error, true),
        Round::Down => direct::<f64, RM>(nearest, error, true),
        Round::Up => direct::<f64, RP>(nearest, error, true),
    }
}
