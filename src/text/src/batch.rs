//! Verbs of calls with several parts: batched copies, decompression, launches on several devices.

use crate::SyntaxError;
use crate::api::{self, Shape};
use crate::cursor::AND;
use crate::memory;
use crate::operand;
use crate::token::Token;
use crate::verb::{self, Call, Issue};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Basis, Batch, BatchEntry, Copy, MemberLaunch, Mode, MultiDeviceLaunch,
    SourceOrder, StreamId,
};

/// `batch S dst:X src:Y [order=..] ...`, `decompress S dst:X src:Y ...`.
pub(crate) fn batch(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let decompress = issue.verb.text == "decompress";
    let stream = issue.next_stream()?;
    let (mut entries, mut accesses, mut shape) = (Vec::new(), Vec::new(), Shape::Linear);
    while entries.is_empty() || issue.cursor.peek().is_some() {
        let (copy, pair) = entry(issue, stream, decompress)?;
        for access in &pair {
            shape = shape.max(Shape::of(&access.extent));
        }
        // Two accesses fit.
        entries.push(BatchEntry { copy, accesses: pair.len() as u32 });
        accesses.extend(pair);
    }
    let api = match (decompress, shape) {
        (true, _) => api::DECOMPRESS,
        (false, Shape::Linear) => "cuMemcpyBatchAsync",
        (false, _) => "cuMemcpy3DBatchAsync",
    };
    let action = Action::Batch(Arc::new(Batch { stream, entries }));
    Ok(Call { api: api.to_owned(), action, accesses })
}

fn entry(
    issue: &mut Issue<'_, '_>,
    stream: StreamId,
    decompress: bool,
) -> Result<(Copy, [Access; 2]), SyntaxError> {
    let (destination, source) = memory::operands(issue)?;
    let (to, from) = match decompress {
        // A compressed range has another size.
        true => {
            let to = operand::region(issue.scope, destination)?;
            (to, operand::region(issue.scope, source)?)
        }
        false => memory::linear(issue, destination, source)?,
    };
    let order: Option<Token<'_>> = issue.cursor.peek().and_then(|word| word.strip_prefix("order="));
    let order = match order {
        Some(value) if !decompress => {
            issue.cursor.take();
            memory::source_order(value)?
        }
        _ => SourceOrder::default(),
    };
    let read = from.access(Mode::Read, Basis::Exact);
    let Some((read, write)) = read.zip(to.access(Mode::Write, Basis::Exact)) else {
        return Err(destination.error("a copy of no bytes does nothing; leave it out"));
    };
    if (read.allocation, read.extent) == (write.allocation, write.extent) {
        return Err(destination.error("source and destination are the same bytes"));
    }
    let copy = Copy {
        stream,
        synchronous: false,
        source: from.kind,
        destination: to.kind,
        peer: None,
        bytes: to.bytes(),
        source_order: order,
        sync_memops: false,
    };
    Ok((copy, [read, write]))
}

/// `launch_multi [no_pre] [no_post] S1 NAME ACCESS... & S2 NAME ACCESS...`
pub(crate) fn launch_multi(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let waits_before = !issue.cursor.flag("no_pre");
    let holds_back_after = !issue.cursor.flag("no_post");
    let (mut launches, mut accesses): (Vec<MemberLaunch>, _) = (Vec::new(), Vec::new());
    loop {
        let token = issue.cursor.next("a stream")?;
        let stream = issue.stream(token)?;
        if launches.iter().any(|other| other.stream == stream) {
            return Err(token.error("each kernel of such a launch has a stream of its own"));
        }
        let name = verb::kernel_name(issue)?;
        let kernel = issue.scope.kernel(name.text);
        let own = issue.accesses()?;
        // As many words fit on a line.
        launches.push(MemberLaunch { stream, kernel, accesses: own.len() as u32 });
        accesses.extend(own);
        match issue.cursor.take() {
            None => break,
            Some(word) if word.text == AND => {}
            Some(word) => return Err(word.expected("an access or `&`")),
        }
    }
    let launch = MultiDeviceLaunch { waits_before, holds_back_after, launches };
    let action = Action::LaunchMultiDevice(Arc::new(launch));
    Ok(Call { api: "cuLaunchCooperativeKernelMultiDevice".to_owned(), action, accesses })
}
