//! The directed rounding modes: the result to nearest, moved by the sign of its error.
//!
//! Singles are computed in double precision, rounded to odd, and narrowed once. For doubles the
//! error comes from error-free transformations; where those would underflow the operands are
//! scaled first, except in `fma`, whose directed modes may be off by one unit in the last place
//! for products below 2^-960 that are not zero.

use super::convert::Round;

/// Arithmetic in a mode other than to nearest.
pub(super) trait Directed: Sized {
    fn sum(a: Self, b: Self, round: Round) -> Self;
    fn product(a: Self, b: Self, round: Round) -> Self;
    fn quotient(a: Self, b: Self, round: Round) -> Self;
    fn fused(a: Self, b: Self, c: Self, round: Round) -> Self;
    fn root(a: Self, round: Round) -> Self;
}

macro_rules! adjust {
    ($name:ident, $ty:ident) => {
        /// Moves `nearest` to the result of the mode. `error` has the sign of the exact value
        /// minus `nearest`; with finite inputs an infinite result is an overflow.
        fn $name(nearest: $ty, error: f64, finite_inputs: bool, round: Round) -> $ty {
            if nearest.is_nan() || round == Round::Nearest {
                return nearest;
            }
            let negative = nearest.is_sign_negative();
            if nearest.is_infinite() {
                let back = match round {
                    Round::Zero => true,
                    Round::Down => !negative,
                    _ => negative,
                };
                return if finite_inputs && back { $ty::MAX.copysign(nearest) } else { nearest };
            }
            match round {
                Round::Down if error < 0.0 => nearest.next_down(),
                Round::Up if error > 0.0 => nearest.next_up(),
                Round::Zero if error < 0.0 && nearest > 0.0 => nearest.next_down(),
                Round::Zero if error > 0.0 && nearest < 0.0 => nearest.next_up(),
                _ => nearest,
            }
        }
    };
}
adjust!(adjust32, f32);
adjust!(adjust64, f64);

/// Moves a double rounded to nearest by the sign of its error.
pub(super) fn adjust_double(nearest: f64, error: f64, round: Round) -> f64 {
    adjust64(nearest, error, true, round)
}

/// Rounds to odd: a double that rounds to any narrower format as the exact value would.
pub(super) fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || !nearest.is_finite() || error.is_nan() {
        return nearest;
    }
    f64::from_bits(adjust_double(nearest, error, Round::Zero).to_bits() | 1)
}

/// A double to a single in any rounding mode.
pub(super) fn narrow_single(value: f64, round: Round) -> f32 {
    let nearest = value as f32;
    let error = if nearest.is_finite() { value - f64::from(nearest) } else { 0.0 };
    adjust32(nearest, error, value.is_finite(), round)
}

/// The rounding error of `a + b = sum`.
fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let virtual_b = sum - a;
    (a - (sum - virtual_b)) + (b - virtual_b)
}

/// An exact zero of unlike signs is negative when rounding down.
fn zero_sign(a: f64, b: f64, sum: f64, round: Round) -> f64 {
    let unlike = a.is_sign_negative() != b.is_sign_negative();
    if sum == 0.0 && unlike && round == Round::Down { -0.0 } else { sum }
}

fn fused_error(a: f64, b: f64, c: f64, nearest: f64) -> f64 {
    // After Boldo and Muller, "Exact and approximated error of the FMA", as far as its sign.
    let product = a * b;
    if product == 0.0 && a != 0.0 && b != 0.0 {
        return if a.is_sign_negative() == b.is_sign_negative() { 1.0 } else { -1.0 };
    }
    let product_error = a.mul_add(b, -product);
    let low = c + product_error;
    let low_error = sum_error(c, product_error, low);
    let high = product + low;
    let high_error = sum_error(product, low, high);
    (high - nearest) + high_error + low_error
}

impl Directed for f32 {
    fn sum(a: f32, b: f32, round: Round) -> f32 {
        let (a, b) = (f64::from(a), f64::from(b));
        let sum = a + b;
        narrow_single(zero_sign(a, b, to_odd(sum, sum_error(a, b, sum)), round), round)
    }
    fn product(a: f32, b: f32, round: Round) -> f32 {
        narrow_single(f64::from(a) * f64::from(b), round)
    }
    fn quotient(a: f32, b: f32, round: Round) -> f32 {
        let (a, b) = (f64::from(a), f64::from(b));
        let nearest = a / b;
        let rest = (-nearest).mul_add(b, a);
        let exact = to_odd(nearest, if b.is_sign_negative() { -rest } else { rest });
        narrow_single(exact, round)
    }
    fn fused(a: f32, b: f32, c: f32, round: Round) -> f32 {
        let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
        let sum = product + c;
        let exact = to_odd(sum, sum_error(product, c, sum));
        narrow_single(zero_sign(product, c, exact, round), round)
    }
    fn root(a: f32, round: Round) -> f32 {
        let a = f64::from(a);
        let nearest = a.sqrt();
        narrow_single(to_odd(nearest, (-nearest).mul_add(nearest, a)), round)
    }
}

/// 2^n for an exponent in the range of normal doubles.
fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

impl Directed for f64 {
    fn sum(a: f64, b: f64, round: Round) -> f64 {
        let sum = zero_sign(a, b, a + b, round);
        adjust64(sum, sum_error(a, b, sum), a.is_finite() && b.is_finite(), round)
    }
    fn product(a: f64, b: f64, round: Round) -> f64 {
        let nearest = a * b;
        let error = if nearest == 0.0 && a != 0.0 && b != 0.0 {
            // All of it is error; the zero bears the sign.
            1f64.copysign(nearest)
        } else if nearest.abs() < power(-960) {
            let scaled = a * power(540);
            let product = scaled * b;
            (product - nearest * power(540)) + scaled.mul_add(b, -product)
        } else {
            a.mul_add(b, -nearest)
        };
        adjust64(nearest, error, a.is_finite() && b.is_finite(), round)
    }
    fn quotient(a: f64, b: f64, round: Round) -> f64 {
        let nearest = a / b;
        let finite = a.is_finite() && b.is_finite() && b != 0.0;
        let error = if nearest == 0.0 && a != 0.0 && finite {
            1f64.copysign(nearest)
        } else {
            let small = a.abs() < power(-900) && nearest.abs() < power(800);
            let scale = if small { power(200) } else { 1.0 };
            let rest = (-nearest * scale).mul_add(b, a * scale);
            if b.is_sign_negative() { -rest } else { rest }
        };
        adjust64(nearest, error, finite, round)
    }
    fn fused(a: f64, b: f64, c: f64, round: Round) -> f64 {
        let nearest = a.mul_add(b, c);
        let finite = a.is_finite() && b.is_finite() && c.is_finite();
        let nearest = zero_sign(a * b, c, nearest, round);
        adjust64(nearest, fused_error(a, b, c, nearest), finite, round)
    }
    fn root(a: f64, round: Round) -> f64 {
        let nearest = a.sqrt();
        let (scale, half) = if a < power(-900) { (power(200), power(100)) } else { (1.0, 1.0) };
        let scaled = nearest * half;
        adjust64(nearest, (-scaled).mul_add(scaled, a * scale), a.is_finite(), round)
    }
}
