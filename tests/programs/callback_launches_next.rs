//! A host function tells a second host thread that a stage is done; that thread then issues the
//! next stage in another stream (a host function may not call the driver itself).
//!
//! The hazard: the host function is queued before the stage that it should announce.
//!
//! racy: one RAW, memset against the download, certain. clean: the host function follows the stage.

use std::sync::mpsc;
use std::thread;

use program_support::{
    DeviceBuffer, DeviceRange, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_host,
    set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stage = Stream::non_blocking()?;
    let data = DeviceBuffer::alloc(LEN)?;
    // Before any work: an allocation may synchronise the device, and would hide the race today.
    let result = PinnedBuffer::filled(LEN, 0)?;
    let (announce, announced) = mpsc::channel();
    // A send fails when the launching thread ended early, which the result of that thread tells.
    let callback = move || {
        let _ = announce.send(());
    };

    if variant.is_racy() {
        stage.host_function(callback)?;
        set_bytes(data.all(), 3, &stage)?;
    } else {
        set_bytes(data.all(), 3, &stage)?;
        stage.host_function(callback)?;
    }

    let source = data.all();
    let launcher = thread::spawn(move || launch_next(gpu, source, result, &announced));
    let result = launcher.join().map_err(|_| Failure::Thread("launcher"))??;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("byte of the announced stage", result.byte(LEN - 1).into(), 3)?;
    }
    result.free()?;
    stage.destroy()?;
    data.free()?;
    gpu.close()
}

fn launch_next(
    gpu: Gpu,
    source: DeviceRange,
    result: PinnedBuffer,
    announced: &mpsc::Receiver<()>,
) -> Result<PinnedBuffer, Failure> {
    gpu.make_current()?;
    let next = Stream::non_blocking()?;
    announced.recv().map_err(|_| Failure::Thread("nobody announces the stage"))?;
    copy_to_host(&result, 0, source, &next)?;
    next.synchronize()?;
    next.destroy()?;
    Ok(result)
}
