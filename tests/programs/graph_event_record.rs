//! A graph records an event between its two nodes; another stream waits for it.
//!
//! The hazard: an event record node captures what it depends on, not the whole graph.
//!
//! racy: the other stream clears what the second node writes: one WAW, certain. clean: it clears what
//! the first node writes.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let half_way = Event::create()?;
    let (first, second) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let graph = Graph::create()?;
    let write = graph.add_memset(&[], first.all(), 1)?;
    let record = graph.add_record(&[write], &half_way)?;
    graph.add_memset(&[record], second.all(), 2)?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    other.wait(&half_way)?;
    let cleared = if variant.is_racy() { &second } else { &first };
    set_bytes(cleared.all(), 0, &other)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    half_way.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    first.free()?;
    second.free()?;
    gpu.close()
}
