//! Memoisation: the accesses of launches of a kernel, by everything that determines them.
//!
//! Stage: the launch, around [`instantiate`](super::instantiate). The key is grid, block, and the
//! relevant bytes of the parameters. Launches with one key whose translatable pointers lie between
//! the bounds touch the same bytes, translated with the pointers.
//!
//! Invariant: the answer equals that of [`instantiate`](crate::access::instantiate()) for the
//! launch.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use streamsan_model::{ByteRange, Extent, StridedPattern};

use crate::access::launch::instantiate::{Launch, Reach, Touched, Workspace, read_off, work_out};
use crate::access::launch::plan::Plan;
use crate::access::launch::translation_bounds::{TranslatedPointers, half_at, word_at};
use crate::access::summary::result::{Base, KernelAccess};

/// Results of one key that are kept: pointers that are null, or are not, for example.
const MOST_OF_A_KEY: usize = 4;

/// The accesses of launches whose pointers lie between bounds.
#[derive(Debug)]
struct MemoResult {
    pointers: TranslatedPointers,
    touched: Box<[Touched]>,
}

/// The answers for launches with one key.
#[derive(Debug, Default)]
struct MemoEntry {
    /// The key: all that decides but for the translatable pointers.
    key: Box<[u8]>,
    results: Vec<MemoResult>,
    /// The result that gives way to the next one.
    next: usize,
}

/// The answers for launches of one kernel.
#[derive(Debug)]
pub struct Shapes {
    plan: Plan,
    memo: FxHashMap<u64, MemoEntry>,
    /// Accesses in all of them.
    size: usize,
    /// Scratch memory for the launch in hand: its key, and how far each pointer has moved.
    key: Vec<u8>,
    translations: Vec<u64>,
}

impl Shapes {
    /// Nothing yet, of a kernel.
    pub fn new(kernel: &KernelAccess) -> Shapes {
        Shapes {
            plan: Plan::new(kernel),
            memo: FxHashMap::default(),
            size: 0,
            key: Vec::new(),
            translations: Vec::new(),
        }
    }

    /// The accesses of a launch of `kernel`, the kernel that this memo was made for. The answer
    /// equals that of [`instantiate`](crate::access::instantiate()).
    pub fn launch<'w>(
        &mut self,
        kernel: &KernelAccess,
        launch: &Launch<'_>,
        workspace: &'w mut Workspace,
    ) -> &'w [Touched] {
        if self.plan.is_plain {
            // Looking it up takes as long.
            read_off(&self.plan, launch, workspace);
            return workspace.touched();
        }
        if launch.params.len() < kernel.params_size as usize {
            // Where only half of a pointer is there it is not the number whose bits are in the key.
            work_out(kernel, &self.plan, launch, workspace);
            return workspace.touched();
        }
        self.key.clear();
        self.key.extend(launch.grid.iter().chain(&launch.block).flat_map(|n| n.to_le_bytes()));
        // Parameters that end early end at the same place.
        self.key.extend_from_slice(&launch.params.len().to_le_bytes());
        for range in &*self.plan.key_ranges {
            let end = launch.params.len().min(range.end as usize);
            self.key.extend_from_slice(launch.params.get(range.start as usize..end).unwrap_or(&[]));
        }
        for &(offset, bits) in &*self.plan.key_bits {
            let half = half_at(launch.params, offset) & bits;
            self.key.extend_from_slice(&half.to_le_bytes());
        }
        let mut hash = FxHasher::default();
        self.key.hash(&mut hash);
        let memo = self.memo.entry(hash.finish()).or_default();
        if *memo.key != *self.key {
            // Another one of the same hash gives way.
            self.size -= memo.results.iter().map(MemoResult::size).sum::<usize>();
            *memo = MemoEntry { key: self.key.as_slice().into(), ..MemoEntry::default() };
        }
        let translations = &mut self.translations;
        let at =
            memo.results.iter().position(|result| result.holds(&self.plan, launch, translations));
        if let Some(at) = at {
            memo.results[at].put(&self.plan, translations, workspace.touched());
            return workspace.touched();
        }
        let pointers = work_out(kernel, &self.plan, launch, workspace);
        let touched = workspace.touched();
        let result = MemoResult { pointers, touched: touched.as_slice().into() };
        self.size += result.size();
        if memo.results.len() < MOST_OF_A_KEY {
            memo.results.push(result);
        } else {
            let old = std::mem::replace(&mut memo.results[memo.next], result);
            memo.next = (memo.next + 1) % MOST_OF_A_KEY;
            self.size -= old.size();
        }
        touched
    }

    /// Number of kept items: accesses of launches, plus one for each launch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Forgets all launches.
    pub fn clear(&mut self) {
        self.memo = FxHashMap::default();
        self.size = 0;
    }
}

impl MemoResult {
    fn size(&self) -> usize {
        self.touched.len() + self.pointers.len() + 1
    }

    /// Whether the pointers of a launch lie between the bounds, and how far from those of the first
    /// one.
    fn holds(&self, plan: &Plan, launch: &Launch<'_>, translations: &mut Vec<u64>) -> bool {
        translations.clear();
        self.pointers.iter().zip(&*plan.translatable).all(|(first, word)| {
            let value = word_at(launch.params, word.offset);
            translations.push(value.wrapping_sub(first.value));
            (first.least..=first.most).contains(&value)
        })
    }

    /// The accesses where pointers have moved.
    fn put(&self, plan: &Plan, translations: &[u64], out: &mut Vec<Touched>) {
        out.clear();
        out.extend(self.touched.iter().map(|touched| {
            let word = match touched.base {
                Base::Pointer(at) => plan.words[at as usize],
                Base::Global(_) | Base::GlobalPointer(_) => None,
            };
            match word.map_or(0, |word| translations[usize::from(word)]) {
                0 => *touched,
                by => Touched { reach: translated(touched.reach, by), ..*touched },
            }
        }));
    }
}

/// All ends lie in the address space, before and after.
fn translated(reach: Reach, by: u64) -> Reach {
    match reach {
        Reach::Anchored { start } => Reach::Anchored { start: start.wrapping_add(by) },
        Reach::Bytes { extent: Extent::Range(range), exact } => {
            let ByteRange { start, end } = range;
            let range = ByteRange { start: start.wrapping_add(by), end: end.wrapping_add(by) };
            Reach::Bytes { extent: Extent::Range(range), exact }
        }
        Reach::Bytes { extent: Extent::Strided(pattern), exact } => {
            let start = pattern.start.wrapping_add(by);
            Reach::Bytes { extent: Extent::Strided(StridedPattern { start, ..pattern }), exact }
        }
    }
}

#[cfg(test)]
mod tests;
