//! Graphs hand out an address twice: behind the node that frees what lay there first.
//!
//! The hazard: a user of the first memory that its free does not wait for goes on in the second.
//!
//! racy: the free is not behind one of the users: one UAF, certain. clean: it is. In both a capture
//! allocates, frees and allocates again, and its graph is launched twice.

use program_support::{DeviceBuffer, Failure, Gpu, Graph, Stream, Variant, set_bytes};

const LEN: usize = 4096;

fn built(variant: Variant) -> Result<Graph, Failure> {
    let graph = Graph::create()?;
    let (made, first) = graph.add_alloc(&[], LEN)?;
    let used = graph.add_memset(&[made], first.part(0..LEN / 2), 1)?;
    let beside = graph.add_memset(&[made], first.part(LEN / 2..LEN), 2)?;
    let users = if variant.is_racy() { vec![used] } else { vec![used, beside] };
    let freed = graph.add_free(&users, first)?;
    let (made, second) = graph.add_alloc(&[freed], LEN)?;
    let used = graph.add_memset(&[made], second, 3)?;
    graph.add_free(&[used], second)?;
    Ok(graph)
}

fn captured(stream: &Stream) -> Result<Graph, Failure> {
    stream.begin_capture()?;
    for len in [LEN, LEN / 2] {
        let memory = DeviceBuffer::alloc_async(len, stream)?;
        set_bytes(memory.all(), 1, stream)?;
        memory.free_async(stream)?;
    }
    stream.end_capture()
}

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    for graph in [built(variant)?, captured(&stream)?] {
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        gpu.synchronize_current_context()?;
        executable.destroy()?;
        graph.destroy()?;
    }
    stream.destroy()?;
    gpu.close()
}
