//! Gaps: calls and memory that were seen and could not be resolved.

use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{Access, AllocationId, GraphId, IncompleteReason, KernelGap, Mode, OpSeq};
use streamsan_store::KernelCount;

/// A toucher of memory: an operation, or a graph each time that it is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Toucher {
    Operation(OpSeq),
    Graph(GraphId),
}

/// Memory that may be the same as other memory of the run. Libraries import such memory for their
/// own use, which is nobody's concern: it matters where something that is judged touches it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnknownOrigin {
    /// The call by which each came.
    memory: BTreeMap<AllocationId, &'static str>,
    /// The operations and graphs that touch each part of it.
    touched: BTreeMap<Toucher, BTreeSet<AllocationId>>,
}

impl UnknownOrigin {
    /// How often memory that came by a call is touched, by what is said of the call.
    fn reasons(&self) -> BTreeMap<String, u64> {
        let touched: BTreeSet<&AllocationId> = self.touched.values().flatten().collect();
        let mut reasons = BTreeMap::new();
        for call in touched.into_iter().filter_map(|id| self.memory.get(id)) {
            *reasons
                .entry(format!("{call} (memory of unknown origin that is used)"))
                .or_default() += 1;
        }
        reasons
    }
}

/// A gap of one launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    kind: GapKind,
    kernel: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapKind {
    UnknownParameters,
    PointersInMemory,
    Counted(KernelGap),
}

impl Gap {
    /// Whether the kernel follows pointers that it loads from memory.
    pub(crate) fn is_pointers_in_memory(&self) -> bool {
        self.kind == GapKind::PointersInMemory
    }

    /// The kernel, by its mangled name.
    pub(crate) fn kernel(&self) -> &str {
        &self.kernel
    }

    #[cfg(test)]
    pub(crate) fn pointers_in_memory(kernel: &str) -> Self {
        Self { kind: GapKind::PointersInMemory, kernel: kernel.into() }
    }
}

/// Counts of what keeps a run from being called clean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    not_understood: BTreeMap<String, u64>,
    unknown_parameters: BTreeMap<String, u64>,
    pointers_in_memory: BTreeMap<String, u64>,
    kernels: BTreeMap<(KernelGap, String), u64>,
    unknown_origin: UnknownOrigin,
    /// Gaps of the launch at hand, where it is not yet known whether they count.
    aside: Option<Vec<Gap>>,
}

impl Gaps {
    /// A call, or a part of one, whose effect is not modelled.
    pub(crate) fn not_understood(&mut self, what: &str) {
        count(&mut self.not_understood, what, 1);
    }

    /// Memory came by a call that does not say whose it is.
    pub(super) fn unknown_origin(&mut self, memory: AllocationId, call: &'static str) {
        self.unknown_origin.memory.insert(memory, call);
    }

    /// Notes the accesses of an operation or a graph, in place of those that were known before.
    pub(super) fn touched<'a>(
        &mut self,
        by: Toucher,
        accesses: impl IntoIterator<Item = &'a Access>,
    ) {
        let UnknownOrigin { memory, touched } = &mut self.unknown_origin;
        if memory.is_empty() {
            return;
        }
        let uses = |access: &&Access| !matches!(access.mode, Mode::Allocate | Mode::Free);
        let used = accesses.into_iter().filter(uses).map(|access| access.allocation);
        let used: BTreeSet<AllocationId> = used.filter(|id| memory.contains_key(id)).collect();
        match used.is_empty() {
            true => touched.remove(&by),
            false => touched.insert(by, used),
        };
    }

    /// A launch that may touch anything.
    pub(crate) fn unknown_parameters(&mut self, kernel: &str) {
        self.note(GapKind::UnknownParameters, kernel);
    }

    /// A launch of a kernel that follows pointers which it loads from memory.
    pub(crate) fn pointers_in_memory(&mut self, kernel: &str) {
        self.note(GapKind::PointersInMemory, kernel);
    }

    /// Counts a gap of a kernel's launch, or of an image.
    pub(crate) fn kernel(&mut self, gap: KernelGap, name: &str) {
        self.note(GapKind::Counted(gap), name);
    }

    fn note(&mut self, kind: GapKind, kernel: &str) {
        match &mut self.aside {
            Some(aside) => aside.push(Gap { kind, kernel: kernel.into() }),
            None => self.count(kind, kernel),
        }
    }

    fn count(&mut self, kind: GapKind, kernel: &str) {
        match kind {
            GapKind::UnknownParameters => count(&mut self.unknown_parameters, kernel, 1),
            GapKind::PointersInMemory => count(&mut self.pointers_in_memory, kernel, 1),
            GapKind::Counted(gap) => {
                *self.kernels.entry((gap, kernel.to_owned())).or_default() += 1;
            }
        }
    }

    /// Puts the gaps of launches aside from here on.
    pub(super) fn put_aside(&mut self) {
        self.aside = Some(Vec::new());
    }

    /// The gaps that were put aside.
    pub(super) fn take_aside(&mut self) -> Vec<Gap> {
        self.aside.take().unwrap_or_default()
    }

    /// Counts gaps that were put aside.
    pub(super) fn add(&mut self, gaps: Vec<Gap>) {
        for Gap { kind, kernel } in gaps {
            self.count(kind, &kernel);
        }
    }

    /// The gaps that were only counted, in a fixed order.
    pub(crate) fn kernels(&self) -> Vec<KernelCount> {
        let kernels = self.kernels.iter();
        kernels
            .map(|((gap, name), &count)| KernelCount { gap: *gap, name: name.clone(), count })
            .collect()
    }

    /// The reasons, in a fixed order.
    pub(crate) fn reasons(&self) -> Vec<IncompleteReason> {
        let calls = self.not_understood.clone().into_iter().chain(self.unknown_origin.reasons());
        let calls = calls.map(|(api, calls)| IncompleteReason::NotUnderstood { api, calls });
        let kernels = self.unknown_parameters.iter();
        let kernels = kernels.map(|(kernel, &launches)| {
            IncompleteReason::UnknownKernelParameters { kernel: kernel.clone(), launches }
        });
        let pointers = self.pointers_in_memory.iter();
        let pointers = pointers.map(|(kernel, &launches)| IncompleteReason::PointersInMemory {
            kernel: kernel.clone(),
            launches,
        });
        calls.chain(kernels).chain(pointers).collect()
    }
}

fn count(table: &mut BTreeMap<String, u64>, key: &str, by: u64) {
    match table.get_mut(key) {
        Some(n) => *n += by,
        None => {
            table.insert(key.to_owned(), by);
        }
    }
}
