//! Conjunctions of conditions, in a form in which irrelevant ones are skipped together.
//!
//! Stage: the launch, its plan. Invariant: the numbers of the conditions are in ascending order.

/// Numbers of conditions in ascending order, 64 of them a block: which one, and which are in it.
#[derive(Debug)]
pub(in crate::access) struct Conjunction(Box<[(u32, u64)]>);

impl Conjunction {
    /// Makes a conjunction of numbers in ascending order.
    pub(super) fn new(numbers: impl IntoIterator<Item = u32>) -> Conjunction {
        let mut blocks: Vec<(u32, u64)> = Vec::new();
        for number in numbers {
            let (block, bit) = (number / 64, 1 << (number % 64));
            match blocks.last_mut() {
                Some(last) if last.0 == block => last.1 |= bit,
                _ => blocks.push((block, bit)),
            }
        }
        Conjunction(blocks.into())
    }

    /// The blocks.
    pub(in crate::access) fn blocks(&self) -> &[(u32, u64)] {
        &self.0
    }

    /// The numbers in ascending order.
    pub(in crate::access) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|&(block, bits)| numbers(block, bits))
    }
}

/// The numbers that these bits of a block are.
pub(in crate::access) fn numbers(block: u32, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(64 * block + bit)
    })
}

#[cfg(test)]
mod tests {
    use super::Conjunction;

    #[test]
    fn lists_hold_the_numbers_that_they_were_made_of() {
        for numbers in [vec![], vec![0], vec![63, 64], vec![1, 2, 62, 127, 128, 640, 1000]] {
            let conjunction = Conjunction::new(numbers.iter().copied());
            assert_eq!(conjunction.iter().collect::<Vec<_>>(), numbers);
        }
    }
}
