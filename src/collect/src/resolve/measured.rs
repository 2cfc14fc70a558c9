//! Whose bytes a launch was measured to touch.
//!
//! Bytes in no allocation of the run (variables that the program never asked for, the device's heap)
//! belong to one allocation that stands for them all. Nobody knows their lives, so that an access to
//! them is no more than assumed.

use super::code_accesses::join_modes;
use super::mappings;
use super::memory::Memory;
use crate::measured::MeasuredLaunch;
use streamsan_model::{Access, AllocationId, Basis, ByteRange, Extent, Mode, StridedPattern};
use streamsan_wire::{MEASURED_IN_PART, MEASURED_KNOWS_EARLY, MeasuredRun};

/// The accesses of the launch at `g`, to the allocations of that time.
pub(super) fn launch(
    memory: &Memory,
    g: u64,
    runs: &[MeasuredRun],
    flags: u32,
    mut elsewhere: impl FnMut() -> AllocationId,
) -> MeasuredLaunch {
    let is_early = |run: &&MeasuredRun| run.flags & MeasuredRun::EARLY != 0;
    let (before, behind): (Vec<&MeasuredRun>, Vec<&MeasuredRun>) = runs.iter().partition(is_early);
    let mut accesses = found(memory, g, &before, &mut elsewhere);
    let early = accesses.len() as u32;
    accesses.extend(found(memory, g, &behind, &mut elsewhere));
    MeasuredLaunch {
        accesses,
        early,
        knows_early: flags & MEASURED_KNOWS_EARLY != 0,
        in_part: flags & MEASURED_IN_PART != 0,
        has_hulls: runs.iter().any(|run| run.flags & MeasuredRun::HULL != 0),
    }
}

fn found(
    memory: &Memory,
    g: u64,
    runs: &[&MeasuredRun],
    elsewhere: &mut impl FnMut() -> AllocationId,
) -> Vec<Access> {
    let mut found = Vec::with_capacity(runs.len());
    for run in runs {
        let Some(extent) = extent(run) else { continue };
        let mode = match run.mode {
            0 => Mode::Read,
            1 => Mode::Write,
            2 => Mode::Atomic,
            _ => Mode::ReadWrite,
        };
        let basis = match run.flags & MeasuredRun::HULL {
            0 => Basis::Measured,
            _ => Basis::Anchored,
        };
        let hull = extent.hull();
        let mut start = hull.start;
        while start < hull.end {
            let (block, end) = memory.piece_at(ByteRange::new(start, hull.end), g);
            let (allocation, basis) = match block {
                Some(block) => (block.id, basis),
                None => (elsewhere(), Basis::Assumed),
            };
            mappings::cut(extent, ByteRange::new(start, end), &mut |extent| {
                found.push(Access { allocation, extent, mode, basis });
            });
            start = end;
        }
    }
    join_modes(found)
}

/// The bytes of a run.
fn extent(run: &MeasuredRun) -> Option<Extent> {
    let &MeasuredRun { start, width, pitch, rows, .. } = run;
    if rows == 1 {
        return Some(Extent::Range(ByteRange::with_len(start, width)));
    }
    Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch: 0, slices: 1 })
}
