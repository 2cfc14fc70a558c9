//! An event of one context, waited for in another one on the same device.
//!
//! The hazard: contexts share no order; events work across them.
//!
//! racy: no wait: one WAW, certain. clean: the second context's stream waits for the first one's event.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, SecondContext, Stream, Variant, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let first = Stream::non_blocking()?;
    let written = Event::create()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    let other = SecondContext::create(gpu)?;
    set_bytes(buffer.all(), 1, &first)?;
    written.record(&first)?;
    other.push()?;
    let second = Stream::non_blocking()?;
    if !variant.is_racy() {
        second.wait(&written)?;
    }
    set_bytes(buffer.all(), 2, &second)?;
    second.synchronize()?;
    second.destroy()?;
    SecondContext::pop()?;
    gpu.synchronize_current_context()?;
    other.destroy()?;
    first.destroy()?;
    written.destroy()?;
    buffer.free()?;
    gpu.close()
}
