//! A memset without a stream, then work in a non-blocking stream.
//!
//! The hazard: `cuMemsetD8` goes through the legacy default stream, returns at once, and non-blocking
//! streams do not wait for it.
//!
//! racy: one WAW, certain. clean: a blocking stream, which does.

use program_support::{DeviceBuffer, Failure, Gpu, Stream, Variant, set_bytes, set_bytes_default};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = if variant.is_racy() { Stream::non_blocking()? } else { Stream::blocking()? };
    let buffer = DeviceBuffer::alloc(LEN)?;
    set_bytes_default(buffer.all(), 0)?;
    set_bytes(buffer.part(0..LEN / 2), 1, &stream)?;
    gpu.synchronize_current_context()?;
    stream.destroy()?;
    buffer.free()?;
    gpu.close()
}
