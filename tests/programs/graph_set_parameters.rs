//! The bytes of a memset node are set anew between two launches.
//!
//! The hazard: later launches touch the new bytes, whatever the graph was made of.
//!
//! racy: another stream clears the new buffer beside the second launch: one WAW, certain. clean: it
//! clears the old one.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let first_done = Event::create()?;
    let (old, new) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let graph = Graph::create()?;
    let node = graph.add_memset(&[], old.all(), 1)?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    first_done.record(&launching)?;
    other.wait(&first_done)?;
    executable.set_memset(node, new.all(), 1)?;
    executable.launch(&launching)?;
    let cleared = if variant.is_racy() { &new } else { &old };
    set_bytes(cleared.all(), 0, &other)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    first_done.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    old.free()?;
    new.free()?;
    gpu.close()
}
