//! The launches of kernels that the run measures: which they are, what came of them, and what their
//! being measured makes good.
//!
//! A launch of a selected kernel is open from its resolution on, until the bytes that it touched
//! come. Then they take the place of what was concluded for it. Whatever else happens (no bytes come,
//! nobody measures), the launch keeps what was concluded and counts as not measured.
//!
//! Invariants:
//! - A gap of a selected kernel's launch (pointers in memory, unread code, ...) counts unless this
//!   launch was measured whole.
//! - Accesses at made-up addresses (arrays, variables that the program never asked for) stay: no
//!   measured address can be one of them.
//! - Accesses that may come before the kernel's wait stay where measuring cannot tell the time before
//!   the wait from the time behind it, and all concluded ones where the kernel has accesses that
//!   measuring does not see.
//! - Every launch of a selected kernel is counted once, in one of the three ways.
//!
//! Nodes of graphs are in `graphs`; `outside` holds what was measured against what was concluded.
//!
//! Deliberately absent: whose bytes they are (`resolve::measured`), and who measures.

mod graphs;
mod outside;

pub(crate) use graphs::LaunchedNode;

use crate::resolve::Gap;
use graphs::MeasuredGraphs;
use outside::is_outside;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use streamsan_model::{Access, Entity, Graph, GraphId, KernelId, TraceItem};
use streamsan_names::{bare, whole};
use streamsan_store::{MeasuredCount, MeasuredKind};
use streamsan_wire::{NotMeasured, ProcessKey, Selection};

/// Launches whose concluded accesses are kept for as long as they are open. Where more are open at
/// once, the newest ones are not measured.
const MOST_OPEN: usize = 1 << 16;
/// The first address that is made up, for memory that has none.
const MADE_UP: u64 = 1 << 60;

/// The accesses concluded for a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConcludedLaunch {
    pub(crate) accesses: Vec<Access>,
    /// How many of them, the first ones, may come before the kernel's wait.
    pub(crate) early: u32,
    /// Whether the kernel has accesses that measuring does not see.
    pub(crate) unseen: bool,
}

/// The bytes measured of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MeasuredLaunch {
    pub(crate) accesses: Vec<Access>,
    /// How many of them, the first ones, came before the kernel's wait.
    pub(crate) early: u32,
    /// Whether those before the wait are told apart.
    pub(crate) knows_early: bool,
    /// Whether the kernel also touched memory in ways that nobody saw.
    pub(crate) in_part: bool,
    /// Whether some accesses are upper bounds.
    pub(crate) has_hulls: bool,
}

/// The accesses of a launch that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) accesses: Vec<Access>,
    pub(crate) early: u32,
    is_whole: bool,
}

impl MeasuredLaunch {
    fn merged(&self, concluded: &ConcludedLaunch) -> Merged {
        let (before, behind) =
            concluded.accesses.split_at((concluded.early as usize).min(concluded.accesses.len()));
        let (own_before, own_behind) =
            self.accesses.split_at((self.early as usize).min(self.accesses.len()));
        let stays = self.in_part || concluded.unseen;
        let before_stays = stays || !self.knows_early;
        let kept = |access: &&Access, all: bool| all || access.extent.hull().start >= MADE_UP;
        let mut accesses = own_before.to_vec();
        accesses.extend(before.iter().filter(|access| kept(access, before_stays)).cloned());
        let early = accesses.len() as u32;
        accesses.extend(own_behind.iter().cloned());
        accesses.extend(behind.iter().filter(|access| kept(access, stays)).cloned());
        let knows_time = self.knows_early || before.is_empty();
        Merged { accesses, early, is_whole: !stays && !self.has_hulls && knows_time }
    }
}

/// A launch that was not counted yet.
#[derive(Debug)]
struct Open {
    kernel: Arc<str>,
    concluded: ConcludedLaunch,
    gaps: Vec<Gap>,
    /// Its code is still being read: more gaps and other accesses may come.
    awaits_code: bool,
    measured: Option<MeasuredLaunch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    whole: u64,
    in_part: u64,
    not: u64,
    follows_pointers: u64,
    outside: u64,
}

/// The selection of a run, and what came of it so far.
#[derive(Debug)]
pub(crate) struct Measuring {
    selection: Selection,
    selected: HashMap<KernelId, Arc<str>>,
    graphs: MeasuredGraphs,
    open: BTreeMap<u64, Open>,
    /// Launches of which it was said that no bytes will come, before they were resolved.
    refused: HashSet<u64>,
    counts: BTreeMap<Arc<str>, Counts>,
    why_not: BTreeMap<String, u64>,
    off: BTreeMap<String, BTreeSet<ProcessKey>>,
}

impl Measuring {
    pub(crate) fn new(selection: Selection) -> Self {
        Self {
            selection,
            selected: HashMap::new(),
            graphs: MeasuredGraphs::default(),
            open: BTreeMap::new(),
            refused: HashSet::new(),
            counts: BTreeMap::new(),
            why_not: BTreeMap::new(),
            off: BTreeMap::new(),
        }
    }

    /// Takes note of kernels and graphs that are declared.
    pub(crate) fn declared(&mut self, items: &[TraceItem]) {
        for item in items {
            match item {
                TraceItem::Entity(Entity::Kernel(kernel)) => {
                    let readable = || [whole(&kernel.name), bare(&kernel.name)];
                    let readable = || readable().into_iter().flatten().collect();
                    // Who measures knows the machine code, not the image that it was chosen from.
                    if self.selection.selects(None, &kernel.name, readable) {
                        self.selected.insert(kernel.id, kernel.name.as_str().into());
                    }
                }
                TraceItem::Entity(Entity::Graph(graph)) => {
                    self.graphs.declared(graph, &self.selected);
                }
                _ => {}
            }
        }
    }

    /// A graph was launched, which runs these nodes.
    pub(crate) fn graph_launched(&mut self, g: u64, nodes: &[LaunchedNode]) {
        self.graphs.launched(g, nodes);
    }

    /// Keeps the gaps of selected kernels in graphs until the end. Answers those that count.
    pub(crate) fn gaps_of_nodes(&mut self, gaps: Vec<Gap>) -> Vec<Gap> {
        // Launches of a graph that has not changed have none.
        if gaps.is_empty() {
            return gaps;
        }
        let selected: HashSet<&str> = self.selected.values().map(|name| &**name).collect();
        self.graphs.keep_gaps(gaps, |kernel| selected.contains(kernel))
    }

    /// The code of a node's kernel has become known.
    pub(crate) fn code_of_node_known(&mut self, node: (GraphId, u32), unseen: bool) {
        self.graphs.code_known(node, unseen);
    }

    /// Whether the bytes of a node are still to come, for the launch of its graph at `g`.
    pub(crate) fn is_node_awaited(&self, g: u64, handle: u64) -> bool {
        self.graphs.is_awaited(g, handle)
    }

    /// The bytes of a node in the launch of its graph at `g` have come.
    pub(crate) fn node_measured(&mut self, g: u64, handle: u64, measured: MeasuredLaunch) {
        self.graphs.measured(g, handle, measured);
    }

    /// A kernel was launched. Answers the gaps that count, whatever comes.
    pub(crate) fn launched(
        &mut self,
        g: u64,
        kernel: KernelId,
        concluded: ConcludedLaunch,
        awaits_code: bool,
        gaps: Vec<Gap>,
    ) -> Vec<Gap> {
        let Some(kernel) = self.selected.get(&kernel) else { return gaps };
        if self.refused.remove(&g) || self.open.len() >= MOST_OPEN {
            self.counts.entry(kernel.clone()).or_default().not += 1;
            return gaps;
        }
        let open = Open { kernel: kernel.clone(), concluded, gaps, awaits_code, measured: None };
        self.open.insert(g, open);
        Vec::new()
    }

    /// Whether the bytes of a launch are still to come.
    pub(crate) fn is_awaited(&self, g: u64) -> bool {
        self.open.get(&g).is_some_and(|open| open.measured.is_none())
    }

    /// The bytes of a launch have come. Answers the launch's accesses from now on, and the gaps that
    /// count; `None` for a launch that is not awaited.
    pub(crate) fn measured(
        &mut self,
        g: u64,
        measured: MeasuredLaunch,
    ) -> Option<(Merged, Vec<Gap>)> {
        let open = self.open.get_mut(&g).filter(|open| open.measured.is_none())?;
        let merged = measured.merged(&open.concluded);
        open.measured = Some(measured);
        let gaps = if open.awaits_code { Vec::new() } else { self.close(g, &merged) };
        Some((merged, gaps))
    }

    /// The code of a launch's kernel has become known, and what the launch touches by that. Answers
    /// what it touches by all that is known, where that is not `concluded`, and the gaps that count.
    pub(crate) fn code_known(
        &mut self,
        g: u64,
        concluded: &ConcludedLaunch,
        mut gaps: Vec<Gap>,
    ) -> (Option<Merged>, Vec<Gap>) {
        let Some(open) = self.open.get_mut(&g) else { return (None, gaps) };
        open.gaps.append(&mut gaps);
        open.awaits_code = false;
        open.concluded = concluded.clone();
        let merged = open.measured.as_ref().map(|measured| measured.merged(concluded));
        let gaps = merged.as_ref().map_or_else(Vec::new, |merged| self.close(g, merged));
        (merged, gaps)
    }

    /// A launch has its final accesses: counts it. Answers the gaps that count.
    fn close(&mut self, g: u64, merged: &Merged) -> Vec<Gap> {
        let Some(open) = self.open.remove(&g) else { return Vec::new() };
        let Open { kernel, concluded, gaps, awaits_code, measured } = open;
        let counts = self.counts.entry(kernel).or_default();
        // Nothing is claimed of a launch with gaps.
        if gaps.is_empty() && !awaits_code {
            let measured = measured.as_ref().map_or(&[][..], |measured| &measured.accesses);
            counts.outside += u64::from(is_outside(measured, &concluded.accesses));
        }
        if !merged.is_whole {
            counts.in_part += 1;
            return gaps;
        }
        counts.whole += 1;
        counts.follows_pointers += u64::from(gaps.iter().any(Gap::is_pointers_in_memory));
        Vec::new()
    }

    /// A launch is not measured, or with `g` 0 nothing of a process. Answers the launch's gaps, which
    /// count now.
    pub(crate) fn not_measured(
        &mut self,
        process: ProcessKey,
        g: u64,
        reason: NotMeasured,
        detail: &[u8],
    ) -> Vec<Gap> {
        let mut text = reason.description().to_owned();
        if !detail.is_empty() {
            text = format!("{text} ({})", String::from_utf8_lossy(detail));
        }
        if g == 0 {
            self.off.entry(text).or_default().insert(process);
            return Vec::new();
        }
        *self.why_not.entry(text).or_default() += 1;
        match self.open.entry(g) {
            Entry::Occupied(open) if open.get().measured.is_none() => {
                let open = open.remove();
                self.counts.entry(open.kernel).or_default().not += 1;
                open.gaps
            }
            Entry::Occupied(_) => Vec::new(),
            Entry::Vacant(_) => {
                // A launch that failed, or one of a graph, is never asked for.
                if self.refused.len() < MOST_OPEN {
                    self.refused.insert(g);
                }
                Vec::new()
            }
        }
    }

    /// No more bytes come. Answers the graphs whose nodes have other accesses from now on, and the
    /// gaps of the launches that are still open.
    pub(crate) fn end(&mut self) -> (Vec<Arc<Graph>>, Vec<Gap>) {
        let (graphs, mut left) = self.graphs.end(&mut self.counts);
        for (g, open) in std::mem::take(&mut self.open) {
            match &open.measured {
                // Its code was not read to the end.
                Some(measured) => {
                    let merged = measured.merged(&open.concluded);
                    self.open.insert(g, open);
                    left.extend(self.close(g, &merged));
                }
                None => {
                    self.counts.entry(open.kernel).or_default().not += 1;
                    left.extend(open.gaps);
                }
            }
        }
        (graphs, left)
    }

    /// The counts of the run, in a fixed order.
    pub(crate) fn coverage(&self) -> Vec<MeasuredCount> {
        let mut all = Vec::new();
        let mut add = |kind, name: &str, count: u64| {
            if count > 0 {
                all.push(MeasuredCount { kind, name: name.to_owned(), count });
            }
        };
        for (kernel, counts) in &self.counts {
            add(MeasuredKind::Whole, kernel, counts.whole);
            add(MeasuredKind::InPart, kernel, counts.in_part);
            add(MeasuredKind::Not, kernel, counts.not);
            add(MeasuredKind::FollowsPointers, kernel, counts.follows_pointers);
            add(MeasuredKind::Outside, kernel, counts.outside);
        }
        for (reason, count) in &self.why_not {
            add(MeasuredKind::WhyNot, reason, *count);
        }
        for (reason, processes) in &self.off {
            add(MeasuredKind::Off, reason, processes.len() as u64);
        }
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use streamsan_model::{AllocationId, Basis, ByteRange, Extent, Kernel, Mode};

    const KERNEL: KernelId = KernelId(3);

    fn access(start: u64, basis: Basis) -> Access {
        let extent = Extent::Range(ByteRange::with_len(start, 64));
        Access { allocation: AllocationId(0), extent, mode: Mode::Write, basis }
    }

    fn measuring() -> Measuring {
        let mut measuring = Measuring::new(Selection::parse("glob fill*").expect("a rule"));
        for (id, name) in [(KERNEL, "_Z4fillPf"), (KernelId(4), "other")] {
            let kernel = Kernel { id, name: name.to_owned(), params: Vec::new() };
            measuring.declared(&[TraceItem::Entity(Entity::Kernel(kernel))]);
        }
        measuring
    }

    fn concluded(early: u32) -> ConcludedLaunch {
        let accesses = vec![
            access(0x100, Basis::Anchored),
            access(0x200, Basis::Anchored),
            access(MADE_UP, Basis::Inferred),
        ];
        ConcludedLaunch { accesses, early, unseen: false }
    }

    fn seen() -> MeasuredLaunch {
        MeasuredLaunch { accesses: vec![access(0x140, Basis::Measured)], ..Default::default() }
    }

    fn starts(merged: &Merged) -> (Vec<u64>, u32) {
        (merged.accesses.iter().map(|a| a.extent.hull().start).collect(), merged.early)
    }

    fn count(measuring: &Measuring, kind: MeasuredKind) -> u64 {
        measuring.coverage().iter().filter(|c| c.kind == kind).map(|c| c.count).sum()
    }

    #[test]
    fn measured_bytes_take_the_place_of_concluded_ones() {
        let mut measuring = measuring();
        let gaps = vec![Gap::pointers_in_memory("fill")];
        assert_eq!(measuring.launched(7, KERNEL, concluded(0), false, gaps), []);
        let (merged, gaps) = measuring.measured(7, seen()).expect("it is awaited");
        assert_eq!((starts(&merged), gaps), ((vec![0x140, MADE_UP], 0), vec![]));
        assert_eq!(count(&measuring, MeasuredKind::Whole), 1);
        assert_eq!(count(&measuring, MeasuredKind::FollowsPointers), 1);
        // A second list for the same launch.
        assert_eq!(measuring.measured(7, seen()), None);
        assert_eq!(measuring.end(), (vec![], vec![]));
    }

    #[test]
    fn bytes_outside_of_what_the_code_says_are_counted() {
        let mut measuring = measuring();
        let inside = ConcludedLaunch {
            accesses: vec![access(0x100, Basis::Anchored), access(0x140, Basis::Anchored)],
            ..concluded(0)
        };
        let outside =
            ConcludedLaunch { accesses: vec![access(0x100, Basis::Anchored)], ..inside.clone() };
        let gap = Gap::pointers_in_memory("fill");
        for (g, concluded, gaps, expected) in [
            (1, inside, vec![], 0),
            (2, outside.clone(), vec![gap], 0),
            (3, outside.clone(), vec![], 1),
        ] {
            measuring.launched(g, KERNEL, concluded, false, gaps);
            measuring.measured(g, seen()).expect("it is awaited");
            assert_eq!(count(&measuring, MeasuredKind::Outside), expected, "{g}");
        }
        // By words alone, until the code is known.
        measuring.launched(4, KERNEL, outside.clone(), true, vec![]);
        measuring.measured(4, seen()).expect("it is awaited");
        measuring.code_known(4, &outside, vec![]);
        assert_eq!(count(&measuring, MeasuredKind::Outside), 2);
    }

    #[test]
    fn a_launch_without_bytes_keeps_its_gaps() {
        let mut measuring = measuring();
        let gap = Gap::pointers_in_memory("fill");
        measuring.launched(7, KERNEL, concluded(0), false, vec![gap.clone()]);
        let counts = measuring.not_measured(ProcessKey(0), 7, NotMeasured::NoRoom, b"");
        assert_eq!(counts, std::slice::from_ref(&gap));
        // The next one's reason comes before the launch itself.
        measuring.not_measured(ProcessKey(0), 8, NotMeasured::TooCostly, b"");
        assert_eq!(measuring.launched(8, KERNEL, concluded(0), false, vec![gap.clone()]), [gap]);
        assert!(!measuring.is_awaited(8));
        // Nobody gives a reason for this one.
        let gap = Gap::pointers_in_memory("another");
        measuring.launched(9, KERNEL, concluded(0), false, vec![gap.clone()]);
        assert_eq!(measuring.end(), (vec![], vec![gap]));
        assert_eq!(count(&measuring, MeasuredKind::Not), 3);
        assert_eq!(count(&measuring, MeasuredKind::WhyNot), 2);
    }

    #[test]
    fn a_kernel_that_is_not_selected_is_not_awaited() {
        let mut measuring = measuring();
        let gap = Gap::pointers_in_memory("other");
        let left = measuring.launched(7, KernelId(4), concluded(0), false, vec![gap.clone()]);
        assert_eq!(left, [gap]);
        assert!(!measuring.is_awaited(7));
        assert_eq!(measuring.measured(7, seen()), None);
        assert_eq!(measuring.coverage(), []);
    }

    #[test]
    fn what_is_not_seen_stays_as_concluded_and_counts_in_part() {
        let all = vec![0x140, 0x100, 0x200, MADE_UP];
        for (measured, concluded) in [
            (MeasuredLaunch { in_part: true, ..seen() }, concluded(0)),
            (seen(), ConcludedLaunch { unseen: true, ..concluded(0) }),
        ] {
            let mut measuring = measuring();
            let gap = Gap::pointers_in_memory("fill");
            measuring.launched(7, KERNEL, concluded, false, vec![gap.clone()]);
            let (merged, gaps) = measuring.measured(7, measured).expect("it is awaited");
            assert_eq!((starts(&merged), gaps), ((all.clone(), 0), vec![gap]));
            assert_eq!(count(&measuring, MeasuredKind::InPart), 1);
        }
    }

    #[test]
    fn the_time_before_the_wait_stays_where_nobody_tells_it() {
        let merged = seen().merged(&concluded(1));
        assert_eq!((starts(&merged), merged.is_whole), ((vec![0x100, 0x140, MADE_UP], 1), false));
        let knows = MeasuredLaunch { knows_early: true, early: 1, ..seen() };
        let merged = knows.merged(&concluded(1));
        assert_eq!((starts(&merged), merged.is_whole), ((vec![0x140, MADE_UP], 1), true));
    }

    #[test]
    fn bounds_count_in_part_and_are_taken() {
        let merged = MeasuredLaunch { has_hulls: true, ..seen() }.merged(&concluded(0));
        assert_eq!((starts(&merged).0, merged.is_whole), (vec![0x140, MADE_UP], false));
    }

    /// The bytes come before the code of the kernel is read, behind it, or without it.
    #[test]
    fn late_code_and_bytes_come_in_any_order() {
        let by_words =
            ConcludedLaunch { accesses: vec![access(0, Basis::Assumed)], ..concluded(0) };
        let gap = Gap::pointers_in_memory("fill");
        let mut first = measuring();
        first.launched(7, KERNEL, by_words.clone(), true, Vec::new());
        let (merged, _) = first.measured(7, seen()).expect("it is awaited");
        assert_eq!(starts(&merged).0, [0x140]);
        let (merged, gaps) = first.code_known(7, &concluded(0), vec![gap.clone()]);
        assert_eq!(merged.map(|merged| starts(&merged).0), Some(vec![0x140, MADE_UP]));
        assert_eq!(gaps, []);

        let mut second = measuring();
        second.launched(7, KERNEL, by_words.clone(), true, Vec::new());
        assert_eq!(second.code_known(7, &concluded(0), vec![gap.clone()]), (None, vec![]));
        let (merged, gaps) = second.measured(7, seen()).expect("it is awaited");
        assert_eq!((starts(&merged).0, gaps), (vec![0x140, MADE_UP], vec![]));

        let mut never = measuring();
        never.launched(7, KERNEL, by_words, true, Vec::new());
        assert!(never.measured(7, seen()).is_some());
        assert_eq!(never.end(), (vec![], vec![]));
        for measuring in [first, second, never] {
            assert_eq!(count(&measuring, MeasuredKind::Whole), 1);
        }
    }
}
