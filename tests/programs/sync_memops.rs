//! A synchronous copy inside device memory, relied on by the host.
//!
//! The hazard: `cuMemcpyDtoD` returns before the copy is done, unless the memory was told that
//! synchronous operations on it shall wait.
//!
//! racy: a non-blocking stream overwrites the source at once: one WAR, certain. clean: with
//! `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.

use program_support::{
    DeviceBuffer, Failure, Gpu, Stream, Variant, copy_on_device_default, set_bytes, set_sync_memops,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let (source, target) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    if !variant.is_racy() {
        set_sync_memops(source.all())?;
    }
    copy_on_device_default(target.all(), source.all())?;
    set_bytes(source.all(), 2, &stream)?;
    gpu.synchronize_current_context()?;
    stream.destroy()?;
    source.free()?;
    target.free()?;
    gpu.close()
}
