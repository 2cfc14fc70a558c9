//! Memory is freed with `cuMemFree` while a stream may still write to it.
//!
//! The hazard: that call may synchronise, and mostly does, but it is not documented to: the
//! program is right today by behaviour that it must not rely on.
//!
//! racy: one latent UAF, the free against the memset; RACY only where `latent` is asked for.
//! clean: the stream is synchronised before the free.

use program_support::{DeviceBuffer, Failure, Gpu, Stream, Variant, set_bytes};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let scratch = DeviceBuffer::alloc(LEN)?;

    set_bytes(scratch.all(), 1, &stream)?;
    if !variant.is_racy() {
        stream.synchronize()?;
    }
    scratch.free()?;

    gpu.synchronize_current_context()?;
    stream.destroy()?;
    gpu.close()
}
