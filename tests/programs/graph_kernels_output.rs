//! The output of a graph of kernels is read in another stream.
//!
//! The hazard: the graph is made by hand from kernels of a library, and its output is the input of a
//! kernel in another stream. Its input, in the same allocation, may be read there at any time after
//! the first launch.
//!
//! racy: the other stream reads the output without a wait: one RAW. clean: it waits for the launch.

use program_support::{Arg, DeviceBuffer, Event, Failure, Gpu, Graph, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let (fill, scale) = (library.kernel("fill")?, library.kernel("scale")?);
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (ready, launched) = (Event::create()?, Event::create()?);
    let buffer = DeviceBuffer::alloc(5 * BYTES)?;
    let [input, between, output, first, second] =
        [0, 1, 2, 3, 4].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = [Arg::Pointer(input), Arg::Word(1), Arg::Word(WORDS)];
    let scaled = |from, to| [Arg::Pointer(from), Arg::Pointer(to), Arg::Word(3), Arg::Word(WORDS)];

    let graph = Graph::create()?;
    let begin = graph.add_kernel(&[], scale, WORDS, &scaled(input, between))?;
    graph.add_kernel(&[begin], scale, WORDS, &scaled(between, output))?;
    let executable = graph.instantiate()?;
    fill.launch(WORDS, &launching, &filled)?;
    ready.record(&launching)?;
    executable.launch(&launching)?;
    launched.record(&launching)?;
    other.wait(&ready)?;
    scale.launch(WORDS, &other, &scaled(input, first))?;
    if !variant.is_racy() {
        other.wait(&launched)?;
    }
    scale.launch(WORDS, &other, &scaled(output, second))?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    ready.destroy()?;
    launched.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
