//! The whole context waits for an event, before or after another stream is at work.
//!
//! The hazard: `cuCtxWaitEvent` holds back what is issued later, nothing that is issued already.
//!
//! racy: the other stream's write is issued before it: one WAW, certain. clean: after it.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    set_bytes(buffer.all(), 1, &first)?;
    written.record(&first)?;
    if variant.is_racy() {
        set_bytes(buffer.all(), 2, &second)?;
        gpu.wait_event(&written)?;
    } else {
        gpu.wait_event(&written)?;
        set_bytes(buffer.all(), 2, &second)?;
    }
    gpu.synchronize_current_context()?;
    first.destroy()?;
    second.destroy()?;
    written.destroy()?;
    buffer.free()?;
    gpu.close()
}
