//! Pointers in module globals: what the program wrote to variables of its modules, as far as that
//! was seen.
//!
//! The resolver sees the content of small copies from the host. Recorded at the call's entry, it is
//! what the copy takes in two cases (CUDA driver API, "API synchronization behavior"): a
//! synchronous form returns when the source has been read, and an asynchronous one from pageable
//! memory has copied it to a staging buffer by then. Page-locked memory is read when the stream
//! gets there, by when it may hold something else.
//!
//! Invariants: which of several values stands in a variable when a kernel runs is a question of
//! order, so a launch has all that were written before it. Any other write, of whatever part of a
//! variable, makes all of it unknown for good: copies that were not seen, memory that is set,
//! kernels, graphs. So does the launch of a kernel of the same code that nobody could read.
//!
//! A launch whose kernel becomes known late may be looked at when its module is gone, so a variable
//! keeps its last instances beyond their end, and a launch has those that were there when it was made.
//!
//! Deliberately absent: what a variable holds before it is written, and writes by kernels of which
//! is said that they may touch anything: their run is incomplete for that itself.

use super::resolution::Resolution;
use crate::kernel_code::{CodeId, ImagesId};
use std::collections::{BTreeMap, HashMap};
use streamsan_model::{Access, Action, AllocationId, ByteRange, Extent, MemoryKind, Mode};
use streamsan_wire::ParamKind;

/// Values of one word that a launch is given; with more, nothing is said.
const MOST_VALUES: usize = 8;
/// Values of one word that are kept at all.
const MOST_KEPT: usize = 64;
/// Instances of one variable that are kept beyond their end.
const MOST_ENDED: usize = 64;
/// Bytes of a pointer.
const POINTER: u64 = 8;

/// The values that were written to a word, each with the index of the call that wrote it first.
#[derive(Debug, Default)]
struct Word {
    values: Vec<(u64, u64)>,
    /// A part of it was written, or more values than are kept.
    unknown: bool,
}

/// A variable at one place: each context has its own.
#[derive(Debug)]
struct Instance {
    allocation: AllocationId,
    range: ByteRange,
    words: BTreeMap<u64, Word>,
    since: u64,
    /// The call that unloaded its module, `u64::MAX` while it is loaded.
    until: u64,
}

impl Instance {
    fn is_there_at(&self, g: u64) -> bool {
        self.since <= g && g < self.until
    }
}

#[derive(Debug, Default)]
struct Variable {
    instances: Vec<Instance>,
    /// The first call that wrote something that was not seen.
    unknown_since: Option<u64>,
    /// The last launch of each kernel that was told its values.
    told: BTreeMap<Box<str>, u64>,
}

/// The variables of a process.
#[derive(Debug, Default)]
pub(super) struct Variables {
    all: Vec<Variable>,
    by_name: HashMap<(ImagesId, Box<str>), usize>,
    by_allocation: HashMap<AllocationId, usize>,
}

impl Variables {
    fn named(&mut self, images: ImagesId, name: &str) -> usize {
        if let Some(&known) = self.by_name.get(&(images, Box::from(name))) {
            return known;
        }
        self.all.push(Variable::default());
        self.by_name.insert((images, name.into()), self.all.len() - 1);
        self.all.len() - 1
    }

    /// A variable that kernels may write before anybody has asked where it lies.
    pub(super) fn made_up(&mut self, images: ImagesId, name: &str, allocation: AllocationId) {
        let at = self.named(images, name);
        self.by_allocation.insert(allocation, at);
    }

    /// A variable that was looked up.
    pub(super) fn found(
        &mut self,
        images: ImagesId,
        name: &str,
        allocation: AllocationId,
        range: ByteRange,
        kind: MemoryKind,
        g: u64,
    ) {
        let at = self.named(images, name);
        self.by_allocation.insert(allocation, at);
        let variable = &mut self.all[at];
        let words = BTreeMap::new();
        variable.instances.push(Instance { allocation, range, words, since: g, until: u64::MAX });
        if kind == MemoryKind::Managed {
            // The host writes it without a call.
            variable.unknown_since = Some(0);
        }
    }

    /// The memory of a variable is gone.
    pub(super) fn gone(&mut self, allocation: AllocationId, g: u64) {
        let Some(at) = self.by_allocation.remove(&allocation) else { return };
        let instances = &mut self.all[at].instances;
        for instance in instances.iter_mut().filter(|i| i.allocation == allocation) {
            instance.until = g;
        }
        let is_over = |instance: &Instance| instance.until != u64::MAX;
        if instances.iter().filter(|instance| is_over(instance)).count() > MOST_ENDED
            && let Some(oldest) = instances.iter().position(is_over)
        {
            instances.remove(oldest);
        }
    }

    /// How many instances a variable had when the call `g` was made, as far as they are kept.
    fn instances_at(&self, at: usize, g: u64) -> usize {
        self.all[at].instances.iter().filter(|instance| instance.is_there_at(g)).count()
    }

    /// Something was written to a variable at `g` that was not seen. Returns the kernels that were
    /// told its values for later launches.
    fn lose(&mut self, at: usize, g: u64) -> Option<Vec<Box<str>>> {
        let variable = &mut self.all[at];
        if variable.unknown_since.is_some_and(|since| since <= g) {
            return None;
        }
        variable.unknown_since = Some(g);
        let late = variable.told.iter().filter(|&(_, &told)| told >= g);
        let late: Vec<Box<str>> = late.map(|(name, _)| name.clone()).collect();
        variable.told.retain(|_, told| *told < g);
        Some(late)
    }

    /// Takes a copy's bytes. Returns whether a word may now hold something that it could not before.
    fn put(&mut self, at: usize, allocation: AllocationId, written: &Written<'_>, g: u64) -> bool {
        let instances = &mut self.all[at].instances;
        let Some(instance) = instances.iter_mut().find(|i| i.allocation == allocation) else {
            return false;
        };
        let Some(start) = written.start.checked_sub(instance.range.start) else { return false };
        let end = start + written.bytes.len() as u64;
        let mut changed = false;
        for offset in (start / POINTER * POINTER..end).step_by(POINTER as usize) {
            let word = instance.words.entry(offset).or_default();
            let first = offset.checked_sub(start).map(|first| first as usize);
            let bytes = first.and_then(|first| written.bytes.get(first..first + POINTER as usize));
            match bytes.and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) if word.values.len() < MOST_KEPT => {
                    let value = u64::from_le_bytes(bytes);
                    if !word.values.iter().any(|(_, known)| *known == value) {
                        word.values.push((g, value));
                        changed = true;
                    }
                }
                _ => changed |= !std::mem::replace(&mut word.unknown, true),
            }
        }
        changed
    }

    /// The values, of those written before `g`, that a word may hold in a launch that was made at
    /// `made`; `None` where that is not known.
    fn values(
        &mut self,
        at: usize,
        offset: u64,
        made: u64,
        g: u64,
        kernel: &str,
    ) -> Option<Vec<u64>> {
        if self.instances_at(at, made) == 0 {
            return None;
        }
        let variable = &mut self.all[at];
        if variable.unknown_since.is_some_and(|since| since <= g) {
            return None;
        }
        let mut values = Vec::new();
        // Which of them the kernel has is a question of its context.
        for instance in variable.instances.iter().filter(|instance| instance.is_there_at(made)) {
            let word = instance.words.get(&offset).filter(|word| !word.unknown)?;
            let before = word.values.iter().filter(|(written, _)| *written < g);
            let count = values.len();
            values.extend(before.map(|(_, value)| *value));
            if values.len() == count {
                return None;
            }
        }
        values.sort_unstable();
        values.dedup();
        if values.len() > MOST_VALUES {
            return None;
        }
        let last = variable.told.entry(kernel.into()).or_default();
        *last = g.max(*last);
        Some(values)
    }
}

/// The bytes that a copy from the host writes, where they were seen.
struct Written<'a> {
    start: u64,
    bytes: &'a [u8],
}

fn seen<'a>(resolution: &Resolution<'a>, action: &Action) -> Option<Written<'a>> {
    let call = resolution.call;
    let Action::Copy(copy) = action else { return None };
    let reads = call
        .api
        .signature()
        .params
        .iter()
        .any(|param| matches!(param.kind, ParamKind::InBytes { .. }));
    let taken = copy.synchronous || copy.source == MemoryKind::Pageable;
    let bytes = call.pointee.as_deref().filter(|_| reads && taken)?;
    (bytes.len() as u64 == call.arg(2)).then_some(Written { start: call.arg(0), bytes })
}

fn writes(access: &Access) -> bool {
    matches!(access.mode.weak(), Mode::Write | Mode::ReadWrite | Mode::Atomic | Mode::MayWrite)
}

/// Notes what a call wrote to variables.
pub(super) fn call(resolution: &mut Resolution<'_>, action: &Action) {
    if resolution.tables.global_pointers.by_allocation.is_empty() {
        return;
    }
    let accesses = std::mem::take(&mut resolution.accesses);
    let written = seen(resolution, action);
    note(resolution, &accesses, written.as_ref());
    resolution.accesses = accesses;
}

/// Notes what was written to variables without anybody knowing what.
pub(super) fn unseen(resolution: &mut Resolution<'_>, accesses: &[Access]) {
    if !resolution.tables.global_pointers.by_allocation.is_empty() {
        note(resolution, accesses, None);
    }
}

fn note(resolution: &mut Resolution<'_>, accesses: &[Access], written: Option<&Written<'_>>) {
    for access in accesses.iter().filter(|access| writes(access)) {
        let Some(&at) = resolution.tables.global_pointers.by_allocation.get(&access.allocation)
        else {
            continue;
        };
        let whole = written.filter(|written| {
            let range = ByteRange::with_len(written.start, written.bytes.len() as u64);
            access.extent == Extent::Range(range)
        });
        match whole {
            Some(written) => {
                if resolution.tables.global_pointers.put(
                    at,
                    access.allocation,
                    written,
                    resolution.call.g,
                ) {
                    resolution.tables.memory.contents_changed();
                }
            }
            None => lose(resolution, at),
        }
    }
}

fn lose(resolution: &mut Resolution<'_>, at: usize) {
    let Some(late) = resolution.tables.global_pointers.lose(at, resolution.call.g) else { return };
    resolution.tables.memory.contents_changed();
    if !resolution.codes.exact {
        late.iter().for_each(|kernel| resolution.gaps.pointers_in_memory(kernel));
    }
}

/// A kernel was launched whose code could not be read: it may write the variables of its module.
pub(super) fn unread(resolution: &mut Resolution<'_>, code: CodeId) {
    let images = resolution.codes.images_of(code);
    let of_images =
        resolution.tables.global_pointers.by_name.iter().filter(|((home, _), _)| *home == images);
    let of_images: Vec<usize> = of_images.map(|(_, &at)| at).collect();
    of_images.into_iter().for_each(|at| lose(resolution, at));
}

/// The pointers that may stand at an offset of a variable in the launch at hand.
pub(super) fn values(
    resolution: &mut Resolution<'_>,
    code: CodeId,
    variable: &str,
    offset: u32,
    kernel: &str,
) -> Option<Vec<u64>> {
    let key = (resolution.codes.images_of(code), Box::from(variable));
    let at = *resolution.tables.global_pointers.by_name.get(&key)?;
    // One that nobody looked up holds what its module came with.
    if resolution.tables.global_pointers.instances_at(at, resolution.call.g)
        < resolution.tables.modules.loads_of(key.0, resolution.call.g)?
    {
        return None;
    }
    let until = resolution.written_until.unwrap_or(resolution.call.g);
    resolution.tables.global_pointers.values(at, offset.into(), resolution.call.g, until, kernel)
}
