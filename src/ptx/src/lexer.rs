//! Characters to tokens. Comments and preprocessor lines vanish here.

use crate::parser::PtxError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind<'a> {
    /// Identifier, `%` and `$` included.
    Name(&'a str),
    /// `.word`, without its dot; may hold `::`.
    Dot(&'a str),
    /// A number as written.
    Number(&'a str),
    /// The inside of a quoted string.
    String(&'a str),
    Symbol(u8),
    /// `<<`, `>>`, `==`, `!=`, `<=`, `>=`, `&&`, `||` of constant expressions.
    Double(&'a str),
    End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind<'a>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl TokenKind<'_> {
    pub(crate) fn describe(&self) -> String {
        match self {
            TokenKind::Name(text) | TokenKind::Number(text) | TokenKind::Double(text) => {
                format!("`{text}`")
            }
            TokenKind::Dot(text) => format!("`.{text}`"),
            TokenKind::String(_) => "a string".into(),
            TokenKind::Symbol(byte) => format!("`{}`", char::from(*byte)),
            TokenKind::End => "the end of the text".into(),
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    /// Offset of the first byte of the current line.
    line_start: usize,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// All tokens of `text`, the last being [`TokenKind::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, line_start: 0 };
    let mut out = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blank()?;
        let (line, column) = (lexer.line, lexer.column(lexer.at));
        let kind = lexer.next_kind()?;
        out.push(Token { kind, line, column });
        if kind == TokenKind::End {
            return Ok(out);
        }
    }
}

impl<'a> Lexer<'a> {
    fn column(&self, at: usize) -> u32 {
        u32::try_from(at - self.line_start).unwrap_or(u32::MAX - 1) + 1
    }

    fn error(&self, at: usize, message: impl Into<String>) -> PtxError {
        PtxError { line: self.line, column: self.column(at), message: message.into() }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn newline(&mut self) {
        self.line += 1;
        self.line_start = self.at;
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) -> Result<(), PtxError> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    self.newline();
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                // Images handed to the driver end with a NUL.
                0 if self.at < self.bytes.len() => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                b'#' if self.text[self.line_start..self.at].trim().is_empty() => self.skip_line(),
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), PtxError> {
        let unclosed = self.error(self.at, "this comment is never closed");
        self.at += 2;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(unclosed),
                Some(b'*') if self.peek(1) == b'/' => {
                    self.at += 2;
                    return Ok(());
                }
                Some(b'\n') => {
                    self.at += 1;
                    self.newline();
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn word(&mut self, start: usize) -> &'a str {
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn next_kind(&mut self) -> Result<TokenKind<'a>, PtxError> {
        let start = self.at;
        let Some(&byte) = self.bytes.get(start) else { return Ok(TokenKind::End) };
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => Ok(TokenKind::Name(self.word(start))),
            b'%' if is_word(self.peek(1)) => {
                self.at += 1;
                Ok(TokenKind::Name(self.word(start)))
            }
            b'0'..=b'9' => {
                self.number();
                Ok(TokenKind::Number(&self.text[start..self.at]))
            }
            b'.' if is_word(self.peek(1)) => {
                self.at += 1;
                loop {
                    self.word(start);
                    if self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
                        self.at += 2;
                    } else {
                        return Ok(TokenKind::Dot(&self.text[start + 1..self.at]));
                    }
                }
            }
            b'"' => self.string(),
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'@' | b'!' | b'|'
            | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'&' | b'^' | b'~' | b'?' => {
                let next = self.peek(1);
                let double = matches!(
                    (byte, next),
                    (b'<' | b'>' | b'=' | b'!', b'=')
                        | (b'<', b'<')
                        | (b'>', b'>')
                        | (b'&', b'&')
                        | (b'|', b'|')
                );
                self.at += if double { 2 } else { 1 };
                Ok(if double {
                    TokenKind::Double(&self.text[start..self.at])
                } else {
                    TokenKind::Symbol(byte)
                })
            }
            _ => {
                let found = self.text[start..].chars().next().unwrap_or('?');
                Err(self.error(start, format!("unexpected character {found:?}")))
            }
        }
    }

    /// Hex digits and exponents are told apart by the parser; this only finds the end.
    fn number(&mut self) {
        let start = self.at;
        self.word(start);
        let prefix = &self.bytes[start..self.at];
        let prefixed = prefix.len() > 1 && prefix[0] == b'0' && prefix[1].is_ascii_alphabetic();
        if prefixed {
            return;
        }
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.word(start);
        } else if self.peek(0) == b'.' && !is_word(self.peek(1)) {
            self.at += 1;
        }
        if matches!(self.bytes[self.at - 1], b'e' | b'E') && matches!(self.peek(0), b'+' | b'-') {
            self.at += 1;
            self.word(start);
        }
    }

    fn string(&mut self) -> Result<TokenKind<'a>, PtxError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                None | Some(b'\n') => return Err(self.error(start, "this string is never closed")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(TokenKind::String(&self.text[start + 1..self.at - 1]));
                }
                Some(b'\\') if self.at + 1 < self.bytes.len() && self.peek(1) != b'\n' => {
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
    }
}
