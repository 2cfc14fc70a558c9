//! A hash index: numbers of items by their hashes, for the computation of one launch.
//!
//! Stage: the launch. Invariant: items are numbered in the order in which they are added, whatever
//! their hashes are.

/// Things are numbered from 0 in the order in which they come. Those of one hash form a chain.
#[derive(Debug, Default)]
pub(in crate::access) struct HashIndex {
    /// By the lowest bits of the hash: the last thing of it.
    last: Vec<u32>,
    /// By thing: the one before it.
    before: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl HashIndex {
    /// Forgets all things; about so many will come.
    pub(in crate::access) fn clear(&mut self, expected: usize) {
        self.last.clear();
        self.last.resize(expected.next_power_of_two().clamp(16, 1024), NONE);
        self.before.clear();
    }

    /// The number of the thing that is the same as one of this hash; else it gets the next number,
    /// and is new.
    pub(in crate::access) fn number(
        &mut self,
        hash: u64,
        same: impl Fn(usize) -> bool,
    ) -> (usize, bool) {
        let place = hash as usize & (self.last.len() - 1);
        let mut at = self.last[place];
        while at != NONE {
            if same(at as usize) {
                return (at as usize, false);
            }
            at = self.before[at as usize];
        }
        let next = self.before.len();
        self.before.push(std::mem::replace(&mut self.last[place], next as u32));
        (next, true)
    }

    /// Gives the next number to a thing that no other one is the same as.
    pub(in crate::access) fn skip(&mut self) {
        self.before.push(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::HashIndex;

    #[test]
    fn things_of_one_hash_are_told_apart() {
        let mut index = HashIndex::default();
        for _ in 0..2 {
            index.clear(1);
            let mut things: Vec<u64> = Vec::new();
            for thing in (0..100).chain(0..100) {
                let (number, new) = index.number(thing % 7, |at| things[at] == thing);
                assert_eq!(new, number == things.len());
                if new {
                    things.push(thing);
                }
                assert_eq!(things[number], thing);
            }
            assert_eq!(things.len(), 100);
        }
    }
}
