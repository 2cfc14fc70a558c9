//! Two contexts on one device, the primary one and a second one, each with its own default stream.
//! A page-locked buffer carries data from the one to the other.
//!
//! The hazard: handle 0 names another stream in each context, and `cuCtxSynchronize` waits for the
//! context that is current, which here is the wrong one.
//!
//! racy: one RAW on the page-locked buffer, certain. clean: an event crosses the contexts.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, PinnedBuffer, SecondContext, Stream, Variant, check,
    copy_to_device, copy_to_host, copy_to_host_blocking, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let second = SecondContext::create(gpu)?;
    let default = Stream::legacy();
    let carrier = PinnedBuffer::filled(LEN, 0)?;
    // Before any work: an allocation may synchronise the device, and would hide the race today.
    second.push()?;
    let target = DeviceBuffer::alloc(LEN)?;
    SecondContext::pop()?;

    // In the primary context: produce, and download into the carrier.
    let source = DeviceBuffer::alloc(LEN)?;
    let downloaded = Event::create()?;
    set_bytes(source.all(), 7, &default)?;
    copy_to_host(&carrier, 0, source.all(), &default)?;
    downloaded.record(&default)?;

    // In the second context: upload from the carrier. The handle is 0 again, the stream is not.
    second.push()?;
    if variant.is_racy() {
        gpu.synchronize_current_context()?;
    } else {
        default.wait(&downloaded)?;
    }
    copy_to_device(target.all(), &carrier, 0, &default)?;
    gpu.synchronize_current_context()?;
    let received = copy_to_host_blocking(target.all())?;
    target.free()?;
    SecondContext::pop()?;

    if !variant.is_racy() {
        check("byte carried across contexts", received[LEN - 1].into(), 7)?;
    }
    gpu.synchronize_current_context()?;
    downloaded.destroy()?;
    source.free()?;
    carrier.free()?;
    second.destroy()?;
    gpu.close()
}
