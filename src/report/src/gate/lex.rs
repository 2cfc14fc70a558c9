//! The words of a line: separated by blanks, with quoted parts.

use super::GateError;
use std::iter::Peekable;
use std::str::Chars;

/// A word, and whether any of it was quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) quoted: bool,
}

/// Splits a line at blanks. Within double quotes blanks are kept, `\n`, `\r` and `\t` are the
/// characters that they are elsewhere, `\u{1b}` is a character by its number, and `\` takes any other
/// character as it is. A `#` outside of quotes that begins a word ends the line.
pub(super) fn words(line: &str, number: usize) -> Result<Vec<Word>, GateError> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        if characters.peek().is_none_or(|&c| c == '#') {
            return Ok(words);
        }
        let mut word = Word { text: String::new(), quoted: false };
        while let Some(c) = characters.next_if(|c| !c.is_whitespace()) {
            if c != '"' {
                word.text.push(c);
                continue;
            }
            word.quoted = true;
            loop {
                match characters.next() {
                    Some('"') => break,
                    Some('\\') => word.text.extend(escaped(&mut characters)),
                    Some(c) => word.text.push(c),
                    None => return Err(GateError::new(number, "a quotation mark is not closed")),
                }
            }
        }
        words.push(word);
    }
}

/// The character that follows a backslash.
fn escaped(characters: &mut Peekable<Chars<'_>>) -> Option<char> {
    match characters.next()? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => Some(by_number(characters).unwrap_or('u')),
        other => Some(other),
    }
}

/// A character by its number in braces; nothing is taken where there is none.
fn by_number(characters: &mut Peekable<Chars<'_>>) -> Option<char> {
    let mut ahead = characters.clone();
    ahead.next_if_eq(&'{')?;
    let mut digits = String::new();
    loop {
        match ahead.next()? {
            '}' => break,
            digit => digits.push(digit),
        }
    }
    let found = char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?;
    *characters = ahead;
    Some(found)
}

/// A text as it must be written in a line: quoted where a bare word would be read otherwise.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty()
        && !text.starts_with('#')
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '&'));
    if is_plain {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", in_one_line(&escaped))
}

/// A text without anything that ends a line or moves a terminal's cursor.
pub(super) fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            // The separators of lines and paragraphs, beside the controls.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                line.extend(c.escape_unicode());
            }
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{quoted, words};
    use proptest::prelude::*;

    #[test]
    fn quoted_texts_read_back() {
        for text in ["a", "", "a b", "#x", "f<int, 2>(char*)", "\\\"", "a & b", "x#y"] {
            let line = format!("  {} next # rest", quoted(text));
            let words = words(&line, 1).expect("a line");
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(texts, [text, "next"]);
        }
    }

    proptest! {
        /// Whatever a program calls its things.
        #[test]
        fn any_text_reads_back_from_one_line(
            text in prop_oneof!["\\PC*", "[\n\r\t\"#&u{}1b\\\\ \u{0}-\u{1f}\u{85}\u{2028}]*"]
        ) {
            let line = format!("{} next", quoted(&text));
            prop_assert_eq!(line.lines().count(), 1);
            let words = words(&line, 1).expect("a line");
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(texts, [text.as_str(), "next"]);
        }
    }

    #[test]
    fn a_backslash_takes_what_is_no_escape_as_it_is() {
        let words = words(r#""\a\\\"\u{x}\u{110000}\u{" "\u{1b}\n""#, 1).expect("a line");
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["a\\\"u{x}u{110000}u{", "\u{1b}\n"]);
    }

    #[test]
    fn open_quotation_is_refused() {
        assert!(words("a \"b", 1).is_err());
    }
}
