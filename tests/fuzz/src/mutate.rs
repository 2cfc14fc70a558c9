//! Mutations without coverage: the same for the same number, in every run.

/// A sequence of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    /// Changes bytes, numbers and parts of an input, which `others` lend parts to.
    pub fn mutate(&mut self, input: &mut Vec<u8>, others: &[Vec<u8>], longest: usize) {
        for _ in 0..1 + self.below(4) {
            self.change(input, others);
        }
        input.truncate(longest);
    }

    fn change(&mut self, input: &mut Vec<u8>, others: &[Vec<u8>]) {
        const NUMBERS: [u64; 9] =
            [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];
        let at = self.below(input.len());
        let length = 1 + self.below(16);
        let end = (at + length).min(input.len());
        match self.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            1 if !input.is_empty() => input[at] = self.next() as u8,
            2 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_le_bytes();
                let width = (1 << self.below(4)).min(input.len() - at);
                input[at..at + width].copy_from_slice(&number[..width]);
            }
            3 => drop(input.drain(at..end)),
            4 => {
                let part = input[at..end].to_vec();
                let many = 1 + self.below(64);
                let repeated = part.iter().copied().cycle().take(part.len() * many);
                input.splice(at..at, repeated.collect::<Vec<_>>());
            }
            5 if !others.is_empty() => {
                let other = &others[self.below(others.len())];
                let from = self.below(other.len());
                let to = (from + 1 + self.below(128)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            6 => input.truncate(at),
            // Digits, as texts have them.
            7 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_string();
                let digit = input[at..].iter().position(u8::is_ascii_digit);
                if let Some(first) = digit.map(|digit| at + digit) {
                    let rest = &input[first..];
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    input.splice(first..first + digits, number.into_bytes());
                }
            }
            _ => input.insert(at, self.next() as u8),
        }
    }
}
