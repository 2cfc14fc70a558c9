//! Two buffers in turn: a kernel fills one while a copy drains the other.
//!
//! The hazard: the drain waits for the fill, but the next fill of a buffer does not wait for its
//! drain. Half of the order is there, and most runs look right.
//!
//! racy: two WAR, a drain against the `fill` two rounds later, certain with exact kernel accesses.
//! clean: the producer waits for the drain as well.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_host,
};

const ROUNDS: usize = 4;
const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let (producer, consumer) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let buffers = [DeviceBuffer::alloc(BYTES)?, DeviceBuffer::alloc(BYTES)?];
    let filled = [Event::create()?, Event::create()?];
    let drained = [Event::create()?, Event::create()?];
    let result = PinnedBuffer::filled(ROUNDS * BYTES, 0)?;

    for round in 0..ROUNDS {
        let turn = round % 2;
        if round >= 2 && !variant.is_racy() {
            producer.wait(&drained[turn])?;
        }
        let value = round as u32 + 1;
        let arguments = [Arg::Pointer(buffers[turn].all()), Arg::Word(value), Arg::Word(WORDS)];
        fill.launch(WORDS, &producer, &arguments)?;
        filled[turn].record(&producer)?;

        consumer.wait(&filled[turn])?;
        copy_to_host(&result, round * BYTES, buffers[turn].all(), &consumer)?;
        drained[turn].record(&consumer)?;
    }
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        for round in 0..ROUNDS {
            let last = (round + 1) * WORDS as usize - 1;
            check("word of a round", result.word(last).into(), round as u64 + 1)?;
        }
    }
    for event in filled.into_iter().chain(drained) {
        event.destroy()?;
    }
    producer.destroy()?;
    consumer.destroy()?;
    for buffer in buffers {
        buffer.free()?;
    }
    result.free()?;
    module.unload()?;
    gpu.close()
}
