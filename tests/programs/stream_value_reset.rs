//! Two rounds over one flag: a stream writes a value when it is done, the other one waits for it, and
//! the flag is reset by a memset before the next round.
//!
//! The hazard: the old value satisfies the second wait, unless the reset is behind the first wait and
//! before the second one.
//!
//! racy: the producer resets the flag, which the consumer's second wait is not behind: one WAW, certain,
//! and one RAW of the flag, possible. clean: the consumer resets it.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, Stream, Variant, set_bytes, wait_value, write_value,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (producer, consumer) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (buffer, flag) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(4)?);
    let consumed = Event::create()?;
    set_bytes(flag.all(), 0, &producer)?;
    producer.synchronize()?;

    set_bytes(buffer.all(), 1, &producer)?;
    write_value(flag.all(), 1, true, &producer)?;
    wait_value(flag.all(), 1, &consumer)?;
    set_bytes(buffer.all(), 2, &consumer)?;
    if !variant.is_racy() {
        set_bytes(flag.all(), 0, &consumer)?;
    }
    consumed.record(&consumer)?;
    producer.wait(&consumed)?;
    if variant.is_racy() {
        set_bytes(flag.all(), 0, &producer)?;
    }

    set_bytes(buffer.all(), 3, &producer)?;
    write_value(flag.all(), 1, true, &producer)?;
    wait_value(flag.all(), 1, &consumer)?;
    set_bytes(buffer.all(), 4, &consumer)?;

    gpu.synchronize_current_context()?;
    consumed.destroy()?;
    producer.destroy()?;
    consumer.destroy()?;
    buffer.free()?;
    flag.free()?;
    gpu.close()
}
