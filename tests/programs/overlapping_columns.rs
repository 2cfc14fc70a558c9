//! Two streams fill columns of one matrix with 2-D copies, with no order between them.
//!
//! The hazard: the columns of the two overlap. As plain byte ranges both copies span nearly the
//! whole matrix, so only the strided pattern tells the two variants apart.
//!
//! racy: one WAW on the shared columns, certain. clean: the columns are neighbours.

use program_support::{
    Columns, DeviceBuffer, Failure, Gpu, PinnedBuffer, Stream, Variant, check,
    copy_columns_to_device, copy_to_host_blocking,
};

const PITCH: usize = 256;
const ROWS: usize = 32;
const WIDTH: usize = PITCH / 2;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let left_source = PinnedBuffer::filled(WIDTH * ROWS, 1)?;
    let right_source = PinnedBuffer::filled(WIDTH * ROWS, 2)?;
    let matrix = DeviceBuffer::alloc(PITCH * ROWS)?;

    let half = Columns { first: 0, width: WIDTH, rows: ROWS, pitch: PITCH };
    let right_start = if variant.is_racy() { WIDTH - 32 } else { WIDTH };
    copy_columns_to_device(&matrix, half, &left_source, &left)?;
    let right_half = Columns { first: right_start, ..half };
    copy_columns_to_device(&matrix, right_half, &right_source, &right)?;
    gpu.synchronize_current_context()?;

    let result = copy_to_host_blocking(matrix.all())?;
    check("byte of the left columns", result[0].into(), 1)?;
    check("byte of the right columns", result[right_start + WIDTH - 1].into(), 2)?;
    if !variant.is_racy() {
        check("last byte of the left columns", result[WIDTH - 1].into(), 1)?;
    }
    left.destroy()?;
    right.destroy()?;
    matrix.free()?;
    left_source.free()?;
    right_source.free()?;
    gpu.close()
}
