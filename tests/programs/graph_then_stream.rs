//! A captured graph writes a buffer; a copy in another stream reads it.
//!
//! The hazard: a graph launch is ordered with its own stream only, like any other operation.
//!
//! racy: one RAW, certain. clean: an event recorded behind the launch.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, PinnedBuffer, Stream, Variant, copy_to_host, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, copying) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let launched = Event::create()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    let result = PinnedBuffer::filled(LEN, 0)?;
    launching.begin_capture()?;
    set_bytes(buffer.all(), 3, &launching)?;
    let graph = launching.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    launched.record(&launching)?;
    if !variant.is_racy() {
        copying.wait(&launched)?;
    }
    copy_to_host(&result, 0, buffer.all(), &copying)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    launched.destroy()?;
    launching.destroy()?;
    copying.destroy()?;
    buffer.free()?;
    result.free()?;
    gpu.close()
}
