//! Two streams fill column blocks of one pitched matrix with one kernel.
//!
//! The hazard: the blocks overlap by a few columns. As plain byte ranges both launches span nearly
//! the whole matrix, so only the strided pattern tells the two variants apart.
//!
//! racy: one WAW on the shared columns, certain with exact kernel accesses. clean: the blocks are
//! neighbours.

use program_support::{
    Arg, DeviceBuffer, Failure, Gpu, Module, Stream, Variant, check, copy_to_host_blocking,
};

const PITCH: usize = 512;
const ROWS: u32 = 16;
const COLUMNS: u32 = 50;
const WIDTH: usize = COLUMNS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/columns.ptx"))?;
    let fill = module.kernel("fill_columns")?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let size = PITCH * ROWS as usize;
    let matrix = DeviceBuffer::alloc(size)?;

    let right_start = if variant.is_racy() { WIDTH - 8 } else { WIDTH };
    for (stream, start, value) in [(&left, 0, 0x0101_0101), (&right, right_start, 0x0202_0202)] {
        let arguments = [
            Arg::Pointer(matrix.part(start..size)),
            Arg::Word(PITCH as u32),
            Arg::Word(COLUMNS),
            Arg::Word(value),
        ];
        fill.launch_rows(COLUMNS, ROWS, stream, &arguments)?;
    }
    gpu.synchronize_current_context()?;

    let result = copy_to_host_blocking(matrix.all())?;
    let last_row = PITCH * (ROWS as usize - 1);
    check("byte of the left columns", result[last_row].into(), 1)?;
    check("byte of the right columns", result[last_row + right_start + WIDTH - 1].into(), 2)?;
    if !variant.is_racy() {
        check("last byte of the left columns", result[last_row + WIDTH - 1].into(), 1)?;
    }
    left.destroy()?;
    right.destroy()?;
    matrix.free()?;
    module.unload()?;
    gpu.close()
}
