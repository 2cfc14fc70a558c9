//! The findings that a text trace expects.

use crate::SyntaxError;
use crate::token::Token;
use std::fmt;
use std::str::FromStr;
use streamsan_model::{Confidence, ConflictKind, OpSeq, RaceClass, Severity};

/// One finding that must be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line it stands at: the later operation.
    pub line: OpSeq,
    /// Race, latent or lint.
    pub severity: Severity,
    /// The kind of conflict; `None` for lints.
    pub kind: Option<ConflictKind>,
    /// The earlier operation; for lints the other call in question, where it is checked.
    pub first: Option<OpSeq>,
    /// The class, where it is checked.
    pub class: Option<RaceClass>,
    /// The confidence, where it is checked.
    pub confidence: Option<Confidence>,
    /// The name of the buffer, where it is checked.
    pub buffer: Option<String>,
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.severity.description())?;
        if let (Some(kind), Some(first)) = (self.kind, self.first) {
            write!(f, " {} {first}", kind.description())?;
            if let Some(class) = self.class {
                write!(f, " class={}", class.description())?;
            }
        } else if let Some(class) = self.class {
            write!(f, " {}", class.description())?;
            if let Some(related) = self.first {
                write!(f, " {related}")?;
            }
        }
        if let Some(confidence) = self.confidence {
            write!(f, " confidence={}", confidence.description())?;
        }
        if let Some(buffer) = &self.buffer {
            write!(f, " in={buffer}")?;
        }
        Ok(())
    }
}

/// The expectations of one line; `text` is what stands behind `#~`.
///
/// `has_parts`: the call of the line does several things at once, which may conflict among
/// themselves. `is_operation` tells whether an earlier line holds a call.
pub(crate) fn parse_expectations(
    text: Token<'_>,
    has_parts: bool,
    is_operation: impl Fn(u64) -> bool,
    out: &mut Vec<Expectation>,
) -> Result<(), SyntaxError> {
    let mut rest = text.split_once('#').map_or(text, |(before, _comment)| before);
    loop {
        let (one, next) = match rest.split_once(';') {
            Some((one, next)) => (one, Some(next)),
            None => (rest, None),
        };
        out.push(parse_one(one, has_parts, &is_operation)?);
        match next {
            Some(next) => rest = next,
            None => return Ok(()),
        }
    }
}

fn parse_one(
    text: Token<'_>,
    has_parts: bool,
    is_operation: impl Fn(u64) -> bool,
) -> Result<Expectation, SyntaxError> {
    let mut words = text.words().peekable();
    let end = text.slice(text.text.trim_end().len()..text.text.len());
    let mut next = |expected: &str| words.next().ok_or_else(|| end.expected(expected));

    let severity_word = next("`race`, `latent` or `lint`")?;
    let severity: Severity = word(severity_word, "`race`, `latent` or `lint`")?;
    let mut expectation = Expectation {
        line: OpSeq(text.line as u64),
        severity,
        kind: None,
        first: None,
        class: None,
        confidence: None,
        buffer: None,
    };
    if severity == Severity::Lint {
        const CLASS: &str = "the class of the lint";
        expectation.class = Some(word(next(CLASS)?, CLASS)?);
        let is_line = |token: &Token<'_>| token.text.starts_with(|c: char| c.is_ascii_digit());
        if let Some(related) = words.next_if(is_line) {
            let number = related.number("the line of the other call")?;
            if number != text.line as u64 && !is_operation(number) {
                return Err(related.error(format!("line {number} holds no call before this one")));
            }
            expectation.first = Some(OpSeq(number));
        }
    } else {
        const KIND: &str = "RAW, WAR, WAW, UAF or UBA";
        expectation.kind = Some(word(next(KIND)?, KIND)?);
        let first = next("the line of the earlier operation")?;
        let number = first.number("the line of the earlier operation")?;
        let itself = has_parts && number == text.line as u64;
        if number >= text.line as u64 && !itself {
            return Err(first.error(format!(
                "expected the line of an earlier operation, and line {number} is not before line {}",
                text.line
            )));
        }
        if !is_operation(number) {
            return Err(first.error(format!("line {number} holds no call")));
        }
        expectation.first = Some(OpSeq(number));
    }
    for option in words {
        const OPTION: &str = "`class=`, `confidence=`, `in=` or `;`";
        match option.split_once('=') {
            Some((key, value)) if key.text == "class" && severity != Severity::Lint => {
                expectation.class = Some(word(value, "the id of a race class")?);
            }
            Some((key, value)) if key.text == "confidence" => {
                expectation.confidence = Some(word(value, "`certain`, `likely` or `possible`")?);
            }
            Some((key, value)) if key.text == "in" && !value.text.is_empty() => {
                expectation.buffer = Some(value.text.to_owned());
            }
            _ => return Err(option.expected(OPTION)),
        }
    }
    Ok(expectation)
}

fn word<T: FromStr>(token: Token<'_>, expected: &str) -> Result<T, SyntaxError> {
    token.text.parse().map_err(|_| token.expected(expected))
}
