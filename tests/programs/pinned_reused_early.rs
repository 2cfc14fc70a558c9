//! One page-locked staging buffer serves an upload and then a download.
//!
//! The hazard: the upload is still reading the buffer when the download refills it.
//!
//! racy: one WAR on the page-locked buffer, certain. clean: the host waits for the upload first.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_device,
    copy_to_host, copy_to_host_blocking, set_bytes,
};

const LEN: usize = 8192;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (upload, download) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let uploaded = Event::create()?;
    let staging = PinnedBuffer::filled(LEN, 1)?;
    let next_input = DeviceBuffer::alloc(LEN)?;
    let last_output = DeviceBuffer::alloc(LEN)?;
    set_bytes(last_output.all(), 2, &download)?;

    copy_to_device(next_input.all(), &staging, 0, &upload)?;
    uploaded.record(&upload)?;
    if !variant.is_racy() {
        uploaded.synchronize()?;
    }
    copy_to_host(&staging, 0, last_output.all(), &download)?;
    gpu.synchronize_current_context()?;

    check("byte downloaded", staging.byte(LEN - 1).into(), 2)?;
    if !variant.is_racy() {
        check("byte uploaded", copy_to_host_blocking(next_input.all())?[LEN - 1].into(), 1)?;
    }
    uploaded.destroy()?;
    upload.destroy()?;
    download.destroy()?;
    next_input.free()?;
    last_output.free()?;
    staging.free()?;
    gpu.close()
}
