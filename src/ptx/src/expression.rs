//! Literals and constant expressions (PTX ISA, section "Constants").

use crate::ast::Immediate;
use crate::lexer::TokenKind;
use crate::parser::{Parser, PtxError};

/// The value of a numeric literal as written, without a sign.
fn literal(text: &str) -> Option<Immediate> {
    let lower = text.to_ascii_lowercase();
    let digits = |radix: u32, digits: &str| {
        let digits = digits.strip_suffix('u').unwrap_or(digits);
        u64::from_str_radix(digits, radix).ok().map(|v| Immediate::Int(v as i64))
    };
    if let Some(hex) = lower.strip_prefix("0x") {
        return digits(16, hex);
    }
    if let Some(bits) = lower.strip_prefix("0f") {
        return (bits.len() == 8).then(|| u32::from_str_radix(bits, 16).ok())?.map(Immediate::F32);
    }
    if let Some(bits) = lower.strip_prefix("0d") {
        return (bits.len() == 16).then(|| u64::from_str_radix(bits, 16).ok())?.map(Immediate::F64);
    }
    if let Some(binary) = lower.strip_prefix("0b") {
        return digits(2, binary);
    }
    if lower.contains(['.', 'e']) {
        return lower.parse::<f64>().ok().map(|v| Immediate::F64(v.to_bits()));
    }
    if lower.len() > 1 && lower.starts_with('0') && lower != "0u" {
        return digits(8, &lower[1..]);
    }
    digits(10, &lower)
}

fn precedence(kind: TokenKind<'_>) -> Option<u8> {
    Some(match kind {
        TokenKind::Double("||") => 1,
        TokenKind::Double("&&") => 2,
        TokenKind::Symbol(b'|') => 3,
        TokenKind::Symbol(b'^') => 4,
        TokenKind::Symbol(b'&') => 5,
        TokenKind::Double("==" | "!=") => 6,
        TokenKind::Symbol(b'<' | b'>') | TokenKind::Double("<=" | ">=") => 7,
        TokenKind::Double("<<" | ">>") => 8,
        TokenKind::Symbol(b'+' | b'-') => 9,
        TokenKind::Symbol(b'*' | b'/' | b'%') => 10,
        _ => return None,
    })
}

fn integer(op: TokenKind<'_>, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        TokenKind::Double("||") => i64::from(a != 0 || b != 0),
        TokenKind::Double("&&") => i64::from(a != 0 && b != 0),
        TokenKind::Symbol(b'|') => a | b,
        TokenKind::Symbol(b'^') => a ^ b,
        TokenKind::Symbol(b'&') => a & b,
        TokenKind::Double("==") => i64::from(a == b),
        TokenKind::Double("!=") => i64::from(a != b),
        TokenKind::Symbol(b'<') => i64::from(a < b),
        TokenKind::Symbol(b'>') => i64::from(a > b),
        TokenKind::Double("<=") => i64::from(a <= b),
        TokenKind::Double(">=") => i64::from(a >= b),
        TokenKind::Double("<<") => a.wrapping_shl(b as u32),
        TokenKind::Double(">>") => a.wrapping_shr(b as u32),
        TokenKind::Symbol(b'+') => a.wrapping_add(b),
        TokenKind::Symbol(b'-') => a.wrapping_sub(b),
        TokenKind::Symbol(b'*') => a.wrapping_mul(b),
        TokenKind::Symbol(b'/') if b != 0 => a.wrapping_div(b),
        TokenKind::Symbol(b'%') if b != 0 => a.wrapping_rem(b),
        _ => return None,
    })
}

fn float(op: TokenKind<'_>, a: f64, b: f64) -> Option<Immediate> {
    Some(Immediate::F64(
        match op {
            TokenKind::Symbol(b'+') => a + b,
            TokenKind::Symbol(b'-') => a - b,
            TokenKind::Symbol(b'*') => a * b,
            TokenKind::Symbol(b'/') => a / b,
            _ => return None,
        }
        .to_bits(),
    ))
}

impl Parser<'_> {
    /// Whether a constant expression can start here.
    pub(crate) fn at_constant(&self) -> bool {
        matches!(self.peek(), TokenKind::Number(_) | TokenKind::Symbol(b'-' | b'+' | b'~' | b'('))
    }

    /// A constant expression, evaluated.
    pub(crate) fn constant(&mut self) -> Result<Immediate, PtxError> {
        self.binary(0)
    }

    /// A constant expression that must be an integer.
    pub(crate) fn constant_integer(&mut self) -> Result<i64, PtxError> {
        match self.constant()? {
            Immediate::Int(value) => Ok(value),
            _ => self.error("expected an integer before this"),
        }
    }

    /// A constant integer that must be in the range of a `u64` as written.
    pub(crate) fn unsigned(&mut self, what: &str) -> Result<u64, PtxError> {
        match self.peek() {
            TokenKind::Number(_) => Ok(self.constant_integer()? as u64),
            _ => self.expected(what),
        }
    }

    fn binary(&mut self, least: u8) -> Result<Immediate, PtxError> {
        let mut left = self.unary()?;
        while let Some(level) = precedence(self.peek()).filter(|&level| level > least) {
            let op = self.peek();
            self.advance();
            let right = self.nested(|p| p.binary(level))?;
            let value = match (left, right) {
                (Immediate::Int(a), Immediate::Int(b)) => integer(op, a, b).map(Immediate::Int),
                (Immediate::F64(a), Immediate::F64(b)) => {
                    float(op, f64::from_bits(a), f64::from_bits(b))
                }
                _ => None,
            };
            match value {
                Some(value) => left = value,
                None => return self.error("this constant expression has no value"),
            }
        }
        Ok(left)
    }

    /// A literal, a sign in front of one, or an expression in parentheses.
    pub(crate) fn unary(&mut self) -> Result<Immediate, PtxError> {
        match self.peek() {
            TokenKind::Number(text) => match literal(text) {
                Some(value) => {
                    self.advance();
                    Ok(value)
                }
                None => self.error(format!("`{text}` is not a number")),
            },
            TokenKind::Symbol(b'(') => {
                self.advance();
                // A cast such as `(.s64)` changes nothing: constants are 64-bit.
                if matches!(self.peek(), TokenKind::Dot("s64" | "u64")) {
                    self.advance();
                    self.expect(b')')?;
                    return self.nested(|p| p.unary());
                }
                let value = self.nested(|p| p.binary(0))?;
                self.expect(b')')?;
                Ok(value)
            }
            TokenKind::Symbol(sign @ (b'-' | b'+' | b'~' | b'!')) => {
                self.advance();
                Ok(match (sign, self.nested(|p| p.unary())?) {
                    (b'-', Immediate::Int(v)) => Immediate::Int(v.wrapping_neg()),
                    (b'-', Immediate::F64(v)) => Immediate::F64(v ^ (1 << 63)),
                    (b'-', Immediate::F32(v)) => Immediate::F32(v ^ (1 << 31)),
                    (b'~', Immediate::Int(v)) => Immediate::Int(!v),
                    (b'!', Immediate::Int(v)) => Immediate::Int(i64::from(v == 0)),
                    (b'+', value) => value,
                    _ => return self.error("this sign does not fit the number before"),
                })
            }
            _ => self.expected("a number"),
        }
    }
}
