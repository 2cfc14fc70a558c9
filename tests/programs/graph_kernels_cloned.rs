//! A captured graph and its clone, with a kernel changed, are launched in two streams.
//!
//! The hazard: the clone has nodes of its own, and launches of two executables are ordered by streams
//! alone.
//!
//! racy: both write the same part of one allocation: one WAW. clean: the clone's node was given another
//! part.

use program_support::{Arg, DeviceBuffer, Failure, Gpu, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = library.kernel("fill")?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let buffer = DeviceBuffer::alloc(2 * BYTES)?;
    let [first, second] = [0, 1].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = |to, value| [Arg::Pointer(to), Arg::Word(value), Arg::Word(WORDS)];

    left.begin_capture()?;
    fill.launch(WORDS, &left, &filled(first, 1))?;
    let graph = left.end_capture()?;
    let clone = graph.try_clone()?;
    if !variant.is_racy() {
        clone.set_kernel(clone.nodes()?[0], fill, WORDS, &filled(second, 2))?;
    }
    let (original, cloned) = (graph.instantiate()?, clone.instantiate()?);
    original.launch(&left)?;
    cloned.launch(&right)?;
    gpu.synchronize_current_context()?;

    original.destroy()?;
    cloned.destroy()?;
    graph.destroy()?;
    clone.destroy()?;
    left.destroy()?;
    right.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
