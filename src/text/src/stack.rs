//! Host stacks: `stack NAME FRAME...` declares one, `stack=NAME` behind a call says that the call
//! was made there.

use crate::SyntaxError;
use crate::scope::Scope;
use crate::token::Token;
use crate::verb::Issue;
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{Entity, Frame, FrameId, FramePlace, SourceFrame, Stack, StackId};

const FRAME: &str = "a frame: `py:FUNCTION@FILE:LINE`, `IMAGE+OFFSET` or \
                     `IMAGE+OFFSET:FUNCTION@FILE:LINE`";

/// Stacks by name, and the frames that they share.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    names: HashMap<String, StackId>,
    frames: HashMap<(FramePlace, Vec<SourceFrame>), FrameId>,
}

/// `stack NAME FRAME... [truncated]`, innermost frame first.
pub(crate) fn declare(issue: &mut Issue<'_, '_>) -> Result<(), SyntaxError> {
    let name = issue.cursor.next("a name for the stack")?;
    let key = name.identifier("a name for the stack")?;
    if issue.scope.stacks.names.contains_key(key) {
        return Err(name.error(format!("stack `{key}` is declared already")));
    }
    let truncated = issue.cursor.flag("truncated");
    let first = issue.cursor.next(FRAME)?;
    let mut frames = vec![frame(issue.scope, first)?];
    while let Some(token) = issue.cursor.take() {
        frames.push(frame(issue.scope, token)?);
    }
    let id = StackId(issue.scope.stacks.names.len() as u32);
    issue.scope.stacks.names.insert(key.to_owned(), id);
    issue.scope.declare(Entity::Stack(Arc::new(Stack { id, frames, truncated })));
    Ok(())
}

impl Scope {
    /// The stack of `stack=`.
    pub(crate) fn named_stack(&self, name: Token<'_>) -> Result<StackId, SyntaxError> {
        let known = self.stacks.names.get(name.identifier("a stack")?).copied();
        known.ok_or_else(|| {
            let name_of = name.text;
            name.error(format!(
                "stack `{name_of}` is not declared; write `stack {name_of} FRAME...` on a line \
                 before"
            ))
        })
    }
}

/// The frame that a word says, declared where it is new.
fn frame(scope: &mut Scope, token: Token<'_>) -> Result<FrameId, SyntaxError> {
    let (place, source) = match token.strip_prefix("py:") {
        Some(function) => (FramePlace::Python, vec![source(function, false)?]),
        None => native(token)?,
    };
    let count = scope.stacks.frames.len() as u32;
    let key = (place, source);
    if let Some(&id) = scope.stacks.frames.get(&key) {
        return Ok(id);
    }
    let id = FrameId(count);
    let (place, source) = key.clone();
    scope.stacks.frames.insert(key, id);
    scope.declare(Entity::Frame(Arc::new(Frame { id, place, source })));
    Ok(id)
}

/// `IMAGE+OFFSET`, and behind a colon functions, the inlined ones first, with `|` between them.
fn native(token: Token<'_>) -> Result<(FramePlace, Vec<SourceFrame>), SyntaxError> {
    let parts = token.text.match_indices('+').find_map(|(at, _)| {
        let rest = token.slice(at + 1..token.text.len());
        let (offset, functions) = match rest.split_once(':') {
            Some((offset, functions)) => (offset, Some(functions)),
            None => (rest, None),
        };
        let offset = offset.number(FRAME).ok()?;
        Some((token.slice(0..at), offset, functions))
    });
    let (image, offset, functions) = parts.ok_or_else(|| token.expected(FRAME))?;
    let place = FramePlace::Native { image: image.text.into(), build_id: None, offset };
    let mut sources = Vec::new();
    let mut rest = functions;
    while let Some(functions) = rest {
        let (function, outer) = match functions.split_once('|') {
            Some((function, outer)) => (function, Some(outer)),
            None => (functions, None),
        };
        sources.push(source(function, outer.is_some())?);
        rest = outer;
    }
    Ok((place, sources))
}

/// `FUNCTION@FILE:LINE`; the function, or all behind it, may be left out.
fn source(token: Token<'_>, inlined: bool) -> Result<SourceFrame, SyntaxError> {
    let (function, place) = match token.split_once('@') {
        Some((function, place)) => (function, Some(place)),
        None => (token, None),
    };
    let line = place.and_then(|place| {
        let (_, line) = place.text.rsplit_once(':')?;
        line.parse::<u32>().ok().filter(|&line| line > 0)
    });
    let file = place.map(|place| match line {
        Some(_) => place.text.rsplit_once(':').map_or(place.text, |(file, _)| file),
        None => place.text,
    });
    if function.text.is_empty() && file.is_none_or(str::is_empty) {
        return Err(token.expected(FRAME));
    }
    let named = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    Ok(SourceFrame { function: named(function.text), file: file.and_then(named), line, inlined })
}
