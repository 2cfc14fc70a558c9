//! A kernel is timed with two events, and its result is read when the time is known.
//!
//! The hazard: the host waits for the start event instead of the stop event.
//!
//! racy: one RAW, kernel `fill` against the blocking download, certain with exact kernel accesses.
//! clean: the host waits for the stop event.

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, Stream, Variant, check, copy_to_host_blocking,
};

const WORDS: u32 = 1024;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let stream = Stream::non_blocking()?;
    let (start, stop) = (Event::create_timed()?, Event::create_timed()?);
    let data = DeviceBuffer::alloc(BYTES)?;

    start.record(&stream)?;
    fill.launch(WORDS, &stream, &[Arg::Pointer(data.all()), Arg::Word(9), Arg::Word(WORDS)])?;
    stop.record(&stream)?;
    if variant.is_racy() {
        start.synchronize()?;
    } else {
        stop.synchronize()?;
    }
    let result = copy_to_host_blocking(data.all())?;

    gpu.synchronize_current_context()?;
    // The time itself differs from run to run; that it is one does not.
    let elapsed = stop.milliseconds_since(&start)?;
    check("a time is not negative", u64::from(elapsed >= 0.0), 1)?;
    if !variant.is_racy() {
        check("filled byte", result[BYTES - 4].into(), 9)?;
    }
    start.destroy()?;
    stop.destroy()?;
    stream.destroy()?;
    data.free()?;
    module.unload()?;
    gpu.close()
}
