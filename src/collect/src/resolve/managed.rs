//! Managed memory: prefetches, discards, attachments.

use super::resolution::Resolution;
use streamsan_model::{Action, Attachment, Basis, ByteRange, Extent, Mode};

fn touch(l: &mut Resolution<'_>, range: ByteRange, mode: Mode) {
    if range.is_empty() {
        return;
    }
    match l.tables.memory.find(range.start).copied() {
        Some(block) => l.touch_from(&block, Extent::Range(range), mode, Basis::Exact),
        // Memory of the system's allocator can be managed too.
        None => {
            let allocation = l.pageable();
            l.touch(allocation, Extent::Range(range), mode, Basis::Exact);
        }
    }
}

/// The stream of a call that names it last.
fn stream(l: &mut Resolution<'_>) -> Option<streamsan_model::StreamId> {
    let index = l.call.api.signature().index_of("hStream")?;
    l.stream(l.call.arg(index))
}

/// `cuMemPrefetchAsync(address, bytes, ..., stream)`.
pub(super) fn prefetch(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(l)?;
    let range = ByteRange::with_len(l.call.arg(0), l.call.arg(1));
    touch(l, range, Mode::Prefetch);
    Some(Action::Prefetch { stream })
}

/// `(addresses, sizes, count, ..., stream)`.
fn batch(l: &mut Resolution<'_>, mode: Mode) -> Option<()> {
    let addresses = l.input_words(0, 2)?;
    let sizes = l.input_words(1, 2)?;
    for (start, len) in addresses.into_iter().zip(sizes) {
        touch(l, ByteRange::with_len(start, len), mode);
    }
    Some(())
}

/// `cuMemPrefetchBatchAsync`.
pub(super) fn prefetch_batch(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(l)?;
    batch(l, Mode::Prefetch)?;
    Some(Action::Prefetch { stream })
}

/// `cuMemDiscardBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`.
pub(super) fn discard_batch(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(l)?;
    batch(l, Mode::Discard)?;
    Some(Action::Discard { stream })
}

/// `CU_MEM_ATTACH_GLOBAL`, `CU_MEM_ATTACH_HOST`, `CU_MEM_ATTACH_SINGLE`.
const ATTACHMENTS: [(u64, Attachment); 3] =
    [(1, Attachment::Global), (2, Attachment::Host), (4, Attachment::Single)];

/// `cuStreamAttachMemAsync(stream, address, length, flags)`: of managed memory the whole
/// allocation.
pub(super) fn attach(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = l.stream(l.call.arg(0))?;
    if !l.call.succeeded() {
        return None;
    }
    let flags = l.call.arg(3);
    let attachment = ATTACHMENTS.iter().find(|(flag, _)| flags & flag != 0)?.1;
    let Some(block) = l.tables.memory.find(l.call.arg(1)) else {
        l.gaps.not_understood("cuStreamAttachMemAsync (memory of the system's allocator)");
        return None;
    };
    Some(Action::Attach { stream, allocation: block.id, attachment })
}
