//! Stream-ordered memory is used by a second stream and freed by the first.
//!
//! The hazard: the free does not wait for the second stream, which may use the memory after its
//! life, and the pool may hand it to somebody else in between.
//!
//! racy: one UAF, the free against the memset, certain. clean: the owner waits before it frees.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (owner, user) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (allocated, used) = (Event::create()?, Event::create()?);

    let scratch = DeviceBuffer::alloc_async(LEN, &owner)?;
    allocated.record(&owner)?;
    user.wait(&allocated)?;
    set_bytes(scratch.all(), 1, &user)?;
    used.record(&user)?;

    if !variant.is_racy() {
        owner.wait(&used)?;
    }
    scratch.free_async(&owner)?;
    // The user first: a synchronised owner lets the pool give the memory back to the system.
    user.synchronize()?;
    owner.synchronize()?;

    allocated.destroy()?;
    used.destroy()?;
    owner.destroy()?;
    user.destroy()?;
    gpu.close()
}
