//! A child graph writes what a node of its parent writes.
//!
//! The hazard: a child graph is one node; without an edge it is not ordered with the others.
//!
//! racy: one WAW inside the graph, certain. clean: the child is behind the node.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let buffer = DeviceBuffer::alloc(LEN)?;
    let (inner, outer) = (Graph::create()?, Graph::create()?);
    inner.add_memset(&[], buffer.all(), 1)?;
    let node = outer.add_memset(&[], buffer.part(0..LEN / 2), 2)?;
    let after: &[_] = if variant.is_racy() { &[] } else { &[node] };
    outer.add_child(after, &inner)?;
    let executable = outer.instantiate()?;
    executable.launch(&stream)?;
    stream.synchronize()?;
    executable.destroy()?;
    outer.destroy()?;
    inner.destroy()?;
    stream.destroy()?;
    buffer.free()?;
    gpu.close()
}
