//! A result is downloaded into page-locked memory and read there by the next call.
//!
//! The hazard: the download is asynchronous, and a blocking copy waits for the default stream, not
//! for the non-blocking stream that still fills the buffer.
//!
//! racy: one RAW on the page-locked buffer, certain. clean: the host synchronises the stream.

use program_support::{
    DeviceBuffer, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_host,
    copy_to_host_blocking, pinned_to_device_blocking, set_bytes,
};

const LEN: usize = 8192;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let result = PinnedBuffer::filled(LEN, 0)?;
    let computed = DeviceBuffer::alloc(LEN)?;
    let archive = DeviceBuffer::alloc(LEN)?;

    set_bytes(computed.all(), 5, &stream)?;
    copy_to_host(&result, 0, computed.all(), &stream)?;
    if !variant.is_racy() {
        stream.synchronize()?;
    }
    pinned_to_device_blocking(archive.all(), &result)?;
    gpu.synchronize_current_context()?;

    check("byte downloaded", result.byte(LEN - 1).into(), 5)?;
    if !variant.is_racy() {
        check("byte archived", copy_to_host_blocking(archive.all())?[LEN - 1].into(), 5)?;
    }
    stream.destroy()?;
    computed.free()?;
    archive.free()?;
    result.free()?;
    gpu.close()
}
