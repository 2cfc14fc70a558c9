//! One stream fills a CUDA array, another one reads it.
//!
//! The hazard: nothing orders the two streams.
//!
//! racy: one RAW, certain. clean: an event between.

use program_support::{Array, DeviceBuffer, Event, Failure, Gpu, PinnedBuffer, Stream, Variant};

const WIDTH: usize = 64;
const HEIGHT: usize = 16;
const LEN: usize = WIDTH * HEIGHT;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (filling, reading) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let filled = Event::create()?;
    let array = Array::create(WIDTH, HEIGHT)?;
    let source = PinnedBuffer::filled(WIDTH * HEIGHT, 1)?;
    let target = DeviceBuffer::alloc(WIDTH * HEIGHT)?;
    array.fill((0, 0), (WIDTH, HEIGHT), &source, &filling)?;
    filled.record(&filling)?;
    if !variant.is_racy() {
        reading.wait(&filled)?;
    }
    array.read((0, HEIGHT / 2), (WIDTH, HEIGHT / 2), target.part(0..LEN / 2), &reading)?;
    gpu.synchronize_current_context()?;
    filling.destroy()?;
    reading.destroy()?;
    filled.destroy()?;
    array.destroy()?;
    source.free()?;
    target.free()?;
    gpu.close()
}
