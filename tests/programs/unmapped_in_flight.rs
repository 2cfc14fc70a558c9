//! A mapping is taken away while a memset through it may still run.
//!
//! The hazard: unmapping waits for nothing that is documented; `cuMemUnmap` may synchronise.
//!
//! racy: latent, certain: counts with `--fail-on latent`. clean: the host waits first.

use program_support::{Failure, Gpu, Physical, Stream, Variant, set_bytes};

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let stream = Stream::non_blocking()?;
    let memory = Physical::create()?;
    let mapping = memory.map()?;
    set_bytes(mapping.all().part(0..4096), 1, &stream)?;
    if !variant.is_racy() {
        stream.synchronize()?;
    }
    mapping.unmap()?;
    memory.release()?;
    stream.destroy()?;
    gpu.close()
}
