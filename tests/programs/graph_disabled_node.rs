//! A node of an executable graph is disabled.
//!
//! The hazard: a node that runs in every launch conflicts with another stream; disabled it touches
//! nothing.
//!
//! racy: the node runs: one WAW, certain. clean: it is disabled.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (own, shared) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let graph = Graph::create()?;
    let first = graph.add_memset(&[], own.all(), 1)?;
    let second = graph.add_memset(&[first], shared.all(), 2)?;
    let executable = graph.instantiate()?;
    executable.set_enabled(second, variant.is_racy())?;
    executable.launch(&launching)?;
    set_bytes(shared.all(), 0, &other)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    own.free()?;
    shared.free()?;
    gpu.close()
}
