//! Two memset nodes of one graph whose bytes overlap.
//!
//! The hazard: without an edge between them the graph may run them in either order.
//!
//! racy: one WAW inside the graph, certain, whatever happens to its launches. clean: an edge.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    let graph = Graph::create()?;
    let first = graph.add_memset(&[], buffer.part(0..3 * LEN / 4), 1)?;
    let after: &[_] = if variant.is_racy() { &[] } else { &[first] };
    graph.add_memset(after, buffer.part(LEN / 2..LEN), 2)?;
    let executable = graph.instantiate()?;
    for _ in 0..3 {
        executable.launch(&stream)?;
    }
    stream.synchronize()?;
    executable.destroy()?;
    graph.destroy()?;
    stream.destroy()?;
    buffer.free()?;
    gpu.close()
}
