//! An executable graph is uploaded in one stream and its memset races another.
//!
//! The hazard: an upload is ordered behind earlier launches of the executable, and so is what follows
//! in its stream.
//!
//! racy: a third stream, without the upload: one WAW, certain. clean: behind the upload.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (launching, uploading, other) =
        (Stream::non_blocking()?, Stream::non_blocking()?, Stream::non_blocking()?);
    let buffer = DeviceBuffer::alloc(LEN)?;
    let graph = Graph::create()?;
    graph.add_memset(&[], buffer.all(), 1)?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    executable.upload(&uploading)?;
    let clearing = if variant.is_racy() { &other } else { &uploading };
    set_bytes(buffer.all(), 0, clearing)?;
    gpu.synchronize_current_context()?;
    executable.destroy()?;
    graph.destroy()?;
    launching.destroy()?;
    uploading.destroy()?;
    other.destroy()?;
    buffer.free()?;
    gpu.close()
}
