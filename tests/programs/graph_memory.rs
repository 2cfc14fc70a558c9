//! A graph allocates memory that a stream goes on to use.
//!
//! The hazard: memory of an allocation node may be used behind the launch, by order of events or
//! streams.
//!
//! racy: another stream uses it at once: one UBA, certain. clean: it waits for an event recorded behind
//! the launch.

use program_support::{Event, Failure, Gpu, Graph, Stream, Variant, free_range_async, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (launched, used) = (Event::create()?, Event::create()?);
    let graph = Graph::create()?;
    let (_, memory) = graph.add_alloc(&[], LEN)?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    launched.record(&launching)?;
    if !variant.is_racy() {
        other.wait(&launched)?;
    }
    set_bytes(memory, 1, &other)?;
    used.record(&other)?;
    launching.wait(&used)?;
    free_range_async(memory, &launching)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    launched.destroy()?;
    used.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    gpu.close()
}
