//! Sizes with binary suffixes.

use std::str::FromStr;

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a size is a number of bytes, or one with K, M, G or T: 500M".to_owned();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let suffix = suffix.to_ascii_uppercase();
        let shift = match suffix.strip_suffix("IB").or(suffix.strip_suffix('B')).unwrap_or(&suffix)
        {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(1 << shift).map(Self).ok_or_else(|| "the size is too large".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn suffixes_are_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("1k", 1024),
            ("500M", 500 << 20),
            ("2GiB", 2 << 30),
            ("3KB", 3072),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "M", "-1", "1.5G", "10X", "99999999999T"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
