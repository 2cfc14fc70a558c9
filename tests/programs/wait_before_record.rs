//! A consumer is set up before its producer.
//!
//! The hazard: a wait for an event that was never recorded waits for nothing; the record that comes
//! later does not reach back.
//!
//! racy: one RAW, kernel `scale` against the download, certain with exact kernel accesses.
//! clean: record first, wait second.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_device, copy_to_host,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let scale = module.kernel("scale")?;
    let (producer, consumer) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let scaled = Event::create()?;
    let source = PinnedBuffer::filled(BYTES, 0)?;
    let result = PinnedBuffer::filled(BYTES, 0)?;
    source.write_words(0..WORDS);
    let (input, output) = (DeviceBuffer::alloc(BYTES)?, DeviceBuffer::alloc(BYTES)?);

    if variant.is_racy() {
        consumer.wait(&scaled)?;
    }
    copy_to_device(input.all(), &source, 0, &producer)?;
    let arguments =
        [Arg::Pointer(input.all()), Arg::Pointer(output.all()), Arg::Word(5), Arg::Word(WORDS)];
    scale.launch(WORDS, &producer, &arguments)?;
    scaled.record(&producer)?;
    if !variant.is_racy() {
        consumer.wait(&scaled)?;
    }
    copy_to_host(&result, 0, output.all(), &consumer)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("scaled word", result.word(7).into(), 35)?;
    }
    scaled.destroy()?;
    producer.destroy()?;
    consumer.destroy()?;
    input.free()?;
    output.free()?;
    source.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}
