//! Numbers as people read them.

/// `18,233`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests {
    use super::{number, ordinal};

    #[test]
    fn thousands_are_divided() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_204_331, "1,204,331")] {
            assert_eq!(number(n), text);
        }
    }

    #[test]
    fn ordinals_end_as_they_are_spoken() {
        for (n, text) in [
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (4, "4th"),
            (11, "11th"),
            (22, "22nd"),
            (113, "113th"),
        ] {
            assert_eq!(ordinal(n), text);
        }
    }
}
