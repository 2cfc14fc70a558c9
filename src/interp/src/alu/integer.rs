//! Integer arithmetic and logic (PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift
//! Instructions").

use streamsan_ptx::Type;

use super::word::{Int, Word};
use super::{Fn1, Fn2, Fn3};

/// Picks `f::<T>` for the integer type, or returns `None`.
macro_rules! typed {
    ($ty:expr, $f:ident) => {
        match $ty {
            Type::U16 | Type::B16 => $f::<u16>,
            Type::S16 => $f::<i16>,
            Type::U32 | Type::B32 => $f::<u32>,
            Type::S32 => $f::<i32>,
            Type::U64 | Type::B64 => $f::<u64>,
            Type::S64 => $f::<i64>,
            _ => return None,
        }
    };
}
pub(super) use typed;

fn neg<T: Int>(a: u64) -> u64 {
    T::get(a).neg().put()
}
fn abs<T: Int>(a: u64) -> u64 {
    T::get(a).abs().put()
}
fn not<T: Int>(a: u64) -> u64 {
    T::get(!a).put()
}
fn cnot<T: Int>(a: u64) -> u64 {
    u64::from(T::get(a).put() == 0)
}
fn add<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).add(T::get(b)).put()
}
fn sub<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).sub(T::get(b)).put()
}
fn add_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::saturate(T::get(a).wide() + T::get(b).wide()).put()
}
fn sub_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::saturate(T::get(a).wide() - T::get(b).wide()).put()
}
fn mul<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).mul(T::get(b)).put()
}
fn mul_hi<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).mul_high(T::get(b)).put()
}
fn div<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).div(T::get(b)).put()
}
fn rem<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).rem(T::get(b)).put()
}
fn min<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).min(T::get(b)).put()
}
fn max<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a).max(T::get(b)).put()
}
fn mad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::get(a).mul(T::get(b)).add(T::get(c)).put()
}
fn mad_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::get(a).mul_high(T::get(b)).add(T::get(c)).put()
}
fn sad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b) = (T::get(a), T::get(b));
    T::truncate((a.wide() - b.wide()).abs()).add(T::get(c)).put()
}
fn and<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a & b).put()
}
fn or<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a | b).put()
}
fn xor<T: Int>(a: u64, b: u64) -> u64 {
    T::get(a ^ b).put()
}

/// 24-bit operands, sign-extended or not.
fn low24(signed: bool, value: u64) -> i64 {
    let value = (value as u32) << 8;
    if signed { i64::from(value as i32 >> 8) } else { i64::from(value >> 8) }
}
fn mul24_lo<T: Int>(a: u64, b: u64) -> u64 {
    let signed = T::MIN.wide() < 0;
    u64::from((low24(signed, a) * low24(signed, b)) as u32)
}
fn mul24_hi<T: Int>(a: u64, b: u64) -> u64 {
    let signed = T::MIN.wide() < 0;
    u64::from(((low24(signed, a) * low24(signed, b)) >> 16) as u32)
}
fn mad24_lo<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    u64::from((mul24_lo::<T>(a, b) as u32).wrapping_add(c as u32))
}
fn mad24_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    u64::from((mul24_hi::<T>(a, b) as u32).wrapping_add(c as u32))
}
fn mad_hi_sat(a: u64, b: u64, c: u64) -> u64 {
    let high = i32::get(a).mul_high(i32::get(b));
    high.saturating_add(i32::get(c)).put()
}

/// Dot product of four bytes plus `c`; each of `a` and `b` signed or not.
fn dp4a<A: Int, B: Int>(a: u64, b: u64, c: u64) -> u64 {
    let product = |n: u32| A::get(a >> n).wide() * B::get(b >> n).wide();
    let sum = product(0) + product(8) + product(16) + product(24);
    u32::get(c).wrapping_add(sum as u32).put()
}

pub(crate) fn integer1(opcode: &str, ty: Type) -> Option<Fn1> {
    Some(match (opcode, ty) {
        ("not", Type::Pred) => |a| a ^ 1,
        ("cnot", Type::Pred) => |a| a ^ 1,
        ("neg", _) => typed!(ty, neg),
        ("abs", _) => typed!(ty, abs),
        ("not", _) => typed!(ty, not),
        ("cnot", _) => typed!(ty, cnot),
        _ => return None,
    })
}

/// `mode` is `lo`, `hi`, `sat` or empty.
pub(crate) fn integer2(opcode: &str, mode: &str, ty: Type) -> Option<Fn2> {
    Some(match (opcode, mode) {
        ("and", "") if ty == Type::Pred => |a, b| a & b,
        ("or", "") if ty == Type::Pred => |a, b| a | b,
        ("xor", "") if ty == Type::Pred => |a, b| a ^ b,
        ("add", "") => typed!(ty, add),
        ("sub", "") => typed!(ty, sub),
        ("add", "sat") => typed!(ty, add_sat),
        ("sub", "sat") => typed!(ty, sub_sat),
        ("mul", "lo") => typed!(ty, mul),
        ("mul", "hi") => typed!(ty, mul_hi),
        ("mul24", "lo") => typed!(ty, mul24_lo),
        ("mul24", "hi") => typed!(ty, mul24_hi),
        ("div", "") => typed!(ty, div),
        ("rem", "") => typed!(ty, rem),
        ("min", "") => typed!(ty, min),
        ("max", "") => typed!(ty, max),
        ("and", "") => typed!(ty, and),
        ("or", "") => typed!(ty, or),
        ("xor", "") => typed!(ty, xor),
        _ => return None,
    })
}

pub(crate) fn integer3(opcode: &str, mode: &str, ty: Type) -> Option<Fn3> {
    Some(match (opcode, mode) {
        ("mad", "lo") => typed!(ty, mad),
        ("mad", "hi") => typed!(ty, mad_hi),
        ("mad", "hi.sat") if ty == Type::S32 => mad_hi_sat,
        ("mad24", "lo") => typed!(ty, mad24_lo),
        ("mad24", "hi") => typed!(ty, mad24_hi),
        ("sad", "") => typed!(ty, sad),
        ("dp4a", "u32.u32") => dp4a::<u8, u8>,
        ("dp4a", "u32.s32") => dp4a::<u8, i8>,
        ("dp4a", "s32.u32") => dp4a::<i8, u8>,
        ("dp4a", "s32.s32") => dp4a::<i8, i8>,
        _ => return None,
    })
}

/// `mul.wide`: the whole product in the next wider type.
pub(crate) fn wide(ty: Type) -> Option<Fn2> {
    Some(match ty {
        Type::U16 => |a, b| (u32::from(a as u16) * u32::from(b as u16)).put(),
        Type::S16 => |a, b| (i32::from(a as i16) * i32::from(b as i16)).put(),
        Type::U32 => |a, b| u64::from(a as u32) * u64::from(b as u32),
        Type::S32 => |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64,
        _ => return None,
    })
}

fn add_carry<T: Int>(a: u64, b: u64, carry: u64) -> u64 {
    T::get(a).add(T::get(b)).add(T::get(carry)).put()
}
fn carry_of_add<T: Int>(a: u64, b: u64, carry: u64) -> u64 {
    let sum = u128::from(T::get(a).put()) + u128::from(T::get(b).put()) + u128::from(carry);
    u64::from(sum >> T::BITS != 0)
}
fn sub_borrow<T: Int>(a: u64, b: u64, borrow: u64) -> u64 {
    T::get(a).sub(T::get(b)).sub(T::get(borrow)).put()
}
fn borrow_of_sub<T: Int>(a: u64, b: u64, borrow: u64) -> u64 {
    u64::from(u128::from(T::get(a).put()) < u128::from(T::get(b).put()) + u128::from(borrow))
}

/// Result and carry of `add`/`sub` on two values and a carry (PTX ISA, "Extended-Precision
/// Integer Arithmetic Instructions"); the carry of a subtraction is its borrow.
pub(crate) fn carry(subtract: bool, ty: Type) -> Option<(Fn3, Fn3)> {
    if subtract {
        Some((typed!(ty, sub_borrow), typed!(ty, borrow_of_sub)))
    } else {
        Some((typed!(ty, add_carry), typed!(ty, carry_of_add)))
    }
}

fn exch<T: Int>(_: u64, b: u64, _: u64) -> u64 {
    T::get(b).put()
}
fn cas<T: Int>(old: u64, b: u64, c: u64) -> u64 {
    if T::get(old) == T::get(b) { T::get(c).put() } else { T::get(old).put() }
}
fn atomic2<T: Int>(opcode: &str) -> Option<Fn3> {
    Some(match opcode {
        "add" => |a, b, _| add::<T>(a, b),
        "min" => |a, b, _| min::<T>(a, b),
        "max" => |a, b, _| max::<T>(a, b),
        "and" => |a, b, _| and::<T>(a, b),
        "or" => |a, b, _| or::<T>(a, b),
        "xor" => |a, b, _| xor::<T>(a, b),
        "exch" => exch::<T>,
        "cas" => cas::<T>,
        _ => return None,
    })
}

/// New value of an atomic operation from the old value and its operands.
pub(crate) fn atomic(opcode: &str, ty: Type) -> Option<Fn3> {
    match (opcode, ty) {
        ("inc", Type::U32) => Some(|old, b, _| {
            let (old, b) = (old as u32, b as u32);
            if old >= b { 0 } else { u64::from(old + 1) }
        }),
        ("dec", Type::U32) => Some(|old, b, _| {
            let (old, b) = (old as u32, b as u32);
            u64::from(if old == 0 || old > b { b } else { old - 1 })
        }),
        ("exch", Type::F32) => Some(exch::<u32>),
        ("exch", Type::F64) => Some(exch::<u64>),
        ("cas" | "exch", Type::B16 | Type::U16 | Type::S16) => atomic2::<u16>(opcode),
        (_, Type::U32 | Type::B32) => atomic2::<u32>(opcode),
        (_, Type::S32) => atomic2::<i32>(opcode),
        (_, Type::U64 | Type::B64) => atomic2::<u64>(opcode),
        (_, Type::S64) => atomic2::<i64>(opcode),
        _ => None,
    }
}
