//! Blocking copies and memsets go through the legacy default stream, the rest through two streams.
//!
//! The hazard: a blocking stream is ordered with the legacy stream by itself, a non-blocking one
//! is not, and a blocking copy from pageable memory may return before the device holds the data.
//!
//! racy: the second stream is non-blocking; one RAW (upload against its download) and one WAR (its
//! download against the memset), certain. clean: both streams are blocking; no event is needed.

use program_support::{
    DeviceBuffer, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_device_blocking,
    copy_to_host, set_bytes,
};

/// More than what the driver of today happens to finish within the call.
const LEN: usize = 128 << 10;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let legacy = Stream::legacy();
    let first = Stream::blocking()?;
    let second = if variant.is_racy() { Stream::non_blocking()? } else { Stream::blocking()? };
    let (one, two) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let (from_one, from_two) = (PinnedBuffer::filled(LEN, 0)?, PinnedBuffer::filled(LEN, 0)?);

    copy_to_device_blocking(one.all(), &[1; LEN])?;
    copy_to_device_blocking(two.all(), &[2; LEN])?;
    copy_to_host(&from_one, 0, one.all(), &first)?;
    copy_to_host(&from_two, 0, two.all(), &second)?;
    set_bytes(one.all(), 0, &legacy)?;
    set_bytes(two.all(), 0, &legacy)?;
    gpu.synchronize_current_context()?;

    check("byte through the blocking stream", from_one.byte(LEN - 1).into(), 1)?;
    if !variant.is_racy() {
        check("byte through the second stream", from_two.byte(LEN - 1).into(), 2)?;
    }
    first.destroy()?;
    second.destroy()?;
    for device in [one, two] {
        device.free()?;
    }
    for pinned in [from_one, from_two] {
        pinned.free()?;
    }
    gpu.close()
}
