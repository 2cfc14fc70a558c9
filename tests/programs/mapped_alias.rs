//! One piece of physical memory at two addresses.
//!
//! The hazard: writes through one mapping conflict with writes through the other.
//!
//! racy: one WAW, certain. clean: an event between.

use program_support::{Event, Failure, Gpu, Physical, Stream, Variant, set_bytes};

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let memory = Physical::create()?;
    let (here, there) = (memory.map()?, memory.map()?);
    set_bytes(here.all().part(0..8192), 1, &first)?;
    written.record(&first)?;
    if !variant.is_racy() {
        second.wait(&written)?;
    }
    set_bytes(there.all().part(4096..12288), 2, &second)?;
    gpu.synchronize_current_context()?;
    here.unmap()?;
    there.unmap()?;
    memory.release()?;
    first.destroy()?;
    second.destroy()?;
    written.destroy()?;
    gpu.close()
}
