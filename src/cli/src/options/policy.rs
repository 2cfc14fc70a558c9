//! Order in which the simulated driver runs what is enqueued.

use std::fmt;
use std::str::FromStr;

/// A policy of the simulated driver, spelt as it reads it from `STREAMSAN_SIM_POLICY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SimPolicy {
    /// In the order of the calls, each at once.
    Eager,
    /// Only what a synchronisation waits for.
    Lazy,
    /// Everything but the stream with this number, as long as possible.
    Starve(u32),
    /// Any order that the program allows, drawn with this seed.
    Random(u64),
}

impl FromStr for SimPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number_after = |prefix: &str| text.strip_prefix(prefix);
        match text {
            "eager" => return Ok(Self::Eager),
            "lazy" => return Ok(Self::Lazy),
            _ => {}
        }
        if let Some(n) = number_after("starve:").and_then(|n| n.parse().ok()) {
            return Ok(Self::Starve(n));
        }
        if let Some(seed) = number_after("random:").and_then(|n| n.parse().ok()) {
            return Ok(Self::Random(seed));
        }
        Err("a policy is eager, lazy, starve:N (N: number of a stream) or random:SEED".to_owned())
    }
}

impl fmt::Display for SimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eager => f.write_str("eager"),
            Self::Lazy => f.write_str("lazy"),
            Self::Starve(n) => write!(f, "starve:{n}"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SimPolicy;

    #[test]
    fn every_policy_reads_back() {
        for text in ["eager", "lazy", "starve:3", "random:18446744073709551615"] {
            assert_eq!(text.parse::<SimPolicy>().map(|p| p.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn others_are_refused() {
        for text in ["", "Eager", "starve", "starve:", "starve:-1", "random:x"] {
            assert!(text.parse::<SimPolicy>().is_err(), "{text}");
        }
    }
}
