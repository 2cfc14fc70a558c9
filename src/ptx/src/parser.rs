//! The token cursor that all parts of the parser share, and the way in.

use crate::ast::Module;
use crate::lexer::{self, Token, TokenKind};

/// Where and why a text is not PTX.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PtxError {
    /// Counted from 1.
    pub line: u32,
    /// In bytes, counted from 1.
    pub column: u32,
    pub message: String,
}

/// Parses a PTX module. The text may end with NUL bytes, as images in memory do.
///
/// # Errors
/// The first place where the text is not PTX. Nothing is said of what instructions mean: an
/// unknown opcode is no error here.
pub fn parse(text: &str) -> Result<Module, PtxError> {
    let tokens = lexer::tokens(text)?;
    Parser { tokens, at: 0, depth: 0 }.module()
}

/// Nesting of blocks, lists and parentheses beyond which a text is refused: the parser recurses.
const MAX_DEPTH: u32 = 64;

#[derive(Debug)]
pub(crate) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(crate) fn peek(&self) -> TokenKind<'a> {
        self.tokens[self.at].kind
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> TokenKind<'a> {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub(crate) fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    pub(crate) fn column(&self) -> u32 {
        self.tokens[self.at].column
    }

    pub(crate) fn advance(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        if kind != TokenKind::End {
            self.at += 1;
        }
        kind
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, PtxError> {
        let Token { line, column, .. } = self.tokens[self.at];
        Err(PtxError { line, column, message: message.into() })
    }

    pub(crate) fn expected<T>(&self, what: &str) -> Result<T, PtxError> {
        self.error(format!("expected {what}, found {}", self.peek().describe()))
    }

    pub(crate) fn is(&self, symbol: u8) -> bool {
        self.peek() == TokenKind::Symbol(symbol)
    }

    pub(crate) fn accept(&mut self, symbol: u8) -> bool {
        let found = self.is(symbol);
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, symbol: u8) -> Result<(), PtxError> {
        if self.accept(symbol) {
            return Ok(());
        }
        self.expected(&format!("`{}`", char::from(symbol)))
    }

    pub(crate) fn accept_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == TokenKind::Dot(word);
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn name(&mut self, what: &str) -> Result<String, PtxError> {
        match self.peek() {
            TokenKind::Name(name) => {
                self.at += 1;
                Ok(name.to_owned())
            }
            _ => self.expected(what),
        }
    }

    /// Skips to the first token of a later line.
    pub(crate) fn skip_line(&mut self, line: u32) {
        while self.line() == line && self.peek() != TokenKind::End {
            self.at += 1;
        }
    }

    /// Runs `inner` one level deeper.
    pub(crate) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, PtxError>,
    ) -> Result<T, PtxError> {
        if self.depth == MAX_DEPTH {
            return self.error("nested too deeply");
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}
