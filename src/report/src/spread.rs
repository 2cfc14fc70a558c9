//! The streams and the memory of all occurrences of one mistake.
//!
//! Findings of one fingerprint have the same two calls, but not always the same streams and
//! buffers: a kernel that runs in eight streams on eight buffers is one mistake. The report shows
//! one occurrence in full, and names the streams and buffers of the others here.

use crate::Report;
use crate::names::number;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{AllocationId, Finding, StreamId};

/// Pairs of streams, and allocations, of one mistake that are kept apart.
const KEPT: usize = 256;

/// Pairs of streams that a line names; the JSON form names all that are kept.
const NAMED: usize = 4;

/// The streams of the two sides; `None` for the host.
pub(crate) type StreamPair = [Option<StreamId>; 2];

/// Where the occurrences of one mistake are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Occurrences by the streams of the first and the second side.
    pub(crate) pairs: BTreeMap<StreamPair, u64>,
    pub(crate) allocations: BTreeSet<AllocationId>,
    /// There are more pairs, or more allocations, than are kept.
    pub(crate) truncated: [bool; 2],
}

impl Spread {
    /// Takes an occurrence.
    pub(crate) fn add(&mut self, finding: &Finding) {
        self.add_pair([finding.first.stream, finding.second.stream], 1);
        self.add_allocation(finding.allocation);
    }

    /// Takes the occurrences of the same mistake that were kept elsewhere.
    pub(crate) fn absorb(&mut self, other: &Self) {
        other.pairs.iter().for_each(|(&pair, &count)| self.add_pair(pair, count));
        other.allocations.iter().for_each(|&allocation| self.add_allocation(allocation));
        let [pairs, allocations] = other.truncated;
        self.truncated = [self.truncated[0] || pairs, self.truncated[1] || allocations];
    }

    // The lowest ones are kept, so that the order of the findings does not matter.

    fn add_pair(&mut self, pair: StreamPair, count: u64) {
        *self.pairs.entry(pair).or_default() += count;
        self.truncated[0] |= self.pairs.len() > KEPT && self.pairs.pop_last().is_some();
    }

    fn add_allocation(&mut self, allocation: AllocationId) {
        self.allocations.insert(allocation);
        let too_many = self.allocations.len() > KEPT;
        self.truncated[1] |= too_many && self.allocations.pop_last().is_some();
    }

    /// `in 3 pairs of streams and on 4 allocations`; nothing where all occurrences are about the same.
    pub(crate) fn amounts(&self) -> Option<String> {
        let amount = |n: usize, truncated: bool, place: &str, many: &str| {
            let more = if truncated { "more than " } else { "" };
            (n > 1).then(|| format!("{place} {more}{} {many}", number(n as u64)))
        };
        let [pairs, allocations] = self.truncated;
        let pairs = amount(self.pairs.len(), pairs, "in", "pairs of streams");
        let allocations = amount(self.allocations.len(), allocations, "on", "allocations");
        match (pairs, allocations) {
            (Some(pairs), Some(allocations)) => Some(format!("{pairs} and {allocations}")),
            (pairs, allocations) => pairs.or(allocations),
        }
    }
}

impl Report<'_> {
    /// `(1) and (2) were in stream 1 and stream 2 (8 times); stream 3 and stream 4 (once); ...`, the
    /// most frequent first; nothing where all occurrences are in the same streams.
    pub(crate) fn pairs_in_words(&self, spread: &Spread) -> Option<String> {
        if spread.pairs.len() < 2 {
            return None;
        }
        let mut pairs: Vec<(&StreamPair, u64)> =
            spread.pairs.iter().map(|(p, &n)| (p, n)).collect();
        pairs.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let in_words = |&(pair, count): &(&StreamPair, u64)| {
            let [first, second] = pair.map(|stream| self.side(stream));
            let times = match count {
                1 => "once".to_owned(),
                count => format!("{} times", number(count)),
            };
            match first == second {
                true => format!("{first} ({times})"),
                false => format!("{first} and {second} ({times})"),
            }
        };
        let mut named: Vec<String> = pairs.iter().take(NAMED).map(in_words).collect();
        if pairs.len() > NAMED || spread.truncated[0] {
            let more = if spread.truncated[0] { "more than " } else { "" };
            named.push(format!("{more}{} more", number((pairs.len().max(NAMED) - NAMED) as u64)));
        }
        Some(format!("(1) and (2) were in {}", named.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(of: impl IntoIterator<Item = u32>) -> Spread {
        let mut spread = Spread::default();
        for id in of {
            spread.add_pair([Some(StreamId(id)), None], 1);
            spread.add_allocation(AllocationId(id));
        }
        spread
    }

    #[test]
    fn amounts_are_told_where_there_are_several() {
        assert_eq!(spread([1, 1, 1]).amounts(), None);
        let two = spread([1, 2, 1]).amounts();
        assert_eq!(two.as_deref(), Some("in 2 pairs of streams and on 2 allocations"));
        let many = spread(0..300).amounts();
        let expected = "in more than 256 pairs of streams and on more than 256 allocations";
        assert_eq!(many.as_deref(), Some(expected));
    }

    #[test]
    fn what_is_kept_does_not_hang_on_the_order() {
        let ids = || (0..700).map(|n| n % 350);
        let whole = spread(ids());
        assert_eq!(spread(ids().rev()), whole);
        let mut parts = spread(ids().skip(200));
        parts.absorb(&spread(ids().take(200)));
        assert_eq!(parts, whole);
        assert!(whole.pairs.values().all(|&count| count == 2));
    }
}
