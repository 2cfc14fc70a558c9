//! A batched copy from page-locked memory that the same stream has just filled.
//!
//! The hazard: a copy that may read its source during the call reads it before earlier work of its
//! stream has run.
//!
//! racy: source access during the call: one RAW in one stream, certain. clean: in stream order.

use program_support::{
    DeviceBuffer, Failure, Gpu, PinnedBuffer, SourceAccess, Stream, Variant, copy_batch_to_device,
    copy_to_host, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let (from, to) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let staging = PinnedBuffer::filled(LEN, 0)?;
    set_bytes(from.all(), 7, &stream)?;
    copy_to_host(&staging, 0, from.all(), &stream)?;
    let access = if variant.is_racy() { SourceAccess::DuringCall } else { SourceAccess::Stream };
    copy_batch_to_device(to.all(), &staging, access, &stream)?;
    stream.synchronize()?;
    stream.destroy()?;
    from.free()?;
    to.free()?;
    staging.free()?;
    gpu.close()
}
