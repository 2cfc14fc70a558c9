//! An executable graph is updated with another graph between two launches.
//!
//! The hazard: later launches run the new graph.
//!
//! racy: another stream clears what the new graph writes beside its launch: one WAW, certain. clean: it
//! clears what the old one wrote.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let first_done = Event::create()?;
    let (old, new) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let (graph, newer) = (Graph::create()?, Graph::create()?);
    graph.add_memset(&[], old.all(), 1)?;
    newer.add_memset(&[], new.all(), 1)?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    first_done.record(&launching)?;
    other.wait(&first_done)?;
    executable.update(&newer)?;
    executable.launch(&launching)?;
    let cleared = if variant.is_racy() { &new } else { &old };
    set_bytes(cleared.all(), 0, &other)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    newer.destroy()?;
    first_done.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    old.free()?;
    new.free()?;
    gpu.close()
}
