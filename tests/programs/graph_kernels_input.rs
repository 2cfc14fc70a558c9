//! The static input of a captured graph is written anew while the graph is replayed.
//!
//! The hazard: the graph's kernel reads the input, and the next input is written in another stream.
//! Beside it that stream writes another part of the same allocation, which no node touches.
//!
//! racy: the other stream does not wait for the replay: one WAR. clean: it waits before it writes the
//! input.

use program_support::{Arg, DeviceBuffer, Event, Failure, Gpu, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let (fill, scale) = (library.kernel("fill")?, library.kernel("scale")?);
    let (replaying, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (ready, replayed) = (Event::create()?, Event::create()?);
    let buffer = DeviceBuffer::alloc(3 * BYTES)?;
    let [input, output, spare] = [0, 1, 2].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = |to, value| [Arg::Pointer(to), Arg::Word(value), Arg::Word(WORDS)];
    let scaled = [Arg::Pointer(input), Arg::Pointer(output), Arg::Word(3), Arg::Word(WORDS)];

    fill.launch(WORDS, &replaying, &filled(input, 1))?;
    ready.record(&replaying)?;
    other.wait(&ready)?;
    replaying.begin_capture()?;
    scale.launch(WORDS, &replaying, &scaled)?;
    let graph = replaying.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&replaying)?;
    replayed.record(&replaying)?;
    fill.launch(WORDS, &other, &filled(spare, 2))?;
    if !variant.is_racy() {
        other.wait(&replayed)?;
    }
    fill.launch(WORDS, &other, &filled(input, 2))?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    replaying.destroy()?;
    other.destroy()?;
    ready.destroy()?;
    replayed.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
