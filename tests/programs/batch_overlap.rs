//! A batch of two copies into one buffer.
//!
//! The hazard: copies of one batch have no order among themselves.
//!
//! racy: their targets overlap: one WAW between parts of one call, certain. clean: they lie side by
//! side.

use program_support::{DeviceBuffer, Failure, Gpu, SourceAccess, Stream, Variant, copy_batch};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let (source, target) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let begin = if variant.is_racy() { LEN / 4 } else { LEN / 2 };
    let copies = [
        (target.part(0..LEN / 2), source.part(0..LEN / 2)),
        (target.part(begin..begin + LEN / 2), source.part(LEN / 2..LEN)),
    ];
    copy_batch(&copies, SourceAccess::Stream, &stream)?;
    stream.synchronize()?;
    stream.destroy()?;
    source.free()?;
    target.free()?;
    gpu.close()
}
