//! One graph, launched in two streams.
//!
//! The hazard: launches of one executable are in order whatever streams they are launched in; launches
//! of two executables are not, even where both were made of one graph.
//!
//! racy: two executables, one WAW, certain. clean: one executable, launched twice.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let buffer = DeviceBuffer::alloc(LEN)?;
    let graph = Graph::create()?;
    graph.add_memset(&[], buffer.all(), 1)?;
    let executable = graph.instantiate()?;
    let other = graph.instantiate()?;
    executable.launch(&first)?;
    if variant.is_racy() { &other } else { &executable }.launch(&second)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    other.destroy()?;
    graph.destroy()?;
    first.destroy()?;
    second.destroy()?;
    buffer.free()?;
    gpu.close()
}
