//! Operands: buffers with their byte ranges, and accesses.

use crate::SyntaxError;
use crate::scope::Scope;
use crate::token::Token;
use streamsan_model::{
    Access, AllocationId, Basis, ByteRange, ContextId, Extent, MemoryKind, Mode, StridedPattern,
};

/// A buffer and bytes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) allocation: AllocationId,
    pub(crate) kind: MemoryKind,
    pub(crate) context: Option<ContextId>,
    /// The whole buffer.
    pub(crate) whole: ByteRange,
    /// `None` when no byte is meant.
    pub(crate) extent: Option<Extent>,
    /// Whether the bytes were written down.
    pub(crate) explicit: bool,
}

impl Region {
    /// Number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self.extent {
            None => 0,
            Some(Extent::Range(range)) => range.len(),
            // Runs do not overlap and lie inside the buffer, so the product fits.
            Some(Extent::Strided(p)) => p.width * p.rows * p.slices,
        }
    }

    /// The region cut to its first `len` bytes.
    pub(crate) fn first_bytes(self, len: u64) -> Self {
        let range = ByteRange::with_len(self.whole.start, len.min(self.whole.len()));
        Self { extent: Some(Extent::Range(range)), ..self }
    }

    /// An exact access to the region; `None` when no byte is meant.
    pub(crate) fn access(&self, mode: Mode, basis: Basis) -> Option<Access> {
        Some(Access { allocation: self.allocation, extent: self.extent?, mode, basis })
    }
}

/// Size of a pattern in bytes and rows, slices last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Box3 {
    pub(crate) width: u64,
    pub(crate) rows: u64,
    pub(crate) slices: u64,
}

/// `NAME`, `NAME[a..b]`, `NAME[a..b/pitch*rows]` or `NAME[a..b/pitch*rows/slice_pitch*slices]`.
pub(crate) fn region(scope: &mut Scope, token: Token<'_>) -> Result<Region, SyntaxError> {
    let Some((name, bytes)) = token.split_once('[') else {
        let mut region = whole(scope, token)?;
        region.extent = Some(Extent::Range(region.whole));
        return Ok(region);
    };
    let region = whole(scope, name)?;
    let inner = bytes.strip_suffix("]").ok_or_else(|| bytes.end().expected("`]`"))?;
    let mut parts = [None; 3];
    let mut rest = Some(inner);
    for part in &mut parts {
        let Some(text) = rest else { break };
        (*part, rest) = match text.split_once('/') {
            Some((one, more)) => (Some(one), Some(more)),
            None => (Some(text), None),
        };
    }
    if let Some(more) = rest {
        return Err(more.expected("`]`"));
    }
    let first = parts[0].unwrap_or(inner);
    let (start, end) = dotted(first)?;
    if end < start {
        return Err(first.error(format!("expected a..b with a not above b, found {start}..{end}")));
    }
    let (pitch, rows) = times(parts[1])?;
    let (slice_pitch, slices) = times(parts[2])?;
    let size = Box3 { width: end - start, rows, slices };
    let extent = pattern(first, &region, start, size, pitch, slice_pitch)?;
    Ok(Region { extent, explicit: true, ..region })
}

/// `NAME(offset,pitch)` or `NAME(offset,pitch,height)`: the box of `size` bytes and rows at
/// `offset`, `height` being the rows from one slice to the next.
pub(crate) fn pitched(
    scope: &mut Scope,
    token: Token<'_>,
    size: Box3,
    with_height: bool,
) -> Result<Region, SyntaxError> {
    let form = if with_height { "`(offset,pitch,height)`" } else { "`(offset,pitch)`" };
    let (name, inner) = token.split_once('(').ok_or_else(|| token.end().expected(form))?;
    let region = whole(scope, name)?;
    let inner = inner.strip_suffix(")").ok_or_else(|| inner.end().expected("`)`"))?;
    let (offset, rest) = inner.split_once(',').ok_or_else(|| inner.expected(form))?;
    let (pitch, height) = match (rest.split_once(','), with_height) {
        (Some((pitch, height)), true) => (pitch, Some(height)),
        (None, false) => (rest, None),
        _ => return Err(inner.expected(form)),
    };
    let start = offset.number("the offset in bytes")?;
    let pitch = pitch.number("the pitch in bytes")?;
    let slice_pitch = match height {
        None => 0,
        Some(height) => height
            .number("the height in rows")?
            .checked_mul(pitch)
            .ok_or_else(|| height.error("the slices do not fit in the buffer"))?,
    };
    let extent = pattern(inner, &region, start, size, pitch, slice_pitch)?;
    Ok(Region { extent, explicit: true, ..region })
}

/// `[~=!%]MODE:REGION`. `None` when no byte is touched.
pub(crate) fn access(scope: &mut Scope, token: Token<'_>) -> Result<Option<Access>, SyntaxError> {
    const FORM: &str = "an access such as `r:A`, `w:A[0..512]`, `rw:A`, `at:A`, `?:A` or `~w:A`";
    let (word, operand) = token.split_once(':').ok_or_else(|| token.expected(FORM))?;
    let (basis, word) = match word.text.as_bytes().first() {
        Some(b'~') => (Some(Basis::Anchored), word.slice(1..word.text.len())),
        Some(b'=') => (Some(Basis::Inferred), word.slice(1..word.text.len())),
        Some(b'!') => (Some(Basis::Exact), word.slice(1..word.text.len())),
        Some(b'%') => (Some(Basis::Measured), word.slice(1..word.text.len())),
        _ => (None, word),
    };
    let (mode, usual) = match word.text {
        "r" => (Mode::Read, Basis::Exact),
        "w" => (Mode::Write, Basis::Exact),
        "rw" => (Mode::ReadWrite, Basis::Exact),
        "at" => (Mode::Atomic, Basis::Exact),
        "sr" => (Mode::StrongRead, Basis::Exact),
        "sw" => (Mode::StrongWrite, Basis::Exact),
        "sat" => (Mode::StrongAtomic, Basis::Exact),
        "?" => (Mode::MayWrite, Basis::Assumed),
        "?r" => (Mode::Read, Basis::Assumed),
        "?w" => (Mode::Write, Basis::Assumed),
        "?rw" => (Mode::ReadWrite, Basis::Assumed),
        "?at" => (Mode::Atomic, Basis::Assumed),
        "?sr" => (Mode::StrongRead, Basis::Assumed),
        "?sw" => (Mode::StrongWrite, Basis::Assumed),
        "?sat" => (Mode::StrongAtomic, Basis::Assumed),
        _ => return Err(token.expected(FORM)),
    };
    Ok(region(scope, operand)?.access(mode, basis.unwrap_or(usual)))
}

fn whole(scope: &mut Scope, name: Token<'_>) -> Result<Region, SyntaxError> {
    let allocation = scope.buffer(name)?;
    Ok(Region {
        allocation: allocation.id,
        kind: allocation.kind,
        context: allocation.context,
        whole: allocation.range,
        extent: None,
        explicit: false,
    })
}

/// `a..b`
pub(crate) fn dotted(token: Token<'_>) -> Result<(u64, u64), SyntaxError> {
    const FORM: &str = "bytes as `a..b`";
    let at = token.text.find("..").ok_or_else(|| token.expected(FORM))?;
    let start = token.slice(0..at).number(FORM)?;
    let end = token.slice(at + 2..token.text.len()).number(FORM)?;
    Ok((start, end))
}

/// `pitch*count`; one of nothing when it is not there.
fn times(token: Option<Token<'_>>) -> Result<(u64, u64), SyntaxError> {
    const FORM: &str = "`pitch*rows`";
    let Some(token) = token else { return Ok((0, 1)) };
    let (pitch, count) = token.split_once('*').ok_or_else(|| token.expected(FORM))?;
    Ok((pitch.number(FORM)?, count.number(FORM)?))
}

/// Checks that a pattern is one and lies inside its buffer.
fn pattern(
    at: Token<'_>,
    region: &Region,
    start: u64,
    size: Box3,
    pitch: u64,
    slice_pitch: u64,
) -> Result<Option<Extent>, SyntaxError> {
    let Box3 { width, rows, slices } = size;
    if width == 0 || rows == 0 || slices == 0 {
        return Ok(None);
    }
    if rows > 1 && width > pitch {
        return Err(at.error(format!("rows of {width} bytes do not fit in a pitch of {pitch}")));
    }
    let slice = pitch.checked_mul(rows);
    if slices > 1 && slice.is_none_or(|bytes| bytes.max(width) > slice_pitch) {
        return Err(at.error(format!("slices of {rows} rows do not fit in {slice_pitch} bytes")));
    }
    let last = (slices - 1)
        .checked_mul(slice_pitch)
        .and_then(|bytes| bytes.checked_add((rows - 1).checked_mul(pitch)?))
        .and_then(|bytes| bytes.checked_add(start)?.checked_add(width));
    if last.is_none_or(|end| end > region.whole.len()) {
        return Err(at.error(format!(
            "these bytes end beyond the buffer, which has {} bytes",
            region.whole.len()
        )));
    }
    let start = region.whole.start + start;
    Ok(Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices }))
}
