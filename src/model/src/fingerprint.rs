//! Fingerprints: equal for two occurrences of the same mistake.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Hash of a finding's class and kind, its two calls and its allocation's origin. The hash covers no
/// address, handle, id, or name of a stream or buffer, so it is the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub u64);

/// Without vowels and look-alikes, so that a fingerprint spells no word and is not misread.
const ALPHABET: &[u8; 30] = b"0123456789bcdfghjkmnpqrstvwxyz";

impl Fingerprint {
    /// Hashes the parts. A separator keeps `("ab", "c")` apart from `("a", "bc")`.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        // Room for what most findings have: a racy loop makes a fingerprint for each occurrence.
        let mut text = String::with_capacity(256);
        for part in parts {
            text.push_str(part);
            text.push('\u{1f}');
        }
        Self(xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    /// Parses what [`fmt::Display`] prints.
    pub fn parse(text: &str) -> Option<u64> {
        (text.len() == 8).then_some(())?;
        text.bytes().try_fold(0u64, |value, byte| {
            let digit = ALPHABET.iter().position(|&c| c == byte)?;
            Some(value * 30 + digit as u64)
        })
    }

    /// The part of the hash that is printed: 8 digits of 30.
    pub const fn short(self) -> u64 {
        self.0 % 30u64.pow(8)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.short();
        let mut digits = [0u8; 8];
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[(rest % 30) as usize];
            rest /= 30;
        }
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn printed_form_parses_back() {
        let f = Fingerprint::of(["missing-wait", "a", "b"]);
        assert_eq!(Fingerprint::parse(&f.to_string()), Some(f.short()));
        assert_eq!(Fingerprint::parse("nonsense!"), None);
    }

    #[test]
    fn boundaries_between_parts_count() {
        assert_ne!(Fingerprint::of(["ab", "c"]), Fingerprint::of(["a", "bc"]));
    }
}
