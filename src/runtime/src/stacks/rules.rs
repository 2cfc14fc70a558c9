//! Unwind rules by return address, for as many addresses as a program has.
//!
//! The unwinder's own cache has one place for an address and a few hundred places in all; two
//! addresses of one place drive each other out, and working a rule out again costs more than all the
//! rest of the walk. Training in PyTorch comes through thousands of addresses. So there are several
//! such caches, and an address goes to one in which its place is free.
//!
//! Invariant: an address stays with its cache, so that it is worked out once, until all caches have
//! its place taken.

use framehop::FrameAddress;

use super::machine::Cache;

/// Places of the unwinder's cache: the address modulo this.
const PLACES: usize = 509;
/// Caches at most, of 8 KiB each, beside 30 KiB of which little is ever touched.
const MOST: usize = 32;
/// Addresses that are remembered: a power of two, more than the caches have places for.
const SLOTS: usize = 1 << 15;
/// Slots that are looked at for one address.
const PROBES: usize = 8;

/// The rules that a thread has worked out.
pub(super) struct Rules {
    caches: Vec<Cache>,
    /// How many caches have each place taken: the first ones.
    taken: [u8; PLACES],
    /// Addresses with the number of their caches in the low byte; 0 for none.
    slots: Box<[u64]>,
}

impl Rules {
    pub(super) fn new() -> Self {
        let mut caches = Vec::with_capacity(MOST);
        caches.push(Cache::new_in());
        // Zeroed pages: only what is used takes memory.
        Self { caches, taken: [0; PLACES], slots: vec![0; SLOTS].into_boxed_slice() }
    }

    /// The cache for an address; `room` says whether there is room on the stack to make another.
    #[inline]
    pub(super) fn of(&mut self, at: FrameAddress, room: impl FnOnce() -> bool) -> &mut Cache {
        let address = at.address_for_lookup();
        let first = slot(address);
        for probe in 0..PROBES {
            let found = self.slots[(first + probe) & (SLOTS - 1)];
            if found >> 8 == address {
                return self.cache((found & 0xff) as usize);
            }
            if found == 0 {
                return self.assign(address, (first + probe) & (SLOTS - 1), room);
            }
        }
        self.cache(0)
    }

    #[inline]
    fn cache(&mut self, number: usize) -> &mut Cache {
        let number = if number < self.caches.len() { number } else { 0 };
        &mut self.caches[number]
    }

    #[cold]
    fn assign(&mut self, address: u64, slot: usize, room: impl FnOnce() -> bool) -> &mut Cache {
        let taken = &mut self.taken[(address % PLACES as u64) as usize];
        let mut number = usize::from(*taken);
        if number == self.caches.len() && number < MOST && room() {
            self.caches.push(Cache::new_in());
        }
        if number < self.caches.len() {
            *taken += 1;
            self.slots[slot] = address << 8 | number as u64;
        } else {
            // Shared with others, like all places of a single cache.
            number = slot % self.caches.len();
        }
        self.cache(number)
    }
}

/// Where the search for an address begins.
#[inline]
fn slot(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn number(rules: &mut Rules, address: u64) -> usize {
        let at = FrameAddress::from_return_address(address).expect("not zero");
        // A test's stack has room for every cache.
        let cache: *const Cache = rules.of(at, || true);
        rules.caches.iter().position(|own| core::ptr::eq(own, cache)).expect("one of them")
    }

    #[test]
    fn addresses_of_one_place_go_to_different_caches() {
        let mut rules = Rules::new();
        let addresses = (1..=MOST as u64).map(|at| 1 + at * PLACES as u64);
        let numbers: HashSet<usize> = addresses.map(|at| number(&mut rules, at)).collect();
        assert_eq!(numbers.len(), MOST);
    }

    #[test]
    fn an_address_stays_with_its_cache() {
        let mut rules = Rules::new();
        let addresses: Vec<u64> = (1..=12_000).map(|at| 0x7f00_0000_0000 + at * 1789).collect();
        let first: Vec<usize> = addresses.iter().map(|&at| number(&mut rules, at)).collect();
        let again: Vec<usize> = addresses.iter().map(|&at| number(&mut rules, at)).collect();
        let moved = first.iter().zip(&again).filter(|(a, b)| a != b).count();
        assert_eq!(moved, 0);
        let own: HashSet<(u64, usize)> =
            addresses.iter().zip(&first).map(|(&at, &n)| ((at - 1) % PLACES as u64, n)).collect();
        assert!(own.len() > 11_800, "{} of {}", own.len(), addresses.len());
    }

    #[test]
    fn more_addresses_than_places_share_them() {
        let mut rules = Rules::new();
        for at in 1..=4 * (MOST * PLACES) as u64 {
            number(&mut rules, at * 16);
        }
        assert_eq!(rules.caches.len(), MOST);
    }

    #[test]
    fn without_room_there_is_one_cache() {
        let mut rules = Rules::new();
        for at in 1..5_000 {
            rules.of(FrameAddress::from_return_address(at * 8).expect("not zero"), || false);
        }
        assert_eq!(rules.caches.len(), 1);
    }
}
