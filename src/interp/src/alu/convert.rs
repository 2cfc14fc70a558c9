//! `cvt`: every conversion between integers and floating-point numbers.

use streamsan_ptx::Type;

use super::Fn1;
use super::float::flush;
use super::half::{narrow, widen};
use super::rounding::{adjust_double, narrow_single, to_odd};
use super::word::{Int, Word};

/// IEEE 754 rounding modes, for floating-point results and for rounding to an integral value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Round {
    /// `.rn`, `.rni`: to nearest, ties to even.
    #[default]
    Nearest,
    Zero,
    Down,
    Up,
}

/// A conversion, all modifiers included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Convert {
    pub(crate) from: Type,
    pub(crate) to: Type,
    pub(crate) round: Round,
    /// `.rni` and the like: to an integral value, also between floats.
    pub(crate) integral: bool,
    pub(crate) saturate: bool,
    pub(crate) flush: bool,
    /// `.relu`: negative results and NaN's sign become zero.
    pub(crate) relu: bool,
}

enum Number {
    Int(i128),
    Float(f64),
}

fn read(ty: Type, bits: u64) -> Option<Number> {
    Some(match ty {
        Type::U8 | Type::B8 => Number::Int(u8::get(bits).wide()),
        Type::S8 => Number::Int(i8::get(bits).wide()),
        Type::U16 | Type::B16 => Number::Int(u16::get(bits).wide()),
        Type::S16 => Number::Int(i16::get(bits).wide()),
        Type::U32 | Type::B32 => Number::Int(u32::get(bits).wide()),
        Type::S32 => Number::Int(i32::get(bits).wide()),
        Type::U64 | Type::B64 => Number::Int(u64::get(bits).wide()),
        Type::S64 => Number::Int(i64::get(bits).wide()),
        Type::F16 => Number::Float(widen(bits, false)),
        Type::BF16 => Number::Float(widen(bits, true)),
        Type::F32 => Number::Float(f64::from(f32::get(bits))),
        Type::F64 => Number::Float(f64::get(bits)),
        _ => return None,
    })
}

fn integral(value: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

fn to_int<T: Int>(number: Number, spec: Convert) -> u64 {
    match number {
        // The result fills the wider of type and register; `sign_extend` sees to the register.
        Number::Int(value) if spec.saturate => T::saturate(value).put(),
        Number::Int(value) => T::truncate(value).put(),
        Number::Float(value) if value.is_nan() => {
            // PTX ISA, `cvt`: zero, but 2^(n-1) if either side is 64-bit.
            let wide = T::BITS == 64 || spec.from == Type::F64;
            if wide { 1 << (T::BITS - 1) } else { 0 }
        }
        Number::Float(value) => T::saturate(integral(value, spec.round) as i128).put(),
    }
}

/// The sign of the exact integer minus its nearest double.
fn int_error(value: i128, nearest: f64) -> f64 {
    f64::from((value - nearest as i128).signum() as i32)
}

fn to_float(number: Number, spec: Convert) -> u64 {
    let mut value = match number {
        Number::Int(value) if spec.to == Type::F64 => {
            let nearest = value as f64;
            return adjust_double(nearest, int_error(value, nearest), spec.round).put();
        }
        Number::Int(value) => {
            let nearest = value as f64;
            to_odd(nearest, int_error(value, nearest))
        }
        Number::Float(value) => value,
    };
    if spec.integral {
        value = integral(value, spec.round);
    }
    if spec.saturate {
        value = if value > 0.0 { value.min(1.0) } else { 0.0 };
    }
    if spec.relu && value <= 0.0 {
        value = 0.0;
    }
    if value.is_nan() && spec.from == Type::F64 && spec.to != Type::F64 {
        return narrow_nan(value, spec.to);
    }
    match spec.to {
        Type::F16 => narrow(value, false, spec.round),
        Type::BF16 => narrow(value, true, spec.round),
        Type::F64 => value.put(),
        _ if value.is_nan() => 0x7fff_ffff,
        _ => {
            let bits = narrow_single(value, spec.round).put();
            if spec.flush { flush(bits) } else { bits }
        }
    }
}

/// NaN from a double keeps what fits of its payload, as measured on a GPU.
fn narrow_nan(value: f64, to: Type) -> u64 {
    let bits = value.to_bits();
    match to {
        Type::F16 => (bits >> 48 & 0x8000) | 0x7e00 | (bits >> 42 & 0x3ff),
        Type::BF16 => (bits >> 48 & 0x8000) | 0x7fc0 | (bits >> 45 & 0x7f),
        _ => (bits >> 32 & 0x8000_0000) | 0x7fc0_0000 | (bits >> 29 & 0x7f_ffff),
    }
}

/// Converts raw bits. The types were checked by [`Convert::supported`].
pub(crate) fn convert(spec: Convert, bits: u64) -> u64 {
    let bits = if spec.flush && spec.from == Type::F32 { flush(bits) } else { bits };
    let Some(number) = read(spec.from, bits) else { return 0 };
    match spec.to {
        Type::U8 | Type::B8 => to_int::<u8>(number, spec),
        Type::S8 => to_int::<i8>(number, spec),
        Type::U16 | Type::B16 => to_int::<u16>(number, spec),
        Type::S16 => to_int::<i16>(number, spec),
        Type::U32 | Type::B32 => to_int::<u32>(number, spec),
        Type::S32 => to_int::<i32>(number, spec),
        Type::U64 | Type::B64 => to_int::<u64>(number, spec),
        Type::S64 => to_int::<i64>(number, spec),
        _ => to_float(number, spec),
    }
}

impl Convert {
    /// Whether [`convert`] knows both types.
    pub(crate) fn supported(&self) -> bool {
        read(self.from, 0).is_some() && read(self.to, 0).is_some()
    }
}

/// `cvt.f16x2.f32 d, a, b`: `a` in the upper half, `b` in the lower.
pub(crate) fn convert_pair(spec: Convert, a: u64, b: u64) -> u64 {
    convert(spec, a) << 16 | convert(spec, b)
}

/// Extends the sign of a value of type `ty` to a register of `width` bits.
pub(crate) fn sign_extend(ty: Type, width: u32) -> Option<Fn1> {
    Some(match (ty, width) {
        (Type::S8, 16) => |a| (a as i8 as i16).put(),
        (Type::S8, 32) => |a| i32::from(a as i8).put(),
        (Type::S8, 64) => |a| i64::from(a as i8).put(),
        (Type::S16, 32) => |a| i32::from(a as i16).put(),
        (Type::S16, 64) => |a| i64::from(a as i16).put(),
        (Type::S32, 64) => |a| i64::from(a as i32).put(),
        _ => return None,
    })
}

/// Direct functions for the conversions that ordinary code is full of.
pub(crate) fn fast_convert(spec: Convert) -> Option<Fn1> {
    if spec.saturate || spec.flush || spec.relu {
        return None;
    }
    let nearest = spec.round == Round::Nearest;
    Some(match (spec.to, spec.from) {
        (Type::S64 | Type::U64 | Type::B64, Type::S32) => |a| i64::from(a as i32).put(),
        (Type::S64 | Type::U64 | Type::B64, Type::U32 | Type::B32) => |a| u64::from(a as u32),
        (
            Type::S32 | Type::U32 | Type::B32,
            Type::S64 | Type::U64 | Type::B64 | Type::S32 | Type::U32 | Type::B32,
        ) => |a| u64::from(a as u32),
        (Type::F64, Type::F32) if !spec.integral => |a| f64::from(f32::get(a)).put(),
        (Type::F64, Type::S32) => |a| f64::from(a as i32).put(),
        (Type::F64, Type::U32) => |a| f64::from(a as u32).put(),
        (Type::F32, Type::S32) if nearest => |a| (a as i32 as f32).put(),
        (Type::F32, Type::U32) if nearest => |a| (a as u32 as f32).put(),
        (Type::S32, Type::F32) if spec.round == Round::Zero => |a| (f32::get(a) as i32).put(),
        (Type::U32, Type::F32) if spec.round == Round::Zero => |a| (f32::get(a) as u32).put(),
        _ => return None,
    })
}
