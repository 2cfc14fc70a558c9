//! Two host threads share one stream: one launches into it, the other records the event that a
//! second stream waits for.
//!
//! The hazard: nothing but the host decides which of the two calls comes first, and here the record
//! comes before the launch, so the event does not cover it.
//!
//! racy: one RAW, kernel `fill` against the download, certain with exact kernel accesses.
//! clean: the recording thread is told when the launch is done.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use program_support::{
    Arg, DeviceBuffer, DeviceRange, Event, Failure, Gpu, Kernel, Module, PinnedBuffer, Stream,
    Variant, check, copy_to_host,
};

const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let (shared, reader) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let filled = Event::create()?;
    let data = DeviceBuffer::alloc(BYTES)?;
    let result = PinnedBuffer::filled(BYTES, 0)?;

    // Whoever goes second waits for a message of whoever goes first; the calls never overlap.
    let (first, second) = mpsc::channel();
    let target = data.all();
    thread::scope(|scope| -> Result<(), Failure> {
        let (launch_turn, record_turn) = if variant.is_racy() {
            (Turn::Second(second), Turn::First(first))
        } else {
            (Turn::First(first), Turn::Second(second))
        };
        let launcher = scope.spawn(|| launch_turn.take(|| launch(gpu, fill, target, &shared)));
        let recorder = scope.spawn(|| {
            record_turn.take(|| {
                gpu.make_current()?;
                filled.record(&shared)
            })
        });
        launcher.join().map_err(|_| Failure::Thread("launcher"))??;
        recorder.join().map_err(|_| Failure::Thread("recorder"))?
    })?;

    reader.wait(&filled)?;
    copy_to_host(&result, 0, data.all(), &reader)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("filled word", result.word(0).into(), 21)?;
    }
    filled.destroy()?;
    shared.destroy()?;
    reader.destroy()?;
    data.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}

fn launch(gpu: Gpu, fill: Kernel, target: DeviceRange, stream: &Stream) -> Result<(), Failure> {
    gpu.make_current()?;
    fill.launch(WORDS, stream, &[Arg::Pointer(target), Arg::Word(21), Arg::Word(WORDS)])
}

/// Which thread makes its calls first.
enum Turn {
    First(Sender<()>),
    Second(Receiver<()>),
}

impl Turn {
    fn take(self, calls: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        match self {
            Self::First(next) => {
                calls()?;
                next.send(()).map_err(|_| Failure::Thread("nobody waits for its turn"))
            }
            Self::Second(turn) => {
                turn.recv().map_err(|_| Failure::Thread("the first turn never ended"))?;
                calls()
            }
        }
    }
}
