//! Two streams fill boxes of one CUDA array.
//!
//! The hazard: arrays have no addresses, but boxes that overlap conflict like ranges do.
//!
//! racy: the boxes share columns: one WAW, certain. clean: they lie side by side.

use program_support::{Array, Failure, Gpu, PinnedBuffer, Stream, Variant};

const WIDTH: usize = 64;
const HEIGHT: usize = 16;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let array = Array::create(WIDTH, HEIGHT)?;
    let source = PinnedBuffer::filled(WIDTH * HEIGHT, 1)?;
    let begin = if variant.is_racy() { WIDTH / 4 } else { WIDTH / 2 };
    array.fill((0, 0), (WIDTH / 2, HEIGHT), &source, &left)?;
    array.fill((begin, 0), (WIDTH / 2, HEIGHT), &source, &right)?;
    gpu.synchronize_current_context()?;
    left.destroy()?;
    right.destroy()?;
    array.destroy()?;
    source.free()?;
    gpu.close()
}
