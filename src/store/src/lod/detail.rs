//! The operations of a bucket, packed: for each one its position, index and group.
//!
//! A list of variable-length numbers (seven bits a byte, the lowest first): position less the one
//! before times 16 plus the group, then the issue index less the one before. The first position
//! counts from the bucket's begin, the first index from the bucket's first operation.

use streamsan_model::OpGroup;

/// An operation of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) at: u64,
    pub(crate) g: u64,
    pub(crate) group: OpGroup,
}

/// Packs operations in ascending order of both position and index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    last: Option<(u64, u64)>,
}

impl Packer {
    pub(crate) fn push(&mut self, begin: u64, op: Packed) {
        let (at, g) = self.last.unwrap_or((begin, op.g));
        write(&mut self.bytes, (op.at - at) << 4 | op.group as u64);
        write(&mut self.bytes, op.g - g);
        self.last = Some((op.at, op.g));
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.last = None;
        std::mem::take(&mut self.bytes)
    }
}

/// The operations of a bucket; fewer, where the bytes make no sense.
pub(crate) fn unpack(begin: u64, first: u64, mut bytes: &[u8]) -> Vec<Packed> {
    let (mut at, mut g) = (begin, first);
    let mut operations = Vec::new();
    while let Some((step, after)) = read(&mut bytes).zip(read(&mut bytes)) {
        let Some(&group) = OpGroup::ALL.get((step & 15) as usize) else { break };
        at = at.saturating_add(step >> 4);
        g = g.saturating_add(after);
        operations.push(Packed { at, g, group });
    }
    operations
}

pub(crate) fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A distance of either direction as a number that is small where the distance is.
pub(crate) fn turned(distance: u64) -> u64 {
    let distance = distance as i64;
    (distance << 1 ^ distance >> 63) as u64
}

/// The distance of such a number.
pub(crate) fn straight(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::{Packed, Packer, straight, turned, unpack};
    use proptest::prelude::*;
    use streamsan_model::OpGroup;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            begin in 0u64..1 << 40,
            first in 0u64..1 << 40,
            steps in prop::collection::vec((0u64..1 << 30, 1u64..1 << 30, 0usize..9), 1..20),
        ) {
            let (mut at, mut g) = (begin, first);
            let operations: Vec<Packed> = steps.iter().enumerate().map(|(n, step)| {
                at += step.0;
                g += if n == 0 { 0 } else { step.1 };
                Packed { at, g, group: OpGroup::ALL[step.2] }
            }).collect();
            let mut packer = Packer::default();
            operations.iter().for_each(|&op| packer.push(begin, op));
            prop_assert_eq!(unpack(begin, first, &packer.take()), operations);
        }

        #[test]
        fn distances_come_back(distance: u64) {
            prop_assert_eq!(straight(turned(distance)), distance);
            prop_assert_eq!(turned(5u64.wrapping_sub(6)), 1);
        }

        #[test]
        fn damaged_bytes_are_no_panic(bytes: Vec<u8>) {
            unpack(u64::MAX, u64::MAX, &bytes);
        }
    }
}
