//! Random numbers are made on the default stream, their sum on another stream whose pool is still
//! empty: the example by which PyTorch's notes on CUDA semantics explain what streams do not order,
//! as its allocator turns it into driver calls.
//!
//! The hazard: the allocator asks the driver for memory between the two kernels, first for the
//! result and then for a page-locked staging buffer. An allocation orders nothing.
//!
//! racy: one RAW, certain with exact kernel accesses. clean: the second stream waits for the first
//! one, as those notes say.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_host,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let (default, side) = (Stream::legacy(), Stream::non_blocking()?);
    let made = Event::create()?;

    let numbers = DeviceBuffer::alloc(BYTES)?;
    let arguments = [Arg::Pointer(numbers.all()), Arg::Word(7), Arg::Word(WORDS)];
    module.kernel("fill")?.launch(WORDS, &default, &arguments)?;
    if !variant.is_racy() {
        made.record(&default)?;
        side.wait(&made)?;
    }
    let result = DeviceBuffer::alloc(BYTES)?;
    let staging = PinnedBuffer::filled(BYTES, 0)?;
    let arguments =
        [Arg::Pointer(numbers.all()), Arg::Pointer(result.all()), Arg::Word(3), Arg::Word(WORDS)];
    module.kernel("scale")?.launch(WORDS, &side, &arguments)?;

    copy_to_host(&staging, 0, result.all(), &side)?;
    gpu.synchronize_current_context()?;
    if !variant.is_racy() {
        check("last word of the result", staging.word(WORDS as usize - 1).into(), 21)?;
    }
    made.destroy()?;
    side.destroy()?;
    numbers.free()?;
    result.free()?;
    staging.free()?;
    module.unload()?;
    gpu.close()
}
