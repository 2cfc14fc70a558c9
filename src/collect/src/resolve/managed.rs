//! Managed memory: prefetches, discards, attachments.

use super::resolution::Resolution;
use streamsan_model::{Action, Attachment, Basis, ByteRange, Extent, Mode};

fn touch(resolution: &mut Resolution<'_>, range: ByteRange, mode: Mode) {
    if range.is_empty() {
        return;
    }
    match resolution.tables.memory.find(range.start).copied() {
        Some(block) => resolution.touch_from(&block, Extent::Range(range), mode, Basis::Exact),
        // Memory of the system's allocator can be managed too.
        None => {
            let allocation = resolution.pageable();
            resolution.touch(allocation, Extent::Range(range), mode, Basis::Exact);
        }
    }
}

/// The stream of a call that names it last.
fn stream(resolution: &mut Resolution<'_>) -> Option<streamsan_model::StreamId> {
    let index = resolution.call.api.signature().index_of("hStream")?;
    resolution.stream(resolution.call.arg(index))
}

/// `cuMemPrefetchAsync(address, bytes, ..., stream)`.
pub(super) fn prefetch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let range = ByteRange::with_len(resolution.call.arg(0), resolution.call.arg(1));
    touch(resolution, range, Mode::Prefetch);
    Some(Action::Prefetch { stream })
}

/// `(addresses, sizes, count, ..., stream)`.
fn batch(resolution: &mut Resolution<'_>, mode: Mode) -> Option<()> {
    let addresses = resolution.input_words(0, 2)?;
    let sizes = resolution.input_words(1, 2)?;
    for (start, len) in addresses.into_iter().zip(sizes) {
        touch(resolution, ByteRange::with_len(start, len), mode);
    }
    Some(())
}

/// `cuMemPrefetchBatchAsync`.
pub(super) fn prefetch_batch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    batch(resolution, Mode::Prefetch)?;
    Some(Action::Prefetch { stream })
}

/// `cuMemDiscardBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`.
pub(super) fn discard_batch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    batch(resolution, Mode::Discard)?;
    Some(Action::Discard { stream })
}

/// `CU_MEM_ATTACH_GLOBAL`, `CU_MEM_ATTACH_HOST`, `CU_MEM_ATTACH_SINGLE`.
const ATTACHMENTS: [(u64, Attachment); 3] =
    [(1, Attachment::Global), (2, Attachment::Host), (4, Attachment::Single)];

/// `cuStreamAttachMemAsync(stream, address, length, flags)`: of managed memory the whole
/// allocation.
pub(super) fn attach(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(0))?;
    if !resolution.call.succeeded() {
        return None;
    }
    let flags = resolution.call.arg(3);
    let attachment = ATTACHMENTS.iter().find(|(flag, _)| flags & flag != 0)?.1;
    let Some(block) = resolution.tables.memory.find(resolution.call.arg(1)) else {
        resolution.gaps.not_understood("cuStreamAttachMemAsync (memory of the system's allocator)");
        return None;
    };
    Some(Action::Attach { stream, allocation: block.id, attachment })
}
