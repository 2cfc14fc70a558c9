//! An event of the whole context, recorded before or after a write.
//!
//! The hazard: `cuCtxRecordEvent` captures the work of all streams so far and nothing later.
//!
//! racy: recorded too early: one WAW, certain. clean: recorded behind the write.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let everything = Event::create()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    if variant.is_racy() {
        gpu.record_event(&everything)?;
        set_bytes(buffer.all(), 1, &first)?;
    } else {
        set_bytes(buffer.all(), 1, &first)?;
        gpu.record_event(&everything)?;
    }
    second.wait(&everything)?;
    set_bytes(buffer.all(), 2, &second)?;
    gpu.synchronize_current_context()?;
    first.destroy()?;
    second.destroy()?;
    everything.destroy()?;
    buffer.free()?;
    gpu.close()
}
