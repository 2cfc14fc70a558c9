//! The words of a line: separated by blanks, with quoted parts.

use super::GateError;

/// A word, and whether any of it was quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) quoted: bool,
}

/// Splits a line at blanks. Within double quotes blanks are kept, and `\` takes the next character
/// as it is. A `#` outside of quotes that begins a word ends the line.
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
                    Some('\\') => word.text.extend(characters.next()),
                    Some(c) => word.text.push(c),
                    None => return Err(GateError::new(number, "a quotation mark is not closed")),
                }
            }
        }
        words.push(word);
    }
}

/// A text as it must be written in a line: quoted where a bare word would be read otherwise.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty()
        && !text.starts_with('#')
        && text.chars().all(|c| !c.is_whitespace() && !matches!(c, '"' | '\\' | '&'));
    if is_plain {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::{quoted, words};

    #[test]
    fn quoted_texts_read_back() {
        for text in ["a", "", "a b", "#x", "f<int, 2>(char*)", "\\\"", "a & b", "x#y"] {
            let line = format!("  {} next # rest", quoted(text));
            let words = words(&line, 1).expect("a line");
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(texts, [text, "next"]);
        }
    }

    #[test]
    fn open_quotation_is_refused() {
        assert!(words("a \"b", 1).is_err());
    }
}
