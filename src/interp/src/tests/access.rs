//! Byte sets.

use proptest::prelude::*;

use crate::access::ByteSet;

#[test]
fn adjacent_and_overlapping_accesses_merge() {
    let mut set = ByteSet::default();
    for (start, size) in [(4096, 4), (4092, 4), (4100, 8), (4104, 16), (100, 1), (102, 1)] {
        set.insert(start, size);
    }
    assert_eq!(set.ranges(), [100..101, 102..103, 4092..4120]);
}

#[test]
fn strided_accesses_fill_up_to_one_range() {
    let mut set = ByteSet::default();
    for column in 0..64u64 {
        for row in 0..64u64 {
            set.insert(0x1000 + row * 256 + column * 4, 4);
        }
    }
    assert_eq!(set.ranges(), vec![0x1000..0x1000 + 64 * 256]);
}

proptest! {
    #[test]
    fn ranges_are_exactly_the_bytes_inserted(
        accesses in prop::collection::vec((0u64..12_000, 0u64..300), 0..60)
    ) {
        let base = 0x7fff_0000_0000u64 - 50;
        let mut set = ByteSet::default();
        let mut bytes = vec![false; 12_400];
        for &(start, size) in &accesses {
            set.insert(base + start, size);
            bytes[start as usize..(start + size) as usize].fill(true);
        }
        let mut expected: Vec<std::ops::Range<u64>> = Vec::new();
        for (at, _) in bytes.iter().enumerate().filter(|(_, inside)| **inside) {
            let at = base + at as u64;
            match expected.last_mut() {
                Some(last) if last.end == at => last.end = at + 1,
                _ => expected.push(at..at + 1),
            }
        }
        prop_assert_eq!(set.ranges(), expected);
    }
}
