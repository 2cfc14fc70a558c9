//! The host polls an event until it is done, then issues the next work in another stream.
//!
//! The hazard: the polled event was recorded before the last kernel.
//!
//! racy: one RAW, the second `fill` against the blocking download, certain with exact kernel
//! accesses. clean: the polled event follows the last kernel; a query that answers "done" orders
//! as a synchronisation does.

use std::thread;

use program_support::{
    Arg, DeviceBuffer, Event, Failure, Gpu, Module, Stream, Variant, check, copy_to_host_blocking,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let stream = Stream::non_blocking()?;
    let (prepared, finished) = (Event::create()?, Event::create()?);
    let data = DeviceBuffer::alloc(BYTES)?;

    fill.launch(WORDS, &stream, &[Arg::Pointer(data.all()), Arg::Word(1), Arg::Word(WORDS)])?;
    prepared.record(&stream)?;
    fill.launch(WORDS, &stream, &[Arg::Pointer(data.all()), Arg::Word(2), Arg::Word(WORDS)])?;
    finished.record(&stream)?;

    let polled = if variant.is_racy() { &prepared } else { &finished };
    while !polled.is_done()? {
        thread::yield_now();
    }
    let result = copy_to_host_blocking(data.all())?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("byte of the second kernel", result[BYTES - 4].into(), 2)?;
    }
    prepared.destroy()?;
    finished.destroy()?;
    stream.destroy()?;
    data.free()?;
    module.unload()?;
    gpu.close()
}
