//! Bounds of translatable pointers: the values between which every test of a launch has the same
//! outcome.
//!
//! Stage: the launch. Invariant: each test of a pointer's value narrows its bounds to the values
//! with the same answer.

use smallvec::SmallVec;

use crate::access::launch::instantiate::Launch;
use crate::access::launch::plan::{Plan, TranslatableBase};

/// A translatable pointer, at one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) struct TranslatedPointer {
    pub(in crate::access) value: u64,
    /// The pointer's value as the kernel adds it to other values.
    number: i128,
    /// Between these, both of them included, everything comes out the same.
    pub(in crate::access) least: u64,
    pub(in crate::access) most: u64,
}

/// The translatable pointers of a launch, in the order of the plan.
pub(in crate::access) type TranslatedPointers = SmallVec<[TranslatedPointer; 8]>;

/// The pointers of a launch. A pointer that is negative as a signed number has no bounds.
pub(in crate::access) fn pointers(plan: &Plan, launch: &Launch<'_>) -> TranslatedPointers {
    let of = |word: &TranslatableBase| {
        let value = word_at(launch.params, word.offset);
        match i64::try_from(value) {
            Ok(_) => {
                TranslatedPointer { value, number: value.into(), least: 0, most: i64::MAX as u64 }
            }
            Err(_) => {
                let number = if word.signed { (value as i64).into() } else { value.into() };
                TranslatedPointer { value, number, least: value, most: value }
            }
        }
    };
    plan.translatable.iter().map(of).collect()
}

/// Eight bytes of the parameter block; 0 where it does not hold them.
pub(in crate::access) fn word_at(params: &[u8], offset: u32) -> u64 {
    let at = offset as usize;
    let bytes = params.get(at..at.saturating_add(8)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The lower half of such a word; 0 where the block does not hold it.
pub(in crate::access) fn half_at(params: &[u8], offset: u32) -> u32 {
    let at = offset as usize;
    let bytes = params.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

impl TranslatedPointer {
    /// The pointer's value as a number that may be added to others.
    pub(in crate::access) fn number(&self) -> i128 {
        self.number
    }

    /// Notes that `sum`, in which the pointer counts once, is `low` or more, and whether that
    /// decides something.
    pub(in crate::access) fn at_least(&mut self, sum: i128, low: i128) -> bool {
        let holds = sum >= low;
        // The value of the pointer at which `sum` is `low`.
        let edge = self.number - (sum - low);
        match holds {
            true => self.raise(edge),
            false => self.lower(edge - 1),
        }
        holds
    }

    /// Notes that `sum` is `high` or less.
    pub(in crate::access) fn at_most(&mut self, sum: i128, high: i128) -> bool {
        let holds = sum <= high;
        let edge = self.number + (high - sum);
        match holds {
            true => self.lower(edge),
            false => self.raise(edge + 1),
        }
        holds
    }

    /// Nothing is known of other values.
    pub(in crate::access) fn pin(&mut self) {
        (self.least, self.most) = (self.value, self.value);
    }

    fn raise(&mut self, edge: i128) {
        if self.least < self.value {
            self.least = self.least.max(edge.clamp(0, self.number) as u64);
        }
    }

    fn lower(&mut self, edge: i128) {
        if self.most > self.value {
            self.most = self.most.min(edge.clamp(self.number, u64::MAX.into()) as u64);
        }
    }
}
