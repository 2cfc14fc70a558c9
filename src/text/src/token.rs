//! Words of a line, each with its place.

use crate::SyntaxError;
use std::ops::Range;

/// A piece of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl<'a> Token<'a> {
    /// The whitespace-separated words of `self`.
    pub(crate) fn words(self) -> impl Iterator<Item = Token<'a>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = &self.text[at..];
            let start = at + rest.len() - rest.trim_start().len();
            let rest = &self.text[start..];
            let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
            at = start + len;
            (len > 0).then(|| self.slice(start..at))
        })
    }

    /// The bytes `range` of the token; the bounds lie between characters.
    pub(crate) fn slice(self, range: Range<usize>) -> Token<'a> {
        let column = self.column + self.text[..range.start].chars().count();
        Token { text: &self.text[range], column, ..self }
    }

    /// The parts before and behind the first `separator`.
    pub(crate) fn split_once(self, separator: char) -> Option<(Token<'a>, Token<'a>)> {
        let at = self.text.find(separator)?;
        let behind = at + separator.len_utf8();
        Some((self.slice(0..at), self.slice(behind..self.text.len())))
    }

    /// The part behind `prefix`.
    pub(crate) fn strip_prefix(self, prefix: &str) -> Option<Token<'a>> {
        self.text.starts_with(prefix).then(|| self.slice(prefix.len()..self.text.len()))
    }

    /// The part before `suffix`.
    pub(crate) fn strip_suffix(self, suffix: &str) -> Option<Token<'a>> {
        let len = self.text.strip_suffix(suffix)?.len();
        Some(self.slice(0..len))
    }

    /// The empty token behind this one.
    pub(crate) fn end(self) -> Token<'a> {
        self.slice(self.text.len()..self.text.len())
    }

    /// An error at this token.
    pub(crate) fn error(self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, column: self.column, message: message.into() }
    }

    /// An error that says what should stand here.
    pub(crate) fn expected(self, what: &str) -> SyntaxError {
        match self.text {
            "" => self.error(format!("expected {what}, found nothing")),
            text => self.error(format!("expected {what}, found `{}`", shorten(text))),
        }
    }

    /// A decimal number.
    pub(crate) fn number(self, what: &str) -> Result<u64, SyntaxError> {
        if self.text.is_empty() || !self.text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.expected(what));
        }
        self.text
            .parse()
            .map_err(|_| self.error(format!("`{}` does not fit in 64 bits", shorten(self.text))))
    }

    /// Checks that the token can name something.
    pub(crate) fn identifier(self, what: &str) -> Result<&'a str, SyntaxError> {
        if is_identifier(self.text) { Ok(self.text) } else { Err(self.expected(what)) }
    }
}

/// Whether `text` is a letter or `_` followed by letters, digits, `_`, `.` or `-`.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// `prefix` followed by a number without leading zeros: the number.
pub(crate) fn numbered(text: &str, prefix: char) -> Option<u32> {
    let digits = text.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Long words are cut in messages.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, numbered};

    #[test]
    fn columns_count_characters() {
        let line = Token { text: "  é copy\tdst:B", line: 1, column: 1 };
        let words: Vec<_> = line.words().map(|w| (w.text, w.column)).collect();
        assert_eq!(words, [("é", 3), ("copy", 5), ("dst:B", 10)]);
    }

    #[test]
    fn numbered_names_have_one_spelling() {
        assert_eq!(numbered("s12", 's'), Some(12));
        assert_eq!(numbered("s012", 's'), None);
        assert_eq!(numbered("s+1", 's'), None);
        assert_eq!(numbered("s", 's'), None);
    }
}
