//! Text traces: a CUDA program as one driver call a line, with the findings that the analysis
//! must report beside the lines. `docs/trace-text.md` is the reference of the grammar.
//!
//! [`parse()`] turns a text into trace items and expectations, [`write()`] goes the other way as far
//! as the grammar reaches, and [`compare()`] holds findings against expectations.
//!
//! Invariants:
//! - The number of a line is the [`streamsan_model::OpSeq`] of the call on it, at entry and exit.
//! - Ids are dense in order of first appearance, and addresses depend on nothing but the text, so
//!   equal texts give equal items.
//! - No input makes the parser panic: a mistake is a [`SyntaxError`] with line and column.
//!
//! Deliberately absent: file access, and every rule of CUDA's order.
#![forbid(unsafe_code)]

mod api;
mod batch;
mod capture;
mod compare;
mod cursor;
mod error;
mod expectation;
mod file;
mod graph;
mod managed;
mod memory;
mod node;
mod operand;
mod parse;
mod scope;
mod signal;
mod stack;
mod token;
mod verb;
mod write;

pub use compare::{Mismatch, compare, wrong_directory};
pub use error::SyntaxError;
pub use expectation::Expectation;
pub use parse::{TextTrace, parse};
pub use write::write;
