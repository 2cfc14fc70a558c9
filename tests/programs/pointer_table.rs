//! A kernel is given a table of addresses in device memory, and reads the buffers that it names.
//!
//! The hazard: one of those buffers is still being written in another stream. No kernel argument
//! points at it, so the launch itself does not show the conflict.
//!
//! racy: one RAW, memset against kernel `add_through_table`, certain with exact kernel accesses.
//! clean: an event between the two.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check,
    copy_to_device_blocking, copy_to_host, set_bytes,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/pointer_table.ptx"))?;
    let add = module.kernel("add_through_table")?;
    let (writer, adder) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let written = Event::create()?;
    let (first, second) = (DeviceBuffer::alloc(BYTES)?, DeviceBuffer::alloc(BYTES)?);
    let (table, sums) = (DeviceBuffer::alloc(16)?, DeviceBuffer::alloc(BYTES)?);
    let result = PinnedBuffer::filled(BYTES, 0)?;
    let addresses = [first.all().address().to_le_bytes(), second.all().address().to_le_bytes()];
    copy_to_device_blocking(table.all(), addresses.as_flattened())?;
    copy_to_device_blocking(first.all(), &[1; BYTES])?;
    gpu.synchronize_current_context()?;

    set_bytes(second.all(), 2, &writer)?;
    written.record(&writer)?;
    if !variant.is_racy() {
        adder.wait(&written)?;
    }
    add.launch(
        WORDS,
        &adder,
        &[Arg::Pointer(table.all()), Arg::Pointer(sums.all()), Arg::Word(WORDS)],
    )?;
    copy_to_host(&result, 0, sums.all(), &adder)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("sum through the table", result.word(0).into(), 0x0303_0303)?;
    }
    written.destroy()?;
    writer.destroy()?;
    adder.destroy()?;
    for buffer in [first, second, table, sums] {
        buffer.free()?;
    }
    result.free()?;
    module.unload()?;
    gpu.close()
}
