//! Stream-ordered memory is handed to a second stream.
//!
//! The hazard: the second stream writes to it without waiting for the allocation.
//!
//! racy: one UBA, memset against the allocation, certain. clean: the second stream waits first.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (owner, user) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (allocated, used) = (Event::create()?, Event::create()?);

    let scratch = DeviceBuffer::alloc_async(LEN, &owner)?;
    allocated.record(&owner)?;
    if !variant.is_racy() {
        user.wait(&allocated)?;
    }
    set_bytes(scratch.all(), 1, &user)?;
    used.record(&user)?;

    owner.wait(&used)?;
    scratch.free_async(&owner)?;
    gpu.synchronize_current_context()?;

    allocated.destroy()?;
    used.destroy()?;
    owner.destroy()?;
    user.destroy()?;
    gpu.close()
}
