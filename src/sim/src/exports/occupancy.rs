//! Occupancy.

use super::args::Out;
use super::callback;
use super::enter::api;
use crate::driver::Call;
use crate::errors::{CuError, Outcome};

/// The block size with the most resident threads, and the grid that fills the device with it.
/// The program's function is called without any lock.
fn best_block(
    call: &Call,
    grid: Out<i32>,
    block: Out<i32>,
    function: u64,
    shared_of: usize,
    dynamic: u64,
    limit: i32,
) -> Outcome {
    grid.check()?;
    block.check()?;
    let most = call.max_threads(function)?;
    if limit < 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let most = if limit == 0 { most } else { most.min(limit) };
    let mut best = (0, 0, 0);
    let mut size = most;
    while size > 0 {
        let shared =
            if shared_of == 0 { dynamic } else { callback::block_to_shared(shared_of, size) };
        let blocks = call.occupancy(function, size, shared)?;
        if blocks * size > best.0 {
            best = (blocks * size, blocks, size);
        }
        // Full warps below the first try.
        size = (size - 1) / 32 * 32;
    }
    grid.set(best.1 * call.multiprocessors())?;
    block.set(best.2)
}

api! { TABLE;
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<i32>,
        function: u64,
        block: i32,
        dynamic: u64,
    ) |call| {
        blocks.check()?;
        blocks.set(call.occupancy(function, block, dynamic)?)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<i32>,
        function: u64,
        block: i32,
        dynamic: u64,
        flags: u32,
    ) |call| {
        blocks.check()?;
        if flags > 1 {
            return Err(CuError::INVALID_VALUE);
        }
        blocks.set(call.occupancy(function, block, dynamic)?)
    }
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>,
        block: Out<i32>,
        function: u64,
        shared_of: usize,
        dynamic: u64,
        limit: i32,
    ) |call| { best_block(call, grid, block, function, shared_of, dynamic, limit) }
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>,
        block: Out<i32>,
        function: u64,
        shared_of: usize,
        dynamic: u64,
        limit: i32,
        flags: u32,
    ) |call| {
        if flags > 1 {
            return Err(CuError::INVALID_VALUE);
        }
        best_block(call, grid, block, function, shared_of, dynamic, limit)
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<u64>,
        function: u64,
        blocks: i32,
        _block: i32,
    ) |call| {
        bytes.check()?;
        bytes.set(call.available_dynamic_shared(function, blocks)?)
    }
}
