//! Symbolic accesses as text, for tables and tests.
//!
//! Stage: the summary. Invariant: the text holds nothing that the summary does not; no-wrap
//! conditions are left out.

use std::fmt::Write as _;

use crate::access::domain::condition::{Condition, Relation};
use crate::access::domain::expression::{ExprId, Index, Operator, Symbol, SymbolId};
use crate::access::summary::result::{Base, KernelAccess, Length, SymbolicAccess, Touch};

const DIMENSIONS: [char; 3] = ['x', 'y', 'z'];

impl Touch {
    /// The word of tables.
    pub const fn description(self) -> &'static str {
        match self {
            Touch::Read => "read",
            Touch::Write => "write",
            Touch::Atomic => "atomic",
            Touch::Unknown => "unknown",
            Touch::StrongRead => "strong read",
            Touch::StrongWrite => "strong write",
            Touch::StrongAtomic => "strong atomic",
        }
    }
}

impl KernelAccess {
    /// The access in symbolic form: `read [param0 + 4*tid.x, 4 bytes) if n - tid.x - 1 >= 0`.
    pub fn describe(&self, access: &SymbolicAccess) -> String {
        let mut text = format!("{} ", access.touch.description());
        match (access.address, access.base) {
            (address, Base::GlobalPointer(at)) => {
                let beyond = address.map_or_else(|| "?".to_owned(), |at| self.expression(at));
                let _ = write!(text, "{} + {beyond}", self.global_pointer_word(at));
            }
            (Some(address), _) => text.push_str(&self.expression(address)),
            (None, Base::Pointer(at)) => {
                let _ = write!(text, "param[{}] + ?", self.pointers[at as usize].block_offset);
            }
            (None, Base::Global(at)) => {
                let _ = write!(text, "{} + ?", self.globals[at as usize].name);
            }
        }
        match access.length {
            Length::Bytes(bytes) => {
                let _ = write!(text, " ({bytes} bytes)");
            }
            Length::AtMost(bytes) => {
                let _ = write!(text, " (up to {bytes} bytes)");
            }
            Length::Expression(expression) => {
                let _ = write!(text, " ({} bytes)", self.expression(expression));
            }
            Length::Unknown => text.push_str(" (unknown length)"),
        }
        let mut conditions: Vec<String> =
            access.conditions.iter().map(|&c| self.condition(c)).collect();
        conditions.sort();
        conditions.dedup();
        for (at, condition) in conditions.iter().enumerate() {
            let _ = write!(text, "{}{condition}", if at == 0 { " if " } else { ", " });
        }
        if !access.exact && access.address.is_some() {
            text.push_str(", or fewer");
        }
        if self.waits {
            let _ = write!(text, ", {}", access.waited.description());
        }
        text
    }

    /// A pointer in a module global: `[lut + 8]`.
    fn global_pointer_word(&self, at: u32) -> String {
        let pointer = &self.global_pointers[at as usize];
        let name = &self.globals[pointer.global as usize].name;
        match pointer.offset {
            0 => format!("[{name}]"),
            offset => format!("[{name} + {offset}]"),
        }
    }

    fn condition(&self, condition: Condition) -> String {
        let relation = match condition.relation {
            Relation::AtLeast => ">=",
            Relation::Equal => "==",
            Relation::Differs => "!=",
        };
        format!("{} {relation} 0", self.expression(condition.expression))
    }

    fn expression(&self, id: ExprId) -> String {
        let mut text = String::new();
        for term in &self.expressions[id.0 as usize].terms {
            let symbols: Vec<String> = term.symbols.iter().map(|&s| self.symbol_text(s)).collect();
            let (sign, size) = match term.coefficient {
                value if value < 0 => ("-", value.unsigned_abs()),
                value => ("+", value.unsigned_abs()),
            };
            match (text.is_empty(), sign) {
                (true, "+") => {}
                (true, _) => text.push('-'),
                (false, _) => {
                    let _ = write!(text, " {sign} ");
                }
            }
            match (symbols.is_empty(), size) {
                (true, size) => {
                    let _ = write!(text, "{size}");
                }
                (false, 1) => text.push_str(&symbols.join("*")),
                (false, size) => {
                    let _ = write!(text, "{size}*{}", symbols.join("*"));
                }
            }
        }
        if text.is_empty() { "0".to_owned() } else { text }
    }

    fn symbol_text(&self, id: SymbolId) -> String {
        match self.symbols[id.0 as usize] {
            Symbol::Param { offset, .. } => format!("param[{offset}]"),
            Symbol::Index(index) => match index {
                Index::Thread(d) => format!("tid.{}", DIMENSIONS[usize::from(d)]),
                Index::Block(d) => format!("ctaid.{}", DIMENSIONS[usize::from(d)]),
                Index::BlockSize(d) => format!("ntid.{}", DIMENSIONS[usize::from(d)]),
                Index::GridSize(d) => format!("nctaid.{}", DIMENSIONS[usize::from(d)]),
                Index::Lane => "laneid".to_owned(),
            },
            Symbol::ExitValue(symbol) => format!("last({})", self.symbol_text(symbol)),
            Symbol::Induction(header) => {
                let at = self.loops.iter().position(|l| l.header == header).unwrap_or(0);
                format!("round{at}")
            }
            Symbol::Global(global) => {
                let name = self.global_names.get(global as usize);
                name.map_or_else(|| "?".to_owned(), Clone::clone)
            }
            Symbol::Window | Symbol::ParamBlock => "window".to_owned(),
            Symbol::Site(..) | Symbol::Phi(..) => "?".to_owned(),
            Symbol::Function(function, a, b) => {
                let name = match function {
                    Operator::Min => "min",
                    Operator::Max => "max",
                    Operator::Quotient => "div",
                    Operator::Remainder => "mod",
                    Operator::And => "and",
                    Operator::Upper => "upper",
                };
                format!("{name}({}, {})", self.expression(a), self.expression(b))
            }
        }
    }
}
