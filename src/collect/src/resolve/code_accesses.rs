//! The accesses of a launch, as the code of its kernel says.
//!
//! Invariants: an access stays in the allocation that its pointer points into; a range that is not
//! known to be touched in whole is only anchored from the pointer on, and assumed below it; what a
//! kernel reaches through pointers that it loads from memory is never taken for nothing.

use super::global_pointers;
use super::launches;
use super::mappings;
use super::memory::Block;
use super::resolution::Resolution;
use crate::kernel_code::{CodeId, mode};
use crate::launch::Special;
use std::collections::HashMap;
use streamsan_kernels::access::{
    Base, KernelAccess, Launch, ParameterMode, PointerWord, Reach, Shapes, Touch, Touched, Waited,
    WordKind, Workspace,
};
use streamsan_model::{
    Access, Basis, ByteRange, Extent, KernelGap, MemoryKind, Mode, StridedPattern,
};

/// Accesses of launches that are kept, of all kernels together: some 100 bytes each.
const MOST_KEPT: usize = 1 << 18;

/// Blocks, and threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

/// The accesses of launches, by everything that they depend on.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    kernels: HashMap<CodeId, Shapes>,
    /// The accesses that all of them keep.
    size: usize,
    workspace: Workspace,
}

impl Instances {
    fn get(
        &mut self,
        code: CodeId,
        kernel: &KernelAccess,
        Geometry { grid, block }: Geometry,
        params: &[u8],
    ) -> &[Touched] {
        if self.size > MOST_KEPT {
            self.kernels.values_mut().for_each(Shapes::clear);
            self.size = 0;
        }
        let shapes = self.kernels.entry(code).or_insert_with(|| Shapes::new(kernel));
        self.size -= shapes.size();
        let touched = shapes.launch(kernel, &Launch { grid, block, params }, &mut self.workspace);
        self.size += shapes.size();
        touched
    }
}

/// How a launch touches memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    /// It may reach what its words point to in ways that its code does not tell.
    pub(super) anything: bool,
    /// How many of its accesses, the first ones, may come before the kernel's wait.
    pub(super) early: u32,
}

/// Notes what a launch touches.
///
/// An access that comes *perhaps* behind the kernel's wait is there twice: as it is behind the
/// wait, and no more than assumed before it.
pub(super) fn touch(
    resolution: &mut Resolution<'_>,
    code: CodeId,
    kernel: &KernelAccess,
    name: &str,
    geometry: Geometry,
    params: &[u8],
    specials: &[Special],
) -> Noted {
    let mut instances = std::mem::take(resolution.instances);
    let touched = instances.get(code, kernel, geometry, params);
    let mut found = Found::new(touched.len());
    let mut before = Found::new(0);
    let mut last: Option<(u32, bool, Pointed)> = None;
    let mut pointers_of: HashMap<u32, Option<Vec<u64>>> = HashMap::new();
    // A pointer stands in a variable, and which one is not known.
    let mut unknown = false;
    let in_parts = touched.iter().flat_map(|touched| {
        let parts = match touched.waited {
            Waited::No if kernel.waits => [Some(true), None],
            Waited::Perhaps => [Some(true), Some(false)],
            _ => [Some(false), None],
        };
        parts.into_iter().flatten().map(move |early| (touched, early))
    });
    for (touched, early) in in_parts {
        let found = match early {
            true => {
                before.assumed = touched.waited == Waited::Perhaps;
                &mut before
            }
            false => &mut found,
        };
        match touched.base {
            Base::Pointer(at) => {
                let Some(word) = kernel.pointers.get(at as usize) else { continue };
                if word.kind == WordKind::Pointer {
                    // Accesses through one word mostly follow each other.
                    let several = touched.several;
                    let pointed = match last {
                        Some((word, kind, known)) if (word, kind) == (at, several) => known,
                        _ => Pointed::by(resolution, value(params, word), several),
                    };
                    last = Some((at, several, pointed));
                    by_pointer(resolution, found, touched, pointed);
                }
            }
            Base::Global(at) => {
                let Some(variable) = kernel.globals.get(at as usize) else { continue };
                by_variable(resolution, found, touched, &variable.name, code);
            }
            Base::GlobalPointer(at) => {
                let values = pointers_of.entry(at).or_insert_with(|| {
                    let word = kernel.global_pointers.get(at as usize)?;
                    let variable = kernel.globals.get(word.global as usize)?;
                    global_pointers::values(resolution, code, &variable.name, word.offset, name)
                });
                match values {
                    Some(values) => by_global_pointer(resolution, found, touched, values),
                    None => unknown = true,
                }
            }
        }
    }
    for (at, word) in (0..).zip(&kernel.pointers) {
        if word.kind == WordKind::Pointer {
            continue;
        }
        let modes = special_modes(kernel, Base::Pointer(at), word.mode);
        for (waited, mode) in modes.into_iter().filter_map(|(waited, m)| Some((waited, mode(m)?))) {
            if waited != Waited::Yes && kernel.waits {
                before.assumed = waited == Waited::Perhaps;
                by_special(resolution, &mut before, word, mode, params, specials);
            }
            if waited != Waited::No || !kernel.waits {
                by_special(resolution, &mut found, word, mode, params, specials);
            }
        }
    }
    before.assumed = false;
    // References to textures are no parameters, and no code tells which one it uses.
    for special in specials.iter().filter(|special| special.offset.is_none()) {
        let found = if kernel.waits && !kernel.waits_on_primary { &mut before } else { &mut found };
        found.all.extend(special.accesses.iter().cloned());
    }
    // Much code takes pointers or tables of pointers, as its arguments say.
    let follows = unknown || touched.iter().any(|touched| touched.leads_on);
    if follows && !resolution.codes.exact {
        resolution.gaps.pointers_in_memory(name);
    }
    let anything = unknown || kernel.may_touch_anything_at(touched);
    *resolution.instances = instances;
    if anything {
        resolution.kernel_gap(KernelGap::MayTouchAnything, name);
    }
    let before = before.finish();
    let early = before.len() as u32;
    resolution.accesses.extend(before);
    resolution.accesses.extend(found.finish());
    Noted { anything, early }
}

/// The accesses through a tensor map, a texture or a surface, before and behind the wait.
fn special_modes(
    kernel: &KernelAccess,
    base: Base,
    all: ParameterMode,
) -> Vec<(Waited, ParameterMode)> {
    if !kernel.waits {
        return vec![(Waited::No, all)];
    }
    let of = |waited| {
        let own = kernel.accesses.iter().filter(|access| access.base == base);
        let own = own.filter(|access| access.waited == waited);
        own.fold(ParameterMode::None, |mode, access| mode.and(access.touch))
    };
    [Waited::No, Waited::Perhaps, Waited::Yes].map(|waited| (waited, of(waited))).to_vec()
}

fn mode_of(touch: Touch) -> Mode {
    match touch {
        Touch::Read => Mode::Read,
        Touch::Write => Mode::Write,
        Touch::Atomic => Mode::Atomic,
        Touch::Unknown => Mode::MayWrite,
        Touch::StrongRead => Mode::StrongRead,
        Touch::StrongWrite => Mode::StrongWrite,
        Touch::StrongAtomic => Mode::StrongAtomic,
    }
}

fn value(params: &[u8], word: &PointerWord) -> u64 {
    let at = word.block_offset as usize;
    let bytes = params.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The target of a word of a launch.
#[derive(Clone, Copy, Debug)]
struct Pointed {
    value: u64,
    block: Option<Block>,
}

impl Pointed {
    fn by(resolution: &Resolution<'_>, value: u64, several: bool) -> Self {
        let block = match several {
            // The words of a table that are not in use hold what was there before, freed pointers
            // too.
            true => launches::alive(resolution, value),
            false => launches::pointed_to(resolution, value),
        };
        Self { value, block }
    }
}

fn by_pointer(resolution: &Resolution<'_>, found: &mut Found, touched: &Touched, pointed: Pointed) {
    let (Pointed { value: pointer, block }, mode) = (pointed, mode_of(touched.touch));
    if touched.several {
        let Some(block) = block else { return };
        return reachable(resolution, &block, |block| {
            let extent = match touched.reach {
                Reach::Bytes { extent, .. } => extent,
                Reach::Anchored { .. } => Extent::Range(block.range),
            };
            mappings::cut(extent, block.range, &mut |part| {
                found.add(block, part, mode, Basis::Assumed);
            });
        });
    }
    match touched.reach {
        Reach::Bytes { extent, exact } => {
            // A pointer may be given that points beside what is touched: in front of an array that
            // is counted from one.
            let outside = |block: &Block| block.range.intersection(extent.hull()).is_none();
            let beside = block.is_none_or(|block| exact && outside(&block));
            let block =
                if beside { launches::pointed_to(resolution, extent.hull().start) } else { block };
            let Some(block) = block else { return };
            reachable(resolution, &block, |block| {
                mappings::cut(extent, block.range, &mut |part| {
                    if exact {
                        found.add(block, part, mode, Basis::Inferred);
                    } else {
                        found.bounded(block, part, pointer, mode);
                    }
                });
            });
        }
        Reach::Anchored { start } => {
            let Some(block) = block else { return };
            reachable(resolution, &block, |block| {
                found.bounded(block, Extent::Range(block.range), start, mode);
            });
        }
    }
}

/// The block, and the mappings that continue it.
fn reachable(resolution: &Resolution<'_>, block: &Block, mut each: impl FnMut(&Block)) {
    match block.kind {
        MemoryKind::Mapped => mappings::neighbours(resolution, block).iter().for_each(each),
        _ => each(block),
    }
}

/// A variable of the module: where it lies, if the program has ever asked.
fn by_variable(
    resolution: &mut Resolution<'_>,
    found: &mut Found,
    touched: &Touched,
    name: &str,
    code: CodeId,
) {
    let block = resolution.variable(code, name);
    let mode = mode_of(touched.touch);
    match touched.reach {
        Reach::Bytes { extent, exact } => {
            let Some(extent) = moved(extent, block.range.start) else { return };
            mappings::cut(extent, block.range, &mut |part| {
                let basis = if exact { Basis::Inferred } else { Basis::Anchored };
                found.add(&block, part, mode, basis);
            });
        }
        Reach::Anchored { .. } => {
            found.add(&block, Extent::Range(block.range), mode, Basis::Anchored);
        }
    }
}

/// Through a pointer that stands in a variable. It is known as one that was written there, so what
/// is touched is no more certain than where it begins.
fn by_global_pointer(
    resolution: &Resolution<'_>,
    found: &mut Found,
    touched: &Touched,
    values: &[u64],
) {
    let several = touched.several || values.len() > 1;
    for &value in values.iter().filter(|&&value| value != 0) {
        let reach = match touched.reach {
            Reach::Bytes { extent, .. } => {
                moved(extent, value).map_or(Reach::Anchored { start: value }, |extent| {
                    Reach::Bytes { extent, exact: false }
                })
            }
            Reach::Anchored { .. } => Reach::Anchored { start: value },
        };
        let pointed = Pointed::by(resolution, value, several);
        by_pointer(resolution, found, &Touched { reach, several, ..*touched }, pointed);
    }
}

/// An extent that counts from the start of a variable, as addresses.
fn moved(extent: Extent, by: u64) -> Option<Extent> {
    Some(match extent {
        Extent::Range(range) => {
            Extent::Range(ByteRange::new(range.start.checked_add(by)?, range.end.checked_add(by)?))
        }
        Extent::Strided(pattern) => {
            Extent::Strided(StridedPattern { start: pattern.start.checked_add(by)?, ..pattern })
        }
    })
}

/// Through a tensor map, a texture or a surface.
fn by_special(
    resolution: &Resolution<'_>,
    found: &mut Found,
    word: &PointerWord,
    mode: Mode,
    params: &[u8],
    specials: &[Special],
) {
    let known = specials.iter().find(|special| special.offset == Some(word.block_offset));
    if let Some(special) = known {
        let accesses = special.accesses.iter().cloned();
        let basis = if found.assumed { Basis::Assumed } else { Basis::Anchored };
        return found.all.extend(accesses.map(|a| Access { mode, basis, ..a }));
    }
    if word.kind == WordKind::TensorMap {
        // A map that nobody saw being made holds its address in one of its words.
        let first = word.block_offset as usize;
        for at in (first..first + 128).step_by(8) {
            let bytes = params.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            let address = bytes.map_or(0, u64::from_le_bytes);
            if let Some(block) = launches::alive(resolution, address) {
                found.add(&block, Extent::Range(block.range), mode, Basis::Assumed);
            }
        }
    }
}

/// The accesses of a launch.
#[derive(Debug)]
struct Found {
    all: Vec<Access>,
    /// Accesses that are added are no more than assumed.
    assumed: bool,
}

impl Found {
    fn new(expected: usize) -> Self {
        Self { all: Vec::with_capacity(expected), assumed: false }
    }

    fn add(&mut self, block: &Block, extent: Extent, mode: Mode, basis: Basis) {
        let basis = if self.assumed { Basis::Assumed } else { basis };
        self.all.push(Access { allocation: block.id, extent, mode, basis });
    }

    /// Adds what may be touched: from the pointer on, and below it.
    fn bounded(&mut self, block: &Block, extent: Extent, pointer: u64, mode: Mode) {
        let below = ByteRange { start: block.range.start, end: pointer.max(block.range.start) };
        let above = ByteRange { start: pointer, end: block.range.end.max(pointer) };
        for (side, basis) in [(above, Basis::Anchored), (below, Basis::Assumed)] {
            if let Some(side) = side.intersection(block.range).filter(|side| !side.is_empty()) {
                mappings::cut(extent, side, &mut |part| self.add(block, part, mode, basis));
            }
        }
    }

    /// The accesses, ranges of one kind that touch each other as one.
    fn finish(mut self) -> Vec<Access> {
        let key = |a: &Access| (a.allocation, a.mode, a.basis, a.extent.hull().start);
        self.all.sort_by_key(key);
        let mut merged: Vec<Access> = Vec::with_capacity(self.all.len());
        for access in self.all {
            if let Some(last) = merged.last_mut()
                && (last.allocation, last.mode, last.basis)
                    == (access.allocation, access.mode, access.basis)
            {
                if last.extent == access.extent {
                    continue;
                }
                if let Extent::Range(range) = &mut last.extent {
                    let hull = access.extent.hull();
                    let continues = matches!(access.extent, Extent::Range(_));
                    if hull.end <= range.end {
                        continue;
                    }
                    if continues && hull.start <= range.end {
                        range.end = hull.end;
                        continue;
                    }
                }
            }
            merged.push(access);
        }
        join_modes(merged)
    }
}

/// Accesses that are compared with each other one by one.
const FEW: usize = 16;

/// Bytes that are read and written alike are one access. Strong accesses stay apart: together with
/// others they would be weak.
pub(super) fn join_modes(accesses: Vec<Access>) -> Vec<Access> {
    let many = accesses.len() > FEW;
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut joined: Vec<Access> = Vec::with_capacity(accesses.len());
    for access in accesses {
        let bytes =
            |a: &Access| (a.allocation, a.extent, a.basis, a.mode.is_strong().then_some(a.mode));
        // A table has hundreds of words.
        let place = match many {
            true => *places.entry(bytes(&access)).or_insert(joined.len()),
            false => joined.iter().position(|a| bytes(a) == bytes(&access)).unwrap_or(joined.len()),
        };
        match joined.get_mut(place) {
            Some(other) => other.mode = other.mode.joined(access.mode),
            None => joined.push(access),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{Access, FEW, join_modes};
    use streamsan_model::{AllocationId, Basis, ByteRange, Extent, Mode};

    #[test]
    fn strong_accesses_stay_apart() {
        let access = |mode| Access {
            allocation: AllocationId(1),
            extent: Extent::Range(ByteRange::with_len(0, 4)),
            mode,
            basis: Basis::Inferred,
        };
        let all = [Mode::StrongRead, Mode::Read, Mode::StrongWrite, Mode::Write, Mode::StrongRead];
        let joined = join_modes(all.map(access).to_vec());
        let expected = [Mode::StrongRead, Mode::ReadWrite, Mode::StrongWrite];
        assert_eq!(joined, expected.map(access));
    }

    #[test]
    fn many_accesses_are_joined_as_few_are() {
        let modes = [Mode::Read, Mode::Write, Mode::MayWrite, Mode::Atomic, Mode::Read];
        let access = |allocation: u32, at: usize| Access {
            allocation: AllocationId(allocation),
            extent: Extent::Range(ByteRange::with_len(at as u64 % 3, 8)),
            mode: modes[at % modes.len()],
            basis: [Basis::Inferred, Basis::Assumed][at / 2 % 2],
        };
        let few: Vec<Access> = (0..FEW).map(|at| access(1, at)).collect();
        let others: Vec<Access> = (0..FEW).map(|at| access(2, at)).collect();
        let joined = join_modes(few.clone());
        assert!(joined.len() < few.len());
        // Those of another allocation have no part in it.
        let all = join_modes([few, others].concat());
        assert_eq!(all[..joined.len()], joined[..]);
        assert_eq!(all.len(), 2 * joined.len());
    }
}
