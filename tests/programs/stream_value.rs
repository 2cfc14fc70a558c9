//! One stream writes a value when it is done; the other one waits for it, or does not.
//!
//! The hazard: only the wait orders the two.
//!
//! racy: one WAW, certain. clean: `cuStreamWaitValue32`; a lint says that CUDA does not see this
//! order.

use program_support::{
    DeviceBuffer, Failure, Gpu, Stream, Variant, set_bytes, wait_value, write_value,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (first, second) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (buffer, word) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(4)?);
    set_bytes(word.all(), 0, &first)?;
    first.synchronize()?;
    set_bytes(buffer.all(), 1, &first)?;
    write_value(word.all(), 1, true, &first)?;
    if !variant.is_racy() {
        wait_value(word.all(), 1, &second)?;
    }
    set_bytes(buffer.all(), 2, &second)?;
    gpu.synchronize_current_context()?;
    first.destroy()?;
    second.destroy()?;
    buffer.free()?;
    word.free()?;
    gpu.close()
}
