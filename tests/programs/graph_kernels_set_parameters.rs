//! The arguments of a captured kernel are set anew between two launches of its executable.
//!
//! The hazard: later launches write where the new arguments say, whatever was captured. Both parts lie
//! in one allocation.
//!
//! racy: another stream writes the new part beside the second launch: one WAW. clean: it writes the
//! old one.

use program_support::{Arg, DeviceBuffer, Event, Failure, Gpu, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = library.kernel("fill")?;
    let (launching, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let first_done = Event::create()?;
    let buffer = DeviceBuffer::alloc(2 * BYTES)?;
    let [old, new] = [0, 1].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = |to, value| [Arg::Pointer(to), Arg::Word(value), Arg::Word(WORDS)];

    launching.begin_capture()?;
    fill.launch(WORDS, &launching, &filled(old, 1))?;
    let graph = launching.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&launching)?;
    first_done.record(&launching)?;
    other.wait(&first_done)?;
    executable.set_kernel(graph.nodes()?[0], fill, WORDS, &filled(new, 1))?;
    executable.launch(&launching)?;
    let written = if variant.is_racy() { new } else { old };
    fill.launch(WORDS, &other, &filled(written, 2))?;
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
