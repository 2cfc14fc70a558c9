//! A kernel in the body of a conditional node, and another stream.
//!
//! The hazard: the body is captured into the node's own graph. Whether it runs is decided by a
//! condition, which is met in every launch.
//!
//! racy: the other stream reads what the body writes without a wait: one RAW. clean: it reads another
//! part of the same allocation.

use program_support::{Arg, DeviceBuffer, Failure, Gpu, Graph, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let (fill, scale) = (library.kernel("fill")?, library.kernel("scale")?);
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let buffer = DeviceBuffer::alloc(3 * BYTES)?;
    let [first, second, last] = [0, 1, 2].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = [Arg::Pointer(first), Arg::Word(1), Arg::Word(WORDS)];
    let scaled = |from, to| [Arg::Pointer(from), Arg::Pointer(to), Arg::Word(3), Arg::Word(WORDS)];

    let graph = Graph::create()?;
    let (_, body) = graph.add_if(&[])?;
    launching.begin_capture_to(&body)?;
    fill.launch(WORDS, &launching, &filled)?;
    launching.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    let read = if variant.is_racy() { first } else { second };
    scale.launch(WORDS, &other, &scaled(read, last))?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
