//! A blocking copy from ordinary memory, then work in a non-blocking stream.
//!
//! The hazard: `cuMemcpyHtoD` of pageable memory may return before its last bytes have reached the
//! device, and a non-blocking stream does not wait for the default stream. (With up to 64 KiB the
//! driver of today happens to be done: only latent.)
//!
//! racy: one RAW, certain. clean: the host waits for the default stream.

use program_support::{
    DeviceBuffer, Failure, Gpu, PinnedBuffer, Stream, Variant, copy_to_device_blocking,
    copy_to_host,
};

const LEN: usize = 1 << 20;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (stream, default) = (Stream::non_blocking()?, Stream::legacy());
    let buffer = DeviceBuffer::alloc(LEN)?;
    let result = PinnedBuffer::filled(LEN, 0)?;
    copy_to_device_blocking(buffer.all(), &vec![5; LEN])?;
    if !variant.is_racy() {
        default.synchronize()?;
    }
    copy_to_host(&result, 0, buffer.all(), &stream)?;
    gpu.synchronize_current_context()?;
    stream.destroy()?;
    buffer.free()?;
    result.free()?;
    gpu.close()
}
