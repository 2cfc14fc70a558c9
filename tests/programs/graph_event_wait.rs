//! A graph waits for an event of another stream before its second node.
//!
//! The hazard: only what lies behind an event wait node is ordered by it.
//!
//! racy: the node beside it writes what the other stream writes: one WAW, certain. clean: the node
//! behind it does.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let (shared, own) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let graph = Graph::create()?;
    let wait = graph.add_wait(&[], &written)?;
    let (beside, behind) = if variant.is_racy() { (&shared, &own) } else { (&own, &shared) };
    graph.add_memset(&[], beside.all(), 1)?;
    graph.add_memset(&[wait], behind.all(), 2)?;
    let executable = graph.instantiate()?;
    set_bytes(shared.all(), 9, &other)?;
    written.record(&other)?;
    executable.launch(&launching)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    written.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    shared.free()?;
    own.free()?;
    gpu.close()
}
