//! Registered host memory is given back while a copy from it may still run.
//!
//! The hazard: that `cuMemHostUnregister` waits is nowhere said.
//!
//! racy: latent, certain: counts with `--fail-on latent`. clean: the host waits for the copy.

use program_support::{DeviceBuffer, Failure, Gpu, Registered, Stream, Variant};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let target = DeviceBuffer::alloc(LEN)?;
    let source = Registered::new(vec![1; 4 * LEN])?;
    source.copy_to_device(target.all(), &stream)?;
    if !variant.is_racy() {
        stream.synchronize()?;
    }
    let memory = source.unregister()?;
    stream.synchronize()?;
    drop(memory);
    stream.destroy()?;
    target.free()?;
    gpu.close()
}
