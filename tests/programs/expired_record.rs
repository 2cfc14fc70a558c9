//! An event is recorded, more work follows in the same stream, and a second stream waits.
//!
//! The hazard: the event holds the work before its record, not the work before the wait.
//!
//! racy: one RAW, the second `fill` against the download, certain with exact kernel accesses.
//! clean: the event is recorded again after the second kernel.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_host,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let (writer, reader) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let data = DeviceBuffer::alloc(BYTES)?;
    let result = PinnedBuffer::filled(BYTES, 0)?;

    fill.launch(WORDS, &writer, &[Arg::Pointer(data.all()), Arg::Word(1), Arg::Word(WORDS)])?;
    written.record(&writer)?;
    fill.launch(WORDS, &writer, &[Arg::Pointer(data.all()), Arg::Word(2), Arg::Word(WORDS)])?;
    if !variant.is_racy() {
        written.record(&writer)?;
    }
    reader.wait(&written)?;
    copy_to_host(&result, 0, data.all(), &reader)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("word of the second kernel", result.word(WORDS as usize - 1).into(), 2)?;
    }
    written.destroy()?;
    writer.destroy()?;
    reader.destroy()?;
    data.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}
