//! A captured graph gets another kernel, and its executable is updated to it.
//!
//! The hazard: the new kernel writes the part that the former one read.
//!
//! racy: another stream reads that part beside the launch after the update: one RAW. clean: it reads
//! the part that the new kernel leaves alone.

use program_support::{Arg, DeviceBuffer, Event, Failure, Gpu, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let (fill, scale) = (library.kernel("fill")?, library.kernel("scale")?);
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let first_done = Event::create()?;
    let buffer = DeviceBuffer::alloc(3 * BYTES)?;
    let [input, output, last] = [0, 1, 2].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = |to, value| [Arg::Pointer(to), Arg::Word(value), Arg::Word(WORDS)];
    let scaled = |from, to| [Arg::Pointer(from), Arg::Pointer(to), Arg::Word(3), Arg::Word(WORDS)];

    fill.launch(WORDS, &launching, &filled(input, 1))?;
    launching.begin_capture()?;
    scale.launch(WORDS, &launching, &scaled(input, output))?;
    let graph = launching.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    first_done.record(&launching)?;
    other.wait(&first_done)?;
    graph.set_kernel(graph.nodes()?[0], fill, WORDS, &filled(input, 2))?;
    executable.update(&graph)?;
    executable.launch(&launching)?;
    let read = if variant.is_racy() { input } else { output };
    scale.launch(WORDS, &other, &scaled(read, last))?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    launching.destroy()?;
    other.destroy()?;
    first_done.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
