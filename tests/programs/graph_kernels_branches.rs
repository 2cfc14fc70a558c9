//! A captured fork whose branches are kernels of a library, all in one allocation.
//!
//! The hazard: the origin's second kernel reads what the branch writes. The kernels are launched only
//! while the streams capture, and which bytes they touch follows from their code and the arguments of
//! their nodes: the branches read one input and write parts of their own.
//!
//! racy: the origin waits for the branch behind that kernel: one RAW inside the graph. clean: it waits
//! before.

use program_support::{Arg, DeviceBuffer, Event, Failure, Gpu, Library, Stream, Variant};

const WORDS: u32 = 1000;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let library = Library::load(include_str!("ptx/elementwise.ptx"))?;
    let (fill, scale) = (library.kernel("fill")?, library.kernel("scale")?);
    let (origin, branch) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (forked, joined) = (Event::create()?, Event::create()?);
    let buffer = DeviceBuffer::alloc(4 * BYTES)?;
    let [input, left, right, last] = [0, 1, 2, 3].map(|i| buffer.part(i * BYTES..(i + 1) * BYTES));
    let filled = [Arg::Pointer(input), Arg::Word(7), Arg::Word(WORDS)];
    let scaled = |from, to| [Arg::Pointer(from), Arg::Pointer(to), Arg::Word(3), Arg::Word(WORDS)];

    origin.begin_capture()?;
    fill.launch(WORDS, &origin, &filled)?;
    forked.record(&origin)?;
    branch.wait(&forked)?;
    scale.launch(WORDS, &branch, &scaled(input, right))?;
    joined.record(&branch)?;
    scale.launch(WORDS, &origin, &scaled(input, left))?;
    if variant.is_racy() {
        scale.launch(WORDS, &origin, &scaled(right, last))?;
        origin.wait(&joined)?;
    } else {
        origin.wait(&joined)?;
        scale.launch(WORDS, &origin, &scaled(right, last))?;
    }
    let graph = origin.end_capture()?;
    let executable = graph.instantiate()?;
    executable.launch(&origin)?;
    gpu.synchronize_current_context()?;

    executable.destroy()?;
    graph.destroy()?;
    origin.destroy()?;
    branch.destroy()?;
    forked.destroy()?;
    joined.destroy()?;
    buffer.free()?;
    library.unload()?;
    gpu.close()
}
