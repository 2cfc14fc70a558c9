//! Counts of right and wrong answers, and the rates that follow from them.

use std::ops::Add;

/// How often an answer was right and wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    /// Expected and found.
    pub(crate) true_positives: usize,
    /// Found and not expected.
    pub(crate) false_positives: usize,
    /// Expected and not found.
    pub(crate) false_negatives: usize,
    /// Neither expected nor found.
    pub(crate) true_negatives: usize,
}

impl Add for Score {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            true_positives: self.true_positives + other.true_positives,
            false_positives: self.false_positives + other.false_positives,
            false_negatives: self.false_negatives + other.false_negatives,
            true_negatives: self.true_negatives + other.true_negatives,
        }
    }
}

impl Score {
    /// Counts one answer.
    pub(crate) fn count(&mut self, expected: bool, found: bool) {
        let counter = match (expected, found) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (true, false) => &mut self.false_negatives,
            (false, false) => &mut self.true_negatives,
        };
        *counter += 1;
    }

    /// Precision, recall and F1 as three cells of a table.
    pub(crate) fn rates(self) -> String {
        let found = self.true_positives + self.false_positives;
        let expected = self.true_positives + self.false_negatives;
        let rate = |part: usize, whole: usize| match whole {
            0 => "–".to_owned(),
            _ => format!("{:.3}", part as f64 / whole as f64),
        };
        format!(
            "{} | {} | {}",
            rate(self.true_positives, found),
            rate(self.true_positives, expected),
            rate(2 * self.true_positives, found + expected),
        )
    }
}
