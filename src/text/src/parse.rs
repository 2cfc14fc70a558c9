//! Lines to items.

use crate::capture::divert;
use crate::cursor::Cursor;
use crate::expectation::parse_expectations;
use crate::scope::Scope;
use crate::token::{Token, numbered};
use crate::verb::{Call, Issue, call};
use crate::{Expectation, SyntaxError};
use std::collections::HashSet;
use streamsan_model::{Action, OpSeq, Operation, Status, TraceItem};

/// A text trace, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTrace {
    /// Entities and operations; the number of an operation is its line.
    pub items: Vec<TraceItem>,
    /// The expected findings, in the order of the text.
    pub expectations: Vec<Expectation>,
    strict_host_threads: bool,
}

impl TextTrace {
    /// Whether the trace says `option strict_host_threads`: it is to be analysed with a clock for
    /// each host thread.
    pub fn strict_host_threads(&self) -> bool {
        self.strict_host_threads
    }
}

/// Parses a text trace.
///
/// # Errors
///
/// A text that does not follow the grammar: the place and what was expected there.
pub fn parse(text: &str) -> Result<TextTrace, SyntaxError> {
    let mut scope = Scope::of(text);
    let mut strict_host_threads = false;
    let mut expectations = Vec::new();
    let mut operations = HashSet::new();
    for (index, text) in text.lines().enumerate() {
        let line = Token { text, line: index + 1, column: 1 };
        let (statement, comment) = match line.split_once('#') {
            Some((statement, comment)) => (statement, Some(comment)),
            None => (line, None),
        };
        let expected = comment.and_then(|comment| comment.strip_prefix("~"));
        if statement.words().next().is_some_and(|word| word.text == "option") {
            option(&scope, statement, &mut strict_host_threads)?;
        } else if parse_statement(&mut scope, statement)? {
            operations.insert(line.line as u64);
        }
        if let Some(expected) = expected
            && !operations.contains(&(line.line as u64))
        {
            return Err(expected.error(
                "an expectation stands on the line of the later operation, and this line holds no \
                 call",
            ));
        }
        if let Some(expected) = expected {
            let is_operation = |line| operations.contains(&line);
            let has_parts = scope.items.last().is_some_and(has_parts);
            parse_expectations(expected, has_parts, is_operation, &mut expectations)?;
        }
    }
    Ok(TextTrace { items: scope.items, expectations, strict_host_threads })
}

/// Whether an item is a call that does several things at once, without an order among them.
fn has_parts(item: &TraceItem) -> bool {
    let TraceItem::Operation(operation) = item else { return false };
    matches!(
        operation.action,
        Action::Batch(_) | Action::LaunchMultiDevice(_) | Action::CollectiveGroup(_)
    )
}

/// `option strict_host_threads`, which stands before everything else.
fn option(scope: &Scope, statement: Token<'_>, strict: &mut bool) -> Result<(), SyntaxError> {
    const FORM: &str = "`strict_host_threads`";
    let mut cursor = Cursor::new(statement);
    let word = cursor.next("`option`")?;
    if !scope.items.is_empty() {
        return Err(word.error("an option stands before the first call of the trace"));
    }
    let name = cursor.next(FORM)?;
    if name.text != "strict_host_threads" {
        return Err(name.expected(FORM));
    }
    *strict = true;
    cursor.finish()
}

/// The process and the thread that `P2:`, `T3:` or `P2T3:` mean.
fn issuer(name: Token<'_>) -> Option<(u32, u32)> {
    let (process, thread) = match name.text.strip_prefix('P') {
        None => (1, name.text),
        Some(rest) => {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (numbered(&name.text[..digits + 1], 'P')?, &rest[digits..])
        }
    };
    let thread = if thread.is_empty() { 1 } else { numbered(thread, 'T')? };
    (process > 0 && thread > 0).then_some((process, thread))
}

/// Parses what stands before the comment; whether it is a call.
fn parse_statement(scope: &mut Scope, statement: Token<'_>) -> Result<bool, SyntaxError> {
    let mut cursor = Cursor::new(statement);
    let Some(word) = cursor.peek() else { return Ok(false) };
    let (process, number) = match word.strip_suffix(":") {
        None => (1, 1),
        Some(name) => {
            cursor.next("a thread")?;
            issuer(name).ok_or_else(|| {
                name.expected("a host thread as `T2:`, a process as `P2:` or `P2T3:`, or a verb")
            })?
        }
    };
    scope.process = process;
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
    let stack = cursor.option("stack").map(|name| scope.named_stack(name)).transpose()?;
    scope.stack = stack;
    let mut issue = Issue { scope, cursor, verb, thread: number, status, api };
    let call = call(&mut issue)?;
    issue.cursor.finish()?;
    issue.verb = verb;
    let (thread, status) = (issue.thread, issue.status);
    let Some(call) = call else { return Ok(false) };
    let Call { api: usual, action, accesses } = divert(&mut issue, call)?;
    let api = match api {
        None => usual,
        Some(name) if name.text.is_empty() => return Err(name.expected("an entry point")),
        Some(name) => name.text.to_owned(),
    };
    let (process, thread) = (scope.current_process(), scope.thread(thread));
    let g = OpSeq(verb.line as u64);
    scope.items.push(TraceItem::Operation(Operation {
        g,
        exit: Some(g),
        process,
        thread,
        api: api.into(),
        time: None,
        status,
        action,
        accesses,
        stack,
    }));
    Ok(true)
}
