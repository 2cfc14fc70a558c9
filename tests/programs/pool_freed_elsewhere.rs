//! Stream-ordered memory is freed in the stream that allocated it while another stream uses it.
//!
//! The hazard: from the free on the pool may hand the memory out again.
//!
//! racy: one UAF, certain. clean: the freeing stream waits for the use.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use program_support::{DeviceBuffer, Event, Failure, Gpu, Stream, Variant, run, set_bytes};

const LEN: usize = 4096;

fn main() -> ExitCode {
    run(env!("CARGO_BIN_NAME"), program)
}

fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (owner, user) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let (allocated, used) = (Event::create()?, Event::create()?);
    let buffer = DeviceBuffer::alloc_async(LEN, &owner)?;
    allocated.record(&owner)?;
    user.wait(&allocated)?;
    set_bytes(buffer.all(), 1, &user)?;
    used.record(&user)?;
    if !variant.is_racy() {
        owner.wait(&used)?;
    }
    buffer.free_async(&owner)?;
    gpu.synchronize_current_context()?;
    owner.destroy()?;
    user.destroy()?;
    allocated.destroy()?;
    used.destroy()?;
    gpu.close()
}
