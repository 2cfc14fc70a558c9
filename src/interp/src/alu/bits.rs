//! Shifts, bit fields and bit counting.

use streamsan_ptx::Type;

use super::integer::typed;
use super::word::Int;
use super::{Fn1, Fn2, Fn3};

fn shl<T: Int>(a: u64, count: u64) -> u64 {
    let count = count as u32;
    if count < T::BITS { T::get(a << count).put() } else { 0 }
}
fn shr<T: Int>(a: u64, count: u64) -> u64 {
    T::get(a).shr(count as u32).put()
}

/// Position of the highest bit that matters, or all ones: for signed values that bit differs
/// from the sign.
fn find<T: Int>(a: u64) -> Option<u32> {
    let value = T::get(a);
    let bits = if value.wide() < 0 { T::truncate(!value.wide()) } else { value }.put();
    (bits != 0).then(|| 63 - bits.leading_zeros())
}
fn bfind<T: Int>(a: u64) -> u64 {
    find::<T>(a).map_or(0xffff_ffff, u64::from)
}
fn bfind_shift<T: Int>(a: u64) -> u64 {
    find::<T>(a).map_or(0xffff_ffff, |at| u64::from(T::BITS - 1 - at))
}

fn bfe<T: Int>(a: u64, position: u64, length: u64) -> u64 {
    let (pos, len) = (position as u32 & 0xff, length as u32 & 0xff);
    let value = T::get(a);
    let signed = T::MIN.wide() < 0;
    let top = T::BITS - 1;
    let bit = |at: u32| value.put() >> at & 1;
    let sign = if !signed || len == 0 { 0 } else { bit((pos + len - 1).min(top)) };
    let mut out = if sign == 1 { u64::MAX } else { 0 };
    let count = if pos > top { 0 } else { len.min(top - pos + 1) };
    if count > 0 {
        let mask = u64::MAX >> (64 - count);
        out = (out & !mask) | (value.put() >> pos & mask);
    }
    T::get(out).put()
}

/// `bfi`: the low `length` bits of `a` put into `b` at `position`; `bits` is 32 or 64.
pub(crate) fn insert_field(a: u64, b: u64, position: u64, length: u64, bits: u32) -> u64 {
    let (pos, len) = (position as u32 & 0xff, length as u32 & 0xff);
    if pos >= bits || len == 0 {
        return b;
    }
    let count = len.min(bits - pos);
    let mask = (u64::MAX >> (64 - count)) << pos;
    (b & !mask) | (a << pos & mask)
}

/// The byte of `{b, a}` that a selector nibble names; bit 3 replicates its sign.
fn permuted(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & 0xffff_ffff) | b << 32;
    let byte = bytes >> ((selector & 7) * 8) & 0xff;
    if selector & 8 == 0 {
        byte
    } else if byte & 0x80 != 0 {
        0xff
    } else {
        0
    }
}
fn prmt(a: u64, b: u64, c: u64) -> u64 {
    (0..4).fold(0, |out, n| out | permuted(a, b, c >> (4 * n) & 15) << (8 * n))
}
fn prmt_table(a: u64, b: u64, c: u64, table: [u16; 4]) -> u64 {
    prmt(a, b, u64::from(table[c as usize & 3]))
}

fn funnel(a: u64, b: u64) -> u64 {
    (a & 0xffff_ffff) | b << 32
}

/// `lop3.b32`: any function of three bits, given as its truth table.
pub(crate) fn lop3(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let (a, b, c) = (a as u32, b as u32, c as u32);
    let mut out = 0;
    for row in 0..8 {
        if table >> row & 1 == 1 {
            let pick = |value: u32, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    u64::from(out)
}

pub(crate) fn bits1(opcode: &str, mode: &str, ty: Type) -> Option<Fn1> {
    Some(match (opcode, ty) {
        ("popc", Type::B32) => |a| u64::from((a as u32).count_ones()),
        ("popc", Type::B64) => |a| u64::from(a.count_ones()),
        ("clz", Type::B32) => |a| u64::from((a as u32).leading_zeros()),
        ("clz", Type::B64) => |a| u64::from(a.leading_zeros()),
        ("brev", Type::B32) => |a| u64::from((a as u32).reverse_bits()),
        ("brev", Type::B64) => u64::reverse_bits,
        ("bfind", _) if mode == "shiftamt" => typed!(ty, bfind_shift),
        ("bfind", _) => typed!(ty, bfind),
        _ => return None,
    })
}

pub(crate) fn bits2(opcode: &str, mode: &str, ty: Type) -> Option<Fn2> {
    Some(match (opcode, mode) {
        ("shl", "") => typed!(ty, shl),
        ("shr", "") => typed!(ty, shr),
        ("bmsk", "clamp" | "wrap") => {
            if mode == "clamp" {
                |a, b| insert_field(u64::MAX, 0, (a as u32).min(255).into(), b.min(32), 32)
            } else {
                |a, b| insert_field(u64::MAX, 0, a & 31, b & 31, 32)
            }
        }
        _ => return None,
    })
}

pub(crate) fn bits3(opcode: &str, mode: &str, ty: Type) -> Option<Fn3> {
    Some(match (opcode, mode) {
        ("bfe", "") => typed!(ty, bfe),
        ("prmt", "") => prmt,
        ("prmt", "f4e") => |a, b, c| prmt_table(a, b, c, [0x3210, 0x4321, 0x5432, 0x6543]),
        ("prmt", "b4e") => |a, b, c| prmt_table(a, b, c, [0x5670, 0x6701, 0x7012, 0x0123]),
        ("prmt", "rc8") => |a, b, c| prmt_table(a, b, c, [0x0000, 0x1111, 0x2222, 0x3333]),
        ("prmt", "ecl") => |a, b, c| prmt_table(a, b, c, [0x3210, 0x3211, 0x3222, 0x3333]),
        ("prmt", "ecr") => |a, b, c| prmt_table(a, b, c, [0x0000, 0x1110, 0x2210, 0x3210]),
        ("prmt", "rc16") => |a, b, c| prmt_table(a, b, c, [0x1010, 0x3232, 0x1010, 0x3232]),
        ("shf", "l.clamp") => |a, b, c| funnel(a, b) << c.min(32) >> 32,
        ("shf", "l.wrap") => |a, b, c| funnel(a, b) << (c & 31) >> 32,
        ("shf", "r.clamp") => |a, b, c| funnel(a, b) >> (c as u32).min(32) & 0xffff_ffff,
        ("shf", "r.wrap") => |a, b, c| funnel(a, b) >> (c & 31) & 0xffff_ffff,
        _ => return None,
    })
}
