//! Managed memory, prefetched in one stream and written in two.
//!
//! The hazard: a prefetch moves memory and orders nothing beyond its stream.
//!
//! racy: one WAW, certain. clean: an event between the writes.

use program_support::{
    Event, Failure, Gpu, Stream, Variant, alloc_managed, free_range, prefetch, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let memory = alloc_managed(LEN)?;
    prefetch(memory, &second)?;
    set_bytes(memory, 1, &first)?;
    written.record(&first)?;
    if !variant.is_racy() {
        second.wait(&written)?;
    }
    set_bytes(memory, 2, &second)?;
    gpu.synchronize_current_context()?;
    free_range(memory)?;
    first.destroy()?;
    second.destroy()?;
    written.destroy()?;
    gpu.close()
}
