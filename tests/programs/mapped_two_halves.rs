//! Two mappings of one piece of physical memory, used in two streams.
//!
//! The hazard: addresses tell nothing about aliases, offsets in the physical memory do.
//!
//! racy: both use the first half: one WAW, certain. clean: each uses a half of its own.

use program_support::{Failure, Gpu, Physical, Stream, Variant, set_bytes};

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let memory = Physical::create()?;
    let half = memory.len / 2;
    let (here, there) = (memory.map()?, memory.map()?);
    set_bytes(here.all().part(0..half), 1, &first)?;
    let other = if variant.is_racy() { 0..half } else { half..memory.len };
    set_bytes(there.all().part(other), 2, &second)?;
    gpu.synchronize_current_context()?;
    here.unmap()?;
    there.unmap()?;
    memory.release()?;
    first.destroy()?;
    second.destroy()?;
    gpu.close()
}
