//! A stream is destroyed while its work goes on; another stream uses the same memory.
//!
//! The hazard: destroying a stream waits for nothing.
//!
//! racy: one WAW, certain. clean: the host waits before it destroys the stream.

use program_support::{DeviceBuffer, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let first = Stream::non_blocking()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    set_bytes(buffer.all(), 1, &first)?;
    if !variant.is_racy() {
        first.synchronize()?;
    }
    first.destroy()?;
    let second = Stream::non_blocking()?;
    set_bytes(buffer.all(), 2, &second)?;
    gpu.synchronize_current_context()?;
    second.destroy()?;
    buffer.free()?;
    gpu.close()
}
