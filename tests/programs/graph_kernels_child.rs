//! A captured graph is a child of a graph that is made by hand, beside another kernel.
//!
//! The hazard: the child and the kernel node have no edge between them. The kernel runs as a node and
//! inside the child, with other arguments each time.
//!
//! racy: they write the same part of one allocation: one WAW inside the graph. clean: they write parts
//! of their own.

use program_support::{Arg, DeviceBuffer, Failure, Gpu, Graph, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = library.kernel("fill")?;
    let stream = Stream::non_blocking()?;
    let buffer = DeviceBuffer::alloc(2 * BYTES)?;
    let [first, second] = [0, 1].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = |to, value| [Arg::Pointer(to), Arg::Word(value), Arg::Word(WORDS)];

    stream.begin_capture()?;
    fill.launch(WORDS, &stream, &filled(first, 1))?;
    let captured = stream.end_capture()?;
    let graph = Graph::create()?;
    graph.add_child(&[], &captured)?;
    let beside = if variant.is_racy() { first } else { second };
    graph.add_kernel(&[], fill, WORDS, &filled(beside, 2))?;
    let executable = graph.instantiate()?;
    executable.launch(&stream)?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    captured.destroy()?;
    stream.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
