//! Two streams count into one histogram at the same time.
//!
//! The hazard: that is right while both count atomically, and wrong when one of them does not.
//!
//! racy: one RAW, `count_atomically` against `count_alone`, certain with exact kernel accesses.
//! clean: both kernels use atomics; no order between them is needed.

use program_support::{
    Arg, DeviceBuffer, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check, copy_to_device,
    copy_to_host, set_bytes,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;
const BINS: usize = 16;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/histogram.ptx"))?;
    let atomic = module.kernel("count_atomically")?;
    let second = if variant.is_racy() { module.kernel("count_alone")? } else { atomic };
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let words = PinnedBuffer::filled(BYTES, 0)?;
    words.write_words(0..WORDS);
    let result = PinnedBuffer::filled(BINS * 4, 0)?;
    let (input, bins) = (DeviceBuffer::alloc(BYTES)?, DeviceBuffer::alloc(BINS * 4)?);
    copy_to_device(input.all(), &words, 0, &left)?;
    set_bytes(bins.all(), 0, &left)?;
    left.synchronize()?;

    let arguments = [Arg::Pointer(input.all()), Arg::Pointer(bins.all()), Arg::Word(WORDS)];
    atomic.launch(WORDS, &left, &arguments)?;
    second.launch(WORDS, &right, &arguments)?;
    left.synchronize()?;
    right.synchronize()?;
    copy_to_host(&result, 0, bins.all(), &left)?;
    left.synchronize()?;

    if !variant.is_racy() {
        for bin in 0..BINS {
            check("count in a bin", result.word(bin).into(), 2 * u64::from(WORDS) / BINS as u64)?;
        }
    }
    left.destroy()?;
    right.destroy()?;
    input.free()?;
    bins.free()?;
    words.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}
