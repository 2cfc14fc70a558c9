//! Rows of whole numbers in little room: rows that wait between the threads of the writer would take
//! five times as much memory as in the file, and how many wait at the most is a matter of luck.
//!
//! Each row is kept as its difference from the row before (delta encoding): a list of variable-length
//! numbers, first which columns differ (a bit each) and, behind these bits, which of them became NULL;
//! then, for each other column that differs, the distance from the number before (0 for NULL) in
//! zigzag encoding.

use crate::lod::detail::{read, straight, turned, write};

/// Rows in the order in which they came. Their room stays when they are cleared.
#[derive(Clone, Debug)]
pub(super) struct DeltaRows<const WIDTH: usize> {
    bytes: Vec<u8>,
    count: usize,
    last: [Option<i64>; WIDTH],
}

impl<const WIDTH: usize> Default for DeltaRows<WIDTH> {
    fn default() -> Self {
        Self { bytes: Vec::new(), count: 0, last: [None; WIDTH] }
    }
}

impl<const WIDTH: usize> DeltaRows<WIDTH> {
    pub(super) fn push(&mut self, row: &[Option<i64>; WIDTH]) {
        const { assert!(2 * WIDTH <= u64::BITS as usize) };
        let mut masks = 0u64;
        for (column, (new, old)) in row.iter().zip(&self.last).enumerate() {
            masks |= u64::from(new != old) << column;
            masks |= u64::from(new.is_none() && old.is_some()) << (WIDTH + column);
        }
        write(&mut self.bytes, masks);
        for column in differing::<WIDTH>(masks) {
            let before = std::mem::replace(&mut self.last[column], row[column]);
            if let Some(number) = row[column] {
                let distance = number.wrapping_sub(before.unwrap_or(0));
                write(&mut self.bytes, turned(distance as u64));
            }
        }
        self.count += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.last) = (0, [None; WIDTH]);
    }

    pub(super) fn iter(&self) -> Iter<'_, WIDTH> {
        Iter { bytes: &self.bytes, left: self.count, row: [None; WIDTH] }
    }
}

/// The columns of a row that differ from the row before, the first ones first.
fn differing<const WIDTH: usize>(masks: u64) -> impl Iterator<Item = usize> {
    let mut left = masks & ((1 << WIDTH) - 1);
    std::iter::from_fn(move || {
        let column = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(column)
    })
}

/// The rows, the first one first.
#[derive(Clone, Debug)]
pub(super) struct Iter<'a, const WIDTH: usize> {
    bytes: &'a [u8],
    left: usize,
    row: [Option<i64>; WIDTH],
}

impl<const WIDTH: usize> Iterator for Iter<'_, WIDTH> {
    type Item = [Option<i64>; WIDTH];

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let masks = read(&mut self.bytes)?;
        for column in differing::<WIDTH>(masks) {
            let number = &mut self.row[column];
            *number = match masks >> (WIDTH + column) & 1 {
                0 => {
                    let distance = straight(read(&mut self.bytes)?) as i64;
                    Some(number.unwrap_or(0).wrapping_add(distance))
                }
                _ => None,
            };
        }
        Some(self.row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<const WIDTH: usize> ExactSizeIterator for Iter<'_, WIDTH> {}

#[cfg(test)]
mod tests {
    use super::DeltaRows;
    use crate::action::ActionColumns;
    use crate::row::{AccessColumns, AccessRow, OpRow};
    use crate::schema::ACCESS_BITS;
    use crate::writer::batch::Batch;
    use proptest::prelude::*;
    use streamsan_model::{Access, Action, AllocationId, Basis, ByteRange, Extent, Mode, StreamId};

    fn number() -> impl Strategy<Value = Option<i64>> {
        prop_oneof![
            3 => Just(None),
            3 => (-2i64..3).prop_map(Some),
            1 => Just(Some(i64::MIN)),
            1 => Just(Some(i64::MAX)),
            2 => any::<i64>().prop_map(Some),
        ]
    }

    proptest! {
        #[test]
        fn rows_come_back(
            first in prop::collection::vec(prop::array::uniform4(number()), 0..20),
            second in prop::collection::vec(prop::array::uniform4(number()), 0..20),
        ) {
            let mut rows = DeltaRows::<4>::default();
            for list in [&first, &second] {
                rows.clear();
                list.iter().for_each(|row| rows.push(row));
                prop_assert_eq!(rows.len(), list.len());
                prop_assert_eq!(rows.iter().len(), list.len());
                prop_assert_eq!(&rows.iter().collect::<Vec<_>>(), list);
            }
        }
    }

    #[test]
    fn widest_rows_come_back() {
        let mut rows = DeltaRows::<32>::default();
        let all = [[None; 32], [Some(i64::MIN); 32], [Some(i64::MAX); 32], [None; 32]];
        all.iter().for_each(|row| rows.push(row));
        assert_eq!(rows.iter().collect::<Vec<_>>(), all);
    }

    /// Calls at random in a few streams, with an access of 64 KiB each.
    #[test]
    fn rows_that_wait_take_less_than_they_are_counted_for() {
        let (mut batch, mut random, mut now) = (Batch::default(), 7u64, 0);
        for g in 1i64..=1024 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += (random >> 50) as i64;
            let stream = StreamId((random >> 33) as u32 % 16);
            let call = OpRow {
                g,
                exit_after: Some(1),
                process: 0,
                thread: 0,
                api: (random >> 40) as i64 % 30,
                action: ActionColumns::from(&Action::Prefetch { stream }),
                start_ns: Some(now),
                duration_ns: Some((random >> 45) as i64 & 0x3fff),
                result: 0,
                stack: Some((random >> 20) as i64 % 1000),
            };
            batch.operations.push(&call.numbers());
            let start = (random >> 24) & 0xffff_ff00;
            let access = Access {
                allocation: AllocationId((random >> 36) as u32 % 100),
                extent: Extent::Range(ByteRange::new(start, start + (1 << 16))),
                mode: Mode::Read,
                basis: Basis::Exact,
            };
            let columns = AccessColumns::encode(&access, |_| 0);
            batch.accesses.push(&AccessRow { id: g << ACCESS_BITS, columns }.numbers());
        }
        let taken = batch.operations.bytes.capacity() + batch.accesses.bytes.capacity();
        let counted = batch.estimated_bytes();
        assert!(taken as u64 <= counted, "{taken} bytes of memory for {counted}");
    }
}
