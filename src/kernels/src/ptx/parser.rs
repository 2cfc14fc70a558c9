//! The token cursor that all parts of the parser share, and the way in.

use super::ast::Module;
use super::lexer::{self, Token, TokenKind};

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
pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> TokenKind<'a> {
        self.tokens[self.at].kind
    }

    pub(super) fn peek_at(&self, ahead: usize) -> TokenKind<'a> {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    pub(super) fn column(&self) -> u32 {
        self.tokens[self.at].column
    }

    pub(super) fn advance(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        if kind != TokenKind::End {
            self.at += 1;
        }
        kind
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T, PtxError> {
        let Token { line, column, .. } = self.tokens[self.at];
        Err(PtxError { line, column, message: message.into() })
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T, PtxError> {
        self.error(format!("expected {what}, found {}", self.peek().describe()))
    }

    pub(super) fn is(&self, symbol: u8) -> bool {
        self.peek() == TokenKind::Symbol(symbol)
    }

    pub(super) fn accept(&mut self, symbol: u8) -> bool {
        let found = self.is(symbol);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: u8) -> Result<(), PtxError> {
        if self.accept(symbol) {
            return Ok(());
        }
        self.expected(&format!("`{}`", char::from(symbol)))
    }

    pub(super) fn accept_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == TokenKind::Dot(word);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn name(&mut self, what: &str) -> Result<String, PtxError> {
        match self.peek() {
            TokenKind::Name(name) => {
                self.at += 1;
                Ok(name.to_owned())
            }
            _ => self.expected(what),
        }
    }

    /// Skips to the first token of a later line.
    pub(super) fn skip_line(&mut self, line: u32) {
        while self.line() == line && self.peek() != TokenKind::End {
            self.at += 1;
        }
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nested<T>(
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
