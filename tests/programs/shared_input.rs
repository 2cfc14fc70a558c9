//! Two streams scale one input at the same time, each into an output of its own.
//!
//! The hazard: one of the two refills the input instead of reading it, while the other still reads.
//! Where nothing is known of kernels both variants look alike: two streams, one buffer.
//!
//! racy: one WAR, kernel `scale` against kernel `fill`, certain with exact kernel accesses. clean:
//! both only read.

use program_support::{
    Arg, DeviceBuffer, Failure, Gpu, Module, Stream, Variant, check, copy_to_device_blocking,
    copy_to_host_blocking,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let (scale, fill) = (module.kernel("scale")?, module.kernel("fill")?);
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let input = DeviceBuffer::alloc(BYTES)?;
    let (left_output, right_output) = (DeviceBuffer::alloc(BYTES)?, DeviceBuffer::alloc(BYTES)?);
    copy_to_device_blocking(input.all(), &[1; BYTES])?;
    gpu.synchronize_current_context()?;

    let scaled = |factor, output: &DeviceBuffer| {
        [Arg::Pointer(input.all()), Arg::Pointer(output.all()), Arg::Word(factor), Arg::Word(WORDS)]
    };
    scale.launch(WORDS, &left, &scaled(2, &left_output))?;
    if variant.is_racy() {
        fill.launch(WORDS, &right, &[Arg::Pointer(input.all()), Arg::Word(0), Arg::Word(WORDS)])?;
    } else {
        scale.launch(WORDS, &right, &scaled(3, &right_output))?;
    }
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        let (two, three) =
            (copy_to_host_blocking(left_output.all())?, copy_to_host_blocking(right_output.all())?);
        check("last byte times two", two[BYTES - 1].into(), 2)?;
        check("last byte times three", three[BYTES - 1].into(), 3)?;
    }
    left.destroy()?;
    right.destroy()?;
    for buffer in [input, left_output, right_output] {
        buffer.free()?;
    }
    module.unload()?;
    gpu.close()
}
