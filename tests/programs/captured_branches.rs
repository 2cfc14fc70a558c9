//! A captured fork whose branches write one buffer.
//!
//! The hazard: branches of a capture are ordered by the events that were recorded and waited for in it,
//! not by the order in which they were issued.
//!
//! racy: the second branch forks before the first write: one WAW inside the graph, certain. clean: it
//! forks behind it.

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (origin, branch) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (forked, joined) = (Event::create()?, Event::create()?);
    let buffer = DeviceBuffer::alloc(LEN)?;
    origin.begin_capture()?;
    if variant.is_racy() {
        forked.record(&origin)?;
        set_bytes(buffer.all(), 1, &origin)?;
    } else {
        set_bytes(buffer.all(), 1, &origin)?;
        forked.record(&origin)?;
    }
    branch.wait(&forked)?;
    set_bytes(buffer.part(0..LEN / 2), 2, &branch)?;
    joined.record(&branch)?;
    origin.wait(&joined)?;
    let graph = origin.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&origin)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    origin.destroy()?;
    branch.destroy()?;
    forked.destroy()?;
    joined.destroy()?;
    buffer.free()?;
    gpu.close()
}
