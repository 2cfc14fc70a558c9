//! Two host threads use `CU_STREAM_PER_THREAD`, each believing that it is the stream of the other.
//!
//! The hazard: the same handle names another stream in each thread, with no order between the two.
//!
//! racy: one RAW, memset against the download, certain. clean: the producing thread synchronises
//! its stream before it hands over.

use std::sync::mpsc;
use std::thread;

use program_support::{
    DeviceBuffer, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_host, set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let data = DeviceBuffer::alloc(LEN)?;
    let result = PinnedBuffer::filled(LEN, 0)?;
    let (issued, was_issued) = mpsc::channel();
    let (consumed, was_consumed) = mpsc::channel::<()>();

    let target = data.all();
    let producer = thread::spawn(move || -> Result<(), Failure> {
        gpu.make_current()?;
        let mine = Stream::per_thread();
        set_bytes(target, 12, &mine)?;
        if !variant.is_racy() {
            mine.synchronize()?;
        }
        issued.send(()).map_err(|_| Failure::Thread("nobody consumes"))?;
        // The thread, and its stream with it, outlive the consumption.
        was_consumed.recv().map_err(|_| Failure::Thread("consumer"))
    });

    was_issued.recv().map_err(|_| Failure::Thread("producer"))?;
    let mine = Stream::per_thread();
    copy_to_host(&result, 0, data.all(), &mine)?;
    mine.synchronize()?;
    consumed.send(()).map_err(|_| Failure::Thread("producer"))?;
    producer.join().map_err(|_| Failure::Thread("producer"))??;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("byte handed over", result.byte(LEN - 1).into(), 12)?;
    }
    data.free()?;
    result.free()?;
    gpu.close()
}
