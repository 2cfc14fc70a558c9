//! Suppressions: each line names accepted pairs, and the reason.
//!
//! ```text
//! race[missing-wait]: kernel:flash_* & api:cuMemcpyHtoD* stream:prefetch  reason="upstream #12" expires=2026-12-01
//! ```
//!
//! Both sides are named, so that a pattern for one library does not hide a mistake of the program
//! that happens to meet it. The order of the sides does not matter.

use super::GateError;
use super::lex::{Word, words};
use super::pair::{KernelNames, PairPattern};
use crate::Group;
use chrono::NaiveDate;
use streamsan_model::{Entities, Lint, RaceClass, Severity};
use wildmatch::WildMatch;

/// A file of suppressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suppressions {
    /// In the order of the file.
    pub entries: Vec<Suppression>,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Suppression {
    /// Its line, counted from 1.
    pub line: usize,
    /// The severity that is accepted.
    pub severity: Severity,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it counts.
    pub expires: Option<NaiveDate>,
    class: WildMatch,
    pair: PairPattern,
}

impl Suppressions {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is not a suppression.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let words = words(line, index + 1)?;
            if !words.is_empty() {
                entries.push(entry(&words, index + 1)?);
            }
        }
        Ok(Self { entries })
    }
}

fn entry(words: &[Word], line: usize) -> Result<Suppression, GateError> {
    let error = |message: String| GateError::new(line, message);
    let (head, rest) = words.split_first().ok_or_else(|| error("an empty line".to_owned()))?;
    let (severity, class) = head
        .text
        .strip_suffix("]:")
        .and_then(|head| head.split_once('['))
        .and_then(|(severity, class)| Some((severity.parse::<Severity>().ok()?, class)))
        .ok_or_else(|| {
            error(format!(
                "expected race[CLASS]:, latent[CLASS]: or lint[CLASS]:, not '{}'",
                head.text
            ))
        })?;
    let class_pattern = WildMatch::new(class);
    if !RaceClass::ALL.iter().any(|class| class_pattern.matches(class.description())) {
        return Err(error(format!("there is no class '{class}'")));
    }
    let (mut reason, mut expires) = (String::new(), None);
    let mut others = Vec::new();
    for word in rest {
        if let Some(text) = word.text.strip_prefix("reason=") {
            text.clone_into(&mut reason);
        } else if let Some(date) = word.text.strip_prefix("expires=") {
            let date = NaiveDate::parse_from_str(date, "%Y-%m-%d");
            expires =
                Some(date.map_err(|_| error("expires= takes a date: 2026-12-31".to_owned()))?);
        } else {
            others.push(word);
        }
    }
    let sides = if severity == Severity::Lint { 1..=2 } else { 2..=2 };
    let pair = PairPattern::of_words(others, sides).map_err(error)?;
    if reason.trim().is_empty() {
        return Err(error("a reason is missing: reason=\"...\"".to_owned()));
    }
    Ok(Suppression { line, severity, reason, expires, class: class_pattern, pair })
}

impl Suppression {
    /// Whether the suppression has expired.
    pub fn is_expired(&self, today: NaiveDate) -> bool {
        self.expires.is_some_and(|last| today > last)
    }

    /// Whether the suppression accepts a mistake: all of its occurrences, in whatever streams and
    /// on whatever memory they are.
    pub(super) fn accepts(
        &self,
        group: &Group,
        kernels: &KernelNames<'_>,
        entities: &Entities,
    ) -> bool {
        self.severity == group.finding.severity
            && self.class.matches(group.finding.class.description())
            && self.pair.accepts(group, kernels, entities)
    }

    /// Whether the suppression accepts a lint. Only the call is named.
    pub(super) fn accepts_lint(&self, lint: &Lint, entities: &Entities) -> bool {
        self.severity == Severity::Lint
            && self.class.matches(lint.class.description())
            && self.pair.accepts_lint(lint, entities)
    }
}

#[cfg(test)]
mod tests {
    use super::Suppressions;

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (line, told) in [
            ("missing-wait: * & * reason=x", "expected race[CLASS]:"),
            ("race[no-such]: * & * reason=x", "no class"),
            ("race[*]: * reason=x", "two sides"),
            ("race[*]: * & * & * reason=x", "two sides"),
            ("race[*]: & * reason=x", "empty"),
            ("race[*]: * & reason=x", "empty"),
            ("race[*]: * & *", "reason"),
            ("race[*]: * & * reason=\" \"", "reason"),
            ("race[*]: * & * reason=x expires=soon", "date"),
            ("race[*]: kernels:a & * reason=x", "not understood"),
            ("race[*]: kernel: & * reason=x", "missing"),
            ("race[*]: \"kernel:a & * reason=x", "not closed"),
        ] {
            let error = Suppressions::parse(&format!("# first\n{line}\n")).expect_err(line);
            assert_eq!(error.line, 2, "{line}");
            assert!(error.message.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn comments_and_empty_lines_are_nothing() {
        let file = "# all of it\n\n   # indented\nrace[stale-*]: * & api:a* reason=\"x y\" # end\n";
        let file = Suppressions::parse(file).expect("a file");
        assert_eq!(file.entries.len(), 1);
        assert_eq!((file.entries[0].line, file.entries[0].reason.as_str()), (4, "x y"));
    }
}
