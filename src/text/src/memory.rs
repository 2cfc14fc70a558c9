//! Verbs that allocate, free, move and fill memory.

use crate::SyntaxError;
use crate::api::{self, Shape};
use crate::operand::{self, Box3, Region};
use crate::scope::{MAX_SIZE, Origin};
use crate::token::Token;
use crate::verb::{Call, Issue};
use streamsan_model::{
    Access, Action, AllocationId, Backing, Basis, ContextId, Copy, Extent, MemoryKind, Mode,
    SourceOrder, StreamId,
};

/// `alloc`, `alloc_managed`, `alloc_pinned`, `alloc_async`, `register`, `pageable`, `global`,
/// `array`, `map`.
pub(crate) fn allocate(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    issue.must_succeed()?;
    let kind = match issue.verb.text {
        "alloc" => MemoryKind::Device,
        "alloc_managed" => MemoryKind::Managed,
        "alloc_pinned" => MemoryKind::Pinned,
        "alloc_async" => MemoryKind::StreamOrdered,
        "register" => MemoryKind::Registered,
        "pageable" => MemoryKind::Pageable,
        "array" => MemoryKind::Array,
        "map" => MemoryKind::Mapped,
        _ => MemoryKind::Global,
    };
    let (name, size) = name_and_size(issue)?;
    let backing = backing(issue)?;
    if kind == MemoryKind::Mapped && backing.is_none() {
        return Err(issue.cursor.end().expected("the physical memory as `phys=M`"));
    }
    // No call makes pageable memory or module globals.
    let declared = matches!(kind, MemoryKind::Pageable | MemoryKind::Global);
    let existing = issue.existing() || declared;
    let context = issue.context_option()?;
    let place = issue.cursor.option("at").map(|token| place(issue, token, size)).transpose()?;
    let stream = match kind {
        MemoryKind::StreamOrdered if !existing || issue.cursor.peek().is_some() => {
            Some(issue.next_stream()?)
        }
        _ => None,
    };
    // A capturing stream's allocations are made by the launches of its graph.
    let captured = stream.is_some_and(|stream| issue.scope.captures.is_capturing(stream));
    let kind = if captured { MemoryKind::GraphOrdered } else { kind };
    // Memory made in a stream belongs to the stream's context.
    let inferred = stream.and_then(|stream| issue.scope.stream_context(stream));
    let usual = match (existing, captured) {
        (true, _) => "",
        (false, true) => api::allocate(MemoryKind::StreamOrdered),
        (false, false) => api::allocate(kind),
    };
    let api = issue.api.map_or(usual, |token| token.text);
    let origin = Origin { kind, context: context.or(inferred), api, backing };
    let allocation = issue.scope.declare_buffer(name, size, origin, place)?;
    if existing {
        return Ok(None);
    }
    Ok(Some(Call {
        api: usual.to_owned(),
        action: Action::Allocate { allocation, stream },
        accesses: whole_access(issue, allocation, Mode::Allocate),
    }))
}

/// `X N`
fn name_and_size<'a>(issue: &mut Issue<'_, 'a>) -> Result<(Token<'a>, u64), SyntaxError> {
    let name = issue.cursor.next("a name for the buffer")?;
    let size_word = issue.cursor.next("the size in bytes")?;
    Ok((name, size(size_word)?))
}

fn size(token: Token<'_>) -> Result<u64, SyntaxError> {
    let size = token.number("the size in bytes")?;
    if size == 0 || size > MAX_SIZE {
        return Err(token.error(format!("expected a size from 1 to {MAX_SIZE} bytes")));
    }
    Ok(size)
}

/// `X N`: the memory of a graph's allocation node. With `existing` it is that of another such node:
/// a graph and its clones allocate the same. With `at=Y` it lies where memory lay that a node frees.
pub(crate) fn declare_in_graph(issue: &mut Issue<'_, '_>) -> Result<AllocationId, SyntaxError> {
    let (name, size) = name_and_size(issue)?;
    if issue.existing() {
        let buffer = issue.scope.buffer(name)?;
        let is_such = buffer.kind == MemoryKind::GraphOrdered && buffer.range.len() == size;
        return match is_such {
            true => Ok(buffer.id),
            false => Err(name.expected("the memory of another allocation node of this size")),
        };
    }
    let context = issue.context_option()?;
    let place = issue.cursor.option("at").map(|token| place(issue, token, size)).transpose()?;
    let kind = MemoryKind::GraphOrdered;
    let api = issue.api.map_or("cuGraphAddMemAllocNode", |token| token.text);
    issue.scope.declare_buffer(name, size, Origin { kind, context, api, backing: None }, place)
}

/// `phys=M [offset=K]`
fn backing(issue: &mut Issue<'_, '_>) -> Result<Option<Backing>, SyntaxError> {
    let memory = issue.cursor.option("phys");
    let memory = memory.map(|token| issue.scope.physical(token)).transpose()?;
    let offset = match issue.cursor.option("offset") {
        None => 0,
        Some(value) if memory.is_none() => {
            return Err(value.error("an offset is one in physical memory; write `phys=M` too"));
        }
        // Far from where the end of memory could not be counted.
        Some(value) => match value.number("an offset in bytes")? {
            offset if offset <= MAX_SIZE => offset,
            _ => return Err(value.error(format!("expected an offset up to {MAX_SIZE} bytes"))),
        },
    };
    Ok(memory.map(|memory| Backing { memory, offset }))
}

/// `import X P1/A`: memory of another process under a name of this one. `import X N`: memory of a
/// process outside of the run.
pub(crate) fn import(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    issue.must_succeed()?;
    let name = issue.cursor.next("a name for the buffer")?;
    let source = issue.cursor.next("the buffer of another process")?;
    let (size, backing) = if source.text.starts_with(|c: char| c.is_ascii_digit()) {
        let size = size(source)?;
        (size, backing(issue)?)
    } else {
        let source = issue.scope.buffer(source)?;
        (source.range.len(), source.backing)
    };
    let context = issue.context_option()?;
    let existing = issue.existing();
    let usual = if existing { "" } else { api::allocate(MemoryKind::Imported) };
    let api = issue.api.map_or(usual, |token| token.text);
    let place = issue.cursor.option("at").map(|token| place(issue, token, size)).transpose()?;
    let origin = Origin { kind: MemoryKind::Imported, context, api, backing };
    let allocation = issue.scope.declare_buffer(name, size, origin, place)?;
    if existing {
        return Ok(None);
    }
    Ok(Some(Call {
        api: usual.to_owned(),
        action: Action::Allocate { allocation, stream: None },
        accesses: whole_access(issue, allocation, Mode::Allocate),
    }))
}

/// `region R a..b of X`: a part of device memory that an allocator of the program hands out.
pub(crate) fn register_region(issue: &mut Issue<'_, '_>) -> Result<Option<Call>, SyntaxError> {
    const OF: &str = "`of` and the buffer that the region is a part of";
    issue.must_succeed()?;
    let name = issue.cursor.next("a name for the region")?;
    let bytes = issue.cursor.next("its bytes as a..b")?;
    let (start, end) = operand::dotted(bytes)?;
    let of = issue.cursor.next(OF)?;
    if of.text != "of" {
        return Err(of.expected(OF));
    }
    let pool = issue.cursor.next(OF)?;
    let buffer = issue.scope.buffer(pool)?.clone();
    if !buffer.kind.holds_regions() {
        return Err(pool.error(format!(
            "`{}` is {}, of which streamsan takes no regions",
            pool.text,
            buffer.kind.description()
        )));
    }
    if start >= end || end > buffer.range.len() {
        let len = buffer.range.len();
        return Err(bytes.error(format!("expected bytes a..b of the {len} of `{}`", pool.text)));
    }
    // Memory with regions has its physical memory from its declaration on.
    let Some(whole) = buffer.backing else {
        return Err(pool.expected("a buffer that is not freed"));
    };
    let backing = Some(Backing { offset: whole.offset + start, ..whole });
    let api = issue.api.map_or(api::allocate(MemoryKind::Region), |token| token.text);
    let origin = Origin { kind: MemoryKind::Region, context: buffer.context, api, backing };
    let place = Some(buffer.range.start + start);
    let allocation = issue.scope.declare_buffer(name, end - start, origin, place)?;
    Ok(Some(Call {
        api: api::allocate(MemoryKind::Region).to_owned(),
        action: Action::Allocate { allocation, stream: None },
        accesses: whole_access(issue, allocation, Mode::Allocate),
    }))
}

/// The address that `at=Y` or `at=Y[a..b]` means.
fn place(issue: &mut Issue<'_, '_>, token: Token<'_>, size: u64) -> Result<u64, SyntaxError> {
    let region = operand::region(issue.scope, token)?;
    if !issue.scope.is_freed(region.allocation) {
        return Err(token.error("the buffer at these addresses has not been freed before"));
    }
    match region.extent {
        Some(Extent::Range(range))
            if range.len() == size || (!region.explicit && size < range.len()) =>
        {
            Ok(range.start)
        }
        _ => Err(token.error(format!("expected {size} bytes, as many as the new buffer has"))),
    }
}

/// `free`, `free_pinned`, `free_async`, `unregister`, `free_array`, `unmap`, `close_import`,
/// `unregister_region`.
pub(crate) fn free(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let name = issue.cursor.next("a buffer")?;
    let buffer = issue.scope.buffer(name)?;
    let (allocation, kind) = (buffer.id, buffer.kind);
    let right = match kind {
        MemoryKind::Device
        | MemoryKind::StreamOrdered
        | MemoryKind::Managed
        | MemoryKind::GraphOrdered => "free",
        MemoryKind::Pinned => "free_pinned",
        MemoryKind::Registered => "unregister",
        MemoryKind::Array => "free_array",
        MemoryKind::Mapped => "unmap",
        MemoryKind::Imported => "close_import",
        MemoryKind::Region => "unregister_region",
        MemoryKind::Pageable | MemoryKind::Global => {
            return Err(name.error(format!(
                "`{}` is {}, which no driver call frees",
                name.text,
                kind.description()
            )));
        }
    };
    let in_stream = issue.verb.text == "free_async" && right == "free";
    if issue.verb.text != right && !in_stream {
        let (name_text, kind) = (name.text, kind.description());
        return Err(issue
            .verb
            .error(format!("`{name_text}` is {kind}; write `{right} {name_text}`")));
    }
    let stream = if in_stream { Some(issue.next_stream()?) } else { None };
    // A captured free ends nothing before the graph is launched.
    let captured = stream.is_some_and(|stream| issue.scope.captures.is_capturing(stream));
    if issue.status.is_success() {
        if captured {
            issue.scope.freed_by_node(allocation);
        } else {
            let line = issue.line();
            issue.scope.end_buffer(allocation, line);
        }
    }
    let mut accesses = whole_access(issue, allocation, Mode::Free);
    if kind == MemoryKind::Region {
        more_regions(issue, &mut accesses)?;
    }
    Ok(Call {
        api: if in_stream { "cuMemFreeAsync" } else { api::free(kind) }.to_owned(),
        action: Action::Free { allocation, stream },
        accesses,
    })
}

/// The words that are left as regions that end by the same call.
fn more_regions(issue: &mut Issue<'_, '_>, accesses: &mut Vec<Access>) -> Result<(), SyntaxError> {
    while let Some(name) = issue.cursor.take() {
        let buffer = issue.scope.buffer(name)?;
        let (id, kind) = (buffer.id, buffer.kind);
        if kind != MemoryKind::Region {
            return Err(name.error(format!("`{}` is {}", name.text, kind.description())));
        }
        if issue.status.is_success() {
            let line = issue.line();
            issue.scope.end_buffer(id, line);
        }
        accesses.extend(whole_access(issue, id, Mode::Free));
    }
    Ok(())
}

/// An access to all of a buffer.
pub(crate) fn whole_access(
    issue: &Issue<'_, '_>,
    allocation: AllocationId,
    mode: Mode,
) -> Vec<Access> {
    let range = issue.scope.entities.allocation(allocation).map(|a| a.range);
    range
        .map(|range| Access { allocation, extent: Extent::Range(range), mode, basis: Basis::Exact })
        .into_iter()
        .collect()
}

/// All copies.
pub(crate) fn copy(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let (stem, stream) = form(issue)?;
    copy_in(issue, stem, stream)
}

/// The verb without `_sync`, and the stream that the other forms have.
fn form<'a>(issue: &mut Issue<'_, 'a>) -> Result<(&'a str, Option<StreamId>), SyntaxError> {
    let verb = issue.verb.text;
    Ok(match verb.strip_suffix("_sync") {
        Some(stem) => (stem, None),
        None => (verb, Some(issue.next_stream()?)),
    })
}

/// The words of a copy behind its stream; without a stream it is a synchronous form.
pub(crate) fn copy_in(
    issue: &mut Issue<'_, '_>,
    stem: &str,
    stream: Option<StreamId>,
) -> Result<Call, SyntaxError> {
    let synchronous = stream.is_none();
    let (destination, source) = operands(issue)?;
    let (destination, source) = match stem {
        "copy2d" | "copy3d" => {
            let with_height = stem == "copy3d";
            let size = box_size(issue, with_height)?;
            let to = operand::pitched(issue.scope, destination, size, with_height)?;
            (to, operand::pitched(issue.scope, source, size, with_height)?)
        }
        _ => linear(issue, destination, source)?,
    };
    let order = match stem {
        "copy" if !synchronous => issue.cursor.option("order").map(source_order).transpose()?,
        _ => None,
    };
    let sync_memops = synchronous && issue.cursor.flag("sync_memops");
    let peer = match stem {
        "copy_peer" => Some(peer(issue, &source, &destination)?),
        _ => None,
    };
    let (stream, per_thread) = place_of(issue, stream, [&destination, &source])?;
    let accesses: Vec<_> =
        [source.access(Mode::Read, Basis::Exact), destination.access(Mode::Write, Basis::Exact)]
            .into_iter()
            .flatten()
            .collect();
    let [from, to] = accesses.as_slice() else {
        return Err(issue.verb.error("a copy of no bytes does nothing; leave the line out"));
    };
    if (from.allocation, from.extent) == (to.allocation, to.extent) {
        return Err(issue.verb.error("source and destination are the same bytes"));
    }
    let shape = match stem {
        "copy2d" => Shape::Rows,
        "copy3d" => Shape::Slices,
        _ => Shape::of(&from.extent).max(Shape::of(&to.extent)),
    };
    let api = match peer {
        Some(_) if synchronous => "cuMemcpyPeer".to_owned(),
        Some(_) => "cuMemcpyPeerAsync".to_owned(),
        None if order.is_some() => api::copy_with_attributes(shape).to_owned(),
        None => api::copy(shape, source.kind, destination.kind, synchronous, per_thread),
    };
    let action = Action::Copy(Copy {
        stream,
        synchronous,
        source: source.kind,
        destination: destination.kind,
        peer,
        bytes: source.bytes(),
        source_order: order.unwrap_or_default(),
        sync_memops,
    });
    Ok(Call { api, action, accesses })
}

/// The value of `order=`.
pub(crate) fn source_order(token: Token<'_>) -> Result<SourceOrder, SyntaxError> {
    match token.text {
        "stream" => Ok(SourceOrder::Stream),
        "call" => Ok(SourceOrder::DuringCall),
        "any" => Ok(SourceOrder::Any),
        _ => Err(token.expected("`stream`, `call` or `any`")),
    }
}

/// `dst:X src:Y`, in any order.
pub(crate) fn operands<'a>(
    issue: &mut Issue<'_, 'a>,
) -> Result<(Token<'a>, Token<'a>), SyntaxError> {
    let first = issue.cursor.next("`dst:` and a buffer")?;
    let (key, other) =
        if first.text.starts_with("src:") { ("src:", "dst:") } else { ("dst:", "src:") };
    let expected = |key: &str| format!("`{key}` and a buffer");
    let one = first.strip_prefix(key).ok_or_else(|| first.expected(&expected(key)))?;
    let second = issue.cursor.next(&expected(other))?;
    let two = second.strip_prefix(other).ok_or_else(|| second.expected(&expected(other)))?;
    Ok(if key == "dst:" { (one, two) } else { (two, one) })
}

/// Two operands of as many bytes each. One without bytes takes the number of the other.
pub(crate) fn linear(
    issue: &mut Issue<'_, '_>,
    destination: Token<'_>,
    source: Token<'_>,
) -> Result<(Region, Region), SyntaxError> {
    let mut to = operand::region(issue.scope, destination)?;
    let mut from = operand::region(issue.scope, source)?;
    match (to.explicit, from.explicit) {
        (true, false) => from = from.first_bytes(to.bytes()),
        (false, true) => to = to.first_bytes(from.bytes()),
        _ => {}
    }
    if to.bytes() != from.bytes() {
        return Err(source.error(format!(
            "the source has {} bytes and the destination {}; write the bytes that are copied, as \
             `{}[0..{}]`",
            from.bytes(),
            to.bytes(),
            source.text.split('[').next().unwrap_or_default(),
            from.bytes().min(to.bytes()),
        )));
    }
    Ok((to, from))
}

/// `W H` or `W H D`.
fn box_size(issue: &mut Issue<'_, '_>, with_slices: bool) -> Result<Box3, SyntaxError> {
    let mut number = |what: &str| issue.cursor.next(what)?.number(what);
    let width = number("the width in bytes")?;
    let rows = number("the number of rows")?;
    let slices = if with_slices { number("the number of slices")? } else { 1 };
    Ok(Box3 { width, rows, slices })
}

fn peer(
    issue: &Issue<'_, '_>,
    source: &Region,
    destination: &Region,
) -> Result<(ContextId, ContextId), SyntaxError> {
    source.context.zip(destination.context).ok_or_else(|| {
        issue.verb.error("a peer copy has contexts on both sides, and pageable memory has none")
    })
}

/// The stream of a copy or memset: the given one, or the default stream of the context of the
/// first operand that lies on a device.
fn place_of<const N: usize>(
    issue: &mut Issue<'_, '_>,
    stream: Option<StreamId>,
    operands: [&Region; N],
) -> Result<(StreamId, bool), SyntaxError> {
    match stream {
        Some(stream) => Ok((stream, false)),
        None => {
            let device = operands.into_iter().find(|region| !region.kind.is_host());
            issue.implied_stream(device.and_then(|region| region.context))
        }
    }
}

/// All memsets.
pub(crate) fn memset(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let (stem, stream) = form(issue)?;
    memset_in(issue, stem, stream)
}

/// The words of a memset behind its stream; without a stream it is a synchronous form.
pub(crate) fn memset_in(
    issue: &mut Issue<'_, '_>,
    stem: &str,
    stream: Option<StreamId>,
) -> Result<Call, SyntaxError> {
    let synchronous = stream.is_none();
    let operand = issue.cursor.next("a buffer")?;
    let region = if stem == "memset2d" {
        let size = box_size(issue, false)?;
        operand::pitched(issue.scope, operand, size, false)?
    } else {
        operand::region(issue.scope, operand)?
    };
    let (stream, per_thread) = place_of(issue, stream, [&region])?;
    let sync_memops = synchronous && issue.cursor.flag("sync_memops");
    let Some(access) = region.access(Mode::Write, Basis::Exact) else {
        return Err(operand.error("a memset of no bytes does nothing; leave the line out"));
    };
    let shape = match stem {
        "memset2d" => Shape::Rows,
        _ => Shape::of(&access.extent),
    };
    Ok(Call {
        api: api::memset(shape, synchronous, per_thread),
        action: Action::Memset { stream, synchronous, destination: region.kind, sync_memops },
        accesses: vec![access],
    })
}
