//! Lines to items.

use crate::cursor::Cursor;
use crate::expectation::parse_expectations;
use crate::scope::{PROCESS, Scope};
use crate::token::{Token, numbered};
use crate::verb::{Call, Issue, call};
use crate::{Expectation, SyntaxError};
use std::collections::HashSet;
use streamsan_model::{OpSeq, Operation, Status, TraceItem};

/// A text trace, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTrace {
    /// Entities and operations; the number of an operation is its line.
    pub items: Vec<TraceItem>,
    /// What must be found, in the order of the text.
    pub expectations: Vec<Expectation>,
}

/// Parses a text trace.
///
/// # Errors
///
/// A text that does not follow the grammar: the place and what was expected there.
pub fn parse(text: &str) -> Result<TextTrace, SyntaxError> {
    let mut scope = Scope::default();
    let mut expectations = Vec::new();
    let mut operations = HashSet::new();
    for (index, text) in text.lines().enumerate() {
        let line = Token { text, line: index + 1, column: 1 };
        let (statement, comment) = match line.split_once('#') {
            Some((statement, comment)) => (statement, Some(comment)),
            None => (line, None),
        };
        let expected = comment.and_then(|comment| comment.strip_prefix("~"));
        if parse_statement(&mut scope, statement)? {
            operations.insert(line.line as u64);
        } else if let Some(expected) = expected {
            return Err(expected.error(
                "an expectation stands on the line of the later operation, and this line holds no \
                 call",
            ));
        }
        if let Some(expected) = expected {
            let is_operation = |line| operations.contains(&line);
            parse_expectations(expected, is_operation, &mut expectations)?;
        }
    }
    Ok(TextTrace { items: scope.items, expectations })
}

/// Parses what stands before the comment; whether it is a call.
fn parse_statement(scope: &mut Scope, statement: Token<'_>) -> Result<bool, SyntaxError> {
    let mut cursor = Cursor::new(statement);
    let Some(word) = cursor.peek() else { return Ok(false) };
    let number = match word.strip_suffix(":") {
        None => 1,
        Some(name) => {
            cursor.next("a thread")?;
            numbered(name.text, 'T')
                .filter(|&number| number > 0)
                .ok_or_else(|| name.expected("a host thread as `T2:`, or a verb"))?
        }
    };
    let verb = cursor.next("a verb")?;
    let api = cursor.option("api");
    let status = match cursor.option("status") {
        None => Status::SUCCESS,
        Some(value) => {
            const FORM: &str = "a driver result as a number, 0 for success";
            let number = i32::try_from(value.number(FORM)?);
            Status(number.map_err(|_| value.expected(FORM))?)
        }
    };
    let mut issue = Issue { scope, cursor, verb, thread: number, status, api };
    let call = call(&mut issue)?;
    issue.cursor.finish()?;
    let (thread, status) = (issue.thread, issue.status);
    let Some(Call { api: usual, action, accesses }) = call else { return Ok(false) };
    let api = match api {
        None => usual,
        Some(name) if name.text.is_empty() => return Err(name.expected("an entry point")),
        Some(name) => name.text.to_owned(),
    };
    let thread = scope.thread(thread);
    let g = OpSeq(verb.line as u64);
    scope.items.push(TraceItem::Operation(Operation {
        g,
        exit: Some(g),
        process: PROCESS,
        thread,
        api: api.into(),
        time: None,
        status,
        action,
        accesses,
    }));
    Ok(true)
}
