//! Memory of a pool is freed and allocated again while the former user is at work.
//!
//! The hazard: the former use and the free are not ordered, so the next owner may get the bytes early.
//!
//! racy: one UAF of the former use with the free, certain. clean: the free is behind the use.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (owner, user) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (allocated, used) = (Event::create()?, Event::create()?);
    let former = DeviceBuffer::alloc_async(LEN, &owner)?;
    allocated.record(&owner)?;
    user.wait(&allocated)?;
    set_bytes(former.all(), 1, &user)?;
    used.record(&user)?;
    if !variant.is_racy() {
        owner.wait(&used)?;
    }
    former.free_async(&owner)?;
    let next = DeviceBuffer::alloc_async(LEN, &owner)?;
    set_bytes(next.all(), 2, &owner)?;
    next.free_async(&owner)?;
    gpu.synchronize_current_context()?;
    owner.destroy()?;
    user.destroy()?;
    allocated.destroy()?;
    used.destroy()?;
    gpu.close()
}
