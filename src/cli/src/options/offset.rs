//! By how much a trace is shifted against others: `2=+1.5ms`.

use std::str::FromStr;

/// A trace among several, and how far its host times are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// The trace, counted from 0.
    pub(crate) trace: usize,
    /// Nanoseconds.
    pub(crate) by_ns: i64,
}

/// Nanoseconds of a unit.
const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "an offset is the number of a trace on the command line, from 1, and a time with its \
             unit (ns, us, ms, s): 2=+1.5ms"
                .to_owned()
        };
        let (trace, time) = text.split_once('=').ok_or_else(wrong)?;
        let trace: usize = trace.parse().map_err(|_| wrong())?;
        let trace = trace.checked_sub(1).ok_or_else(wrong)?;
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, ns)| {
                let number = time.strip_suffix(unit)?;
                // `ms` ends in `s`, too.
                number.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some((number, ns))
            })
            .ok_or_else(wrong)?;
        let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
        let number: f64 =
            number.parse().ok().filter(|_| number.chars().all(is_decimal)).ok_or_else(wrong)?;
        let ns = (number * unit).round();
        // Years: no clocks differ by more.
        if ns.abs() > 1e18 {
            return Err(wrong());
        }
        Ok(Self { trace, by_ns: ns as i64 })
    }
}

#[cfg(test)]
mod tests {
    use super::Offset;

    #[test]
    fn times_have_units_and_signs() {
        for (text, trace, by_ns) in [
            ("2=+1.5ms", 1, 1_500_000),
            ("1=-3s", 0, -3_000_000_000),
            ("3=17ns", 2, 17),
            ("2=250us", 1, 250_000),
            ("2=-0.5µs", 1, -500),
        ] {
            assert_eq!(text.parse(), Ok(Offset { trace, by_ns }), "{text}");
        }
        for wrong in ["", "2", "0=1s", "2=1", "2=s", "2=ms", "a=1s", "2=1e3s", "2=infs", "2=1h"] {
            assert!(wrong.parse::<Offset>().is_err(), "{wrong}");
        }
        assert!("2=99999999999s".parse::<Offset>().is_err());
    }
}
