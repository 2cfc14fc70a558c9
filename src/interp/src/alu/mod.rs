//! The arithmetic instructions: one function of raw 64-bit values for each opcode
//! and type, chosen once when a module is lowered.
//!
//! A value of fewer than 64 bits has zeros above; functions take what they need of their
//! arguments and return values in that form. Predicates are 0 and 1.

mod bits;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod rounding;
mod word;

pub(super) use bits::{bits1, bits2, bits3, insert_field, lop3};
pub(super) use compare::{boolean, compare, select_by_sign};
pub(super) use convert::{Convert, Round, convert, convert_pair, fast_convert, sign_extend};
pub(super) use float::{atomic_add, float1, float2, float3, flush, saturate};
pub(super) use integer::{atomic, carry, integer1, integer2, integer3, wide};

pub(super) type Fn1 = fn(u64) -> u64;
pub(super) type Fn2 = fn(u64, u64) -> u64;
pub(super) type Fn3 = fn(u64, u64, u64) -> u64;
