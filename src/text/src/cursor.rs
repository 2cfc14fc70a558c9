//! The words of a call, taken one by one; options may stand anywhere among them.

use crate::SyntaxError;
use crate::token::Token;

/// The separator between the parts of a call with several parts.
pub(crate) const AND: &str = "&";

/// Words not yet taken.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    words: Vec<Token<'a>>,
    next: usize,
    end: Token<'a>,
}

impl<'a> Cursor<'a> {
    /// All words of a statement.
    pub(crate) fn new(statement: Token<'a>) -> Self {
        let words: Vec<_> = statement.words().collect();
        let end = words.last().map_or(statement, |word| word.end());
        Self { words, next: 0, end }
    }

    /// Takes the next word; `expected` names it in an error.
    pub(crate) fn next(&mut self, expected: &str) -> Result<Token<'a>, SyntaxError> {
        let word = self.take().ok_or_else(|| self.end.expected(expected))?;
        Ok(word)
    }

    /// The next word, if there is one.
    pub(crate) fn take(&mut self) -> Option<Token<'a>> {
        let word = self.words.get(self.next).copied()?;
        self.next += 1;
        Some(word)
    }

    /// The next word, left where it is.
    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.words.get(self.next).copied()
    }

    /// The place behind the last word.
    pub(crate) fn end(&self) -> Token<'a> {
        self.end
    }

    /// Removes the word `flag` from the words that are left, up to `&`; whether it was there.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let mut part = self.words[self.next..].iter().take_while(|word| word.text != AND);
        let found = part.position(|word| word.text == flag);
        if let Some(at) = found {
            self.words.remove(self.next + at);
        }
        found.is_some()
    }

    /// Removes the word `KEY=VALUE` from the words that are left and gives the value.
    pub(crate) fn option(&mut self, key: &str) -> Option<Token<'a>> {
        let value = |word: &Token<'a>| word.strip_prefix(key)?.strip_prefix("=");
        let at = self.words[self.next..].iter().position(|word| value(word).is_some())?;
        value(&self.words.remove(self.next + at))
    }

    /// Fails when a word is left.
    pub(crate) fn finish(&mut self) -> Result<(), SyntaxError> {
        match self.take() {
            None => Ok(()),
            Some(word) => Err(word.expected("the end of the line or a comment")),
        }
    }
}
