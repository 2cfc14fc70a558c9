//! The piece of an image that the driver would load.

use super::{CodeKind, ComputeCapability, Entry, Target};

/// The entry that the driver would load on a device: of the machine code that runs on it the
/// newest, else of the PTX that can be compiled for it the newest. Of two entries for one number
/// the more specific comes first, then the one that stands first. `None` where nothing fits.
///
/// Source: CUDA Binary Utilities, "What is a CUDA Binary?" and NVCC manual, "Fatbinaries" (the
/// driver selects the most appropriate image; PTX is compiled where there is no machine code for
/// the device). The order among `a`, `f` and none is not documented; code that may use more of the
/// device is taken to be the better.
///
/// Deliberately absent: `CUDA_FORCE_PTX_JIT` and its relatives, which a process may set.
#[must_use]
pub fn select<'e, 'a>(
    entries: impl IntoIterator<Item = &'e Entry<'a>>,
    device: ComputeCapability,
) -> Option<&'e Entry<'a>>
where
    'a: 'e,
{
    let mut best: Option<(SelectionRank, &Entry<'a>)> = None;
    for entry in entries {
        let Some(target) = entry.target else { continue };
        let Some(rank) = rank(entry.kind, target, device) else { continue };
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            best = Some((rank, entry));
        }
    }
    best.map(|(_, entry)| entry)
}

/// Machine code before PTX, newer before older.
type SelectionRank = (bool, Target);

fn rank(kind: CodeKind, target: Target, device: ComputeCapability) -> Option<SelectionRank> {
    let fits = match kind {
        CodeKind::Cubin => target.runs_on(device),
        CodeKind::Ptx => target.compiles_for(device),
        CodeKind::Other(_) => false,
    };
    fits.then_some((kind == CodeKind::Cubin, target))
}
