//! Integers as the bits of a register.

use std::cmp::Ordering;

/// A typed view of a register.
pub(super) trait Word: Copy + PartialOrd {
    fn get(bits: u64) -> Self;
    fn put(self) -> u64;
}

/// Integer arithmetic as PTX defines it: wrapping, and all ones for a division by zero.
pub(super) trait Int: Word + Ord {
    const BITS: u32;
    const MIN: Self;
    const MAX: Self;
    fn wide(self) -> i128;
    fn truncate(value: i128) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn rem(self, other: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn shr(self, count: u32) -> Self;

    fn saturate(value: i128) -> Self {
        Self::truncate(value.clamp(Self::MIN.wide(), Self::MAX.wide()))
    }

    fn mul_high(self, other: Self) -> Self {
        // The low 128 bits of the product are right even where a signed one would overflow.
        Self::truncate(self.wide().wrapping_mul(other.wide()) >> Self::BITS)
    }
}

macro_rules! int {
    ($($ty:ident $unsigned:ident),*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn get(bits: u64) -> Self {
                bits as $ty
            }
            #[inline(always)]
            fn put(self) -> u64 {
                self as $unsigned as u64
            }
        }
        impl Int for $ty {
            const BITS: u32 = $ty::BITS;
            const MIN: Self = $ty::MIN;
            const MAX: Self = $ty::MAX;
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn truncate(value: i128) -> Self {
                value as $ty
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                if self.cmp(&0) == Ordering::Less { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn shr(self, count: u32) -> Self {
                if count < $ty::BITS {
                    self >> count
                } else {
                    // Clamped: only the sign is left.
                    (self >> ($ty::BITS - 1)) >> 1
                }
            }
        }
    )*};
}

int!(u8 u8, u16 u16, u32 u32, u64 u64, i8 u8, i16 u16, i32 u32, i64 u64);

impl Word for f32 {
    #[inline(always)]
    fn get(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Word for f64 {
    #[inline(always)]
    fn get(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        self.to_bits()
    }
}
