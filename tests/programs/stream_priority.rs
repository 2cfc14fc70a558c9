//! A producer in a stream of the greatest priority, its consumer in one of the least.
//!
//! The hazard: a priority is a hint to the scheduler, never an order.
//!
//! racy: one RAW, kernel `fill` against the download, certain with exact kernel accesses.
//! clean: an event between the two.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_host,
};

const WORDS: u32 = 512;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let (least, greatest) = gpu.stream_priorities()?;
    let urgent = Stream::with_priority(greatest)?;
    let patient = Stream::with_priority(least)?;
    let produced = Event::create()?;
    let data = DeviceBuffer::alloc(BYTES)?;
    let result = PinnedBuffer::filled(BYTES, 0)?;

    fill.launch(WORDS, &urgent, &[Arg::Pointer(data.all()), Arg::Word(11), Arg::Word(WORDS)])?;
    produced.record(&urgent)?;
    if !variant.is_racy() {
        patient.wait(&produced)?;
    }
    copy_to_host(&result, 0, data.all(), &patient)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("filled word", result.word(WORDS as usize - 1).into(), 11)?;
    }
    produced.destroy()?;
    urgent.destroy()?;
    patient.destroy()?;
    data.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}
