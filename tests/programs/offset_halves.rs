//! Two streams fill the halves of one buffer with one kernel, through offset pointers.
//!
//! The hazard: the second half begins too early. What tells the variants apart is how far each
//! launch reaches, which only the kernel's code and the launch together say.
//!
//! racy: one WAW on the shared words, certain with exact kernel accesses. clean: the halves are
//! neighbours.

use program_support::{
    Arg, DeviceBuffer, Failure, Gpu, Module, Stream, Variant, check, copy_to_host_blocking,
};

const HALF: u32 = 1000;
const HALF_BYTES: usize = HALF as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let fill = module.kernel("fill")?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let buffer = DeviceBuffer::alloc(2 * HALF_BYTES)?;

    let start = if variant.is_racy() { HALF_BYTES - 16 } else { HALF_BYTES };
    let second = buffer.part(start..start + HALF_BYTES);
    let filled = |range, value| [Arg::Pointer(range), Arg::Word(value), Arg::Word(HALF)];
    fill.launch(HALF, &left, &filled(buffer.part(0..HALF_BYTES), 0x0101_0101))?;
    fill.launch(HALF, &right, &filled(second, 0x0202_0202))?;
    gpu.synchronize_current_context()?;

    let result = copy_to_host_blocking(buffer.all())?;
    check("first byte", result[0].into(), 1)?;
    check("byte of the second half", result[HALF_BYTES].into(), 2)?;
    if !variant.is_racy() {
        check("last byte of the first half", result[HALF_BYTES - 1].into(), 1)?;
    }
    left.destroy()?;
    right.destroy()?;
    buffer.free()?;
    module.unload()?;
    gpu.close()
}
