//! A device-to-device copy in one stream, memsets of its source and of its target in another.
//!
//! The hazard: both memsets may overtake the copy or be overtaken by it.
//!
//! racy: one WAR on the source and one WAW on the target, certain. clean: an event between.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, Stream, Variant, check, copy_on_device,
    copy_to_host_blocking, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (copying, clearing) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let copied = Event::create()?;
    let (source, target) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);

    set_bytes(source.all(), 8, &copying)?;
    copy_on_device(target.all(), source.all(), &copying)?;
    copied.record(&copying)?;
    if !variant.is_racy() {
        clearing.wait(&copied)?;
    }
    set_bytes(source.all(), 0, &clearing)?;
    set_bytes(target.part(0..LEN / 2), 0, &clearing)?;
    gpu.synchronize_current_context()?;

    let result = copy_to_host_blocking(target.all())?;
    if !variant.is_racy() {
        check("byte cleared after the copy", result[0].into(), 0)?;
        check("byte copied and left alone", result[LEN - 1].into(), 8)?;
    }
    copied.destroy()?;
    copying.destroy()?;
    clearing.destroy()?;
    source.free()?;
    target.free()?;
    gpu.close()
}
