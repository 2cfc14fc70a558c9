//! Sets of bytes: what a launch touched against what was concluded for it.

use std::ops::Range;

use streamsan_kernels::access::{
    Base, KernelAccess, Launch, Reach, Touch, Touched, Waited, instantiate,
};
use streamsan_model::{Extent, StridedPattern};

use super::memory::{PART, held_pointer};
use super::runs::{Kernel, Run, TOUCHES};

/// Parts of one pattern that are compared one by one.
const MOST_RUNS: u64 = 100_000;

/// How the conclusions for a kernel are.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Bytes that are touched and not concluded, before a wait where they are touched before it, or
    /// called exact and not touched.
    pub(crate) wrong: Option<String>,
    /// Why the sets are not the same as what is touched, if so.
    pub(crate) loose: Option<String>,
}

/// Compares all launches of a kernel.
pub(crate) fn judge(kernel: &Kernel<'_>, access: &KernelAccess) -> Judged {
    let mut judged = Judged { wrong: None, loose: None };
    if access.may_touch_anything() {
        judged.loose = Some(access.unknown.join("; "));
    }
    for run in &kernel.runs {
        let launch = Launch { grid: run.grid, block: run.block, params: &run.params };
        let touched = instantiate(access, &launch);
        let sets = run.all.0.iter().zip(&run.before_wait.0).zip(TOUCHES);
        for ((truth, early), touch) in sets {
            let concluded = Concluded::new(kernel, access, &touched, touch);
            let told = |what: &str, range: &Range<u64>| {
                let Run { grid, block, params, .. } = run;
                let params: String = params.iter().map(|byte| format!("{byte:02x}")).collect();
                format!(
                    "{} of {:x}..{:x} {what}; grid {grid:?}, block {block:?}, arguments {params}, \
                     concluded {:x?}",
                    touch.description(),
                    range.start,
                    range.end,
                    concluded.all,
                )
            };
            let missed = truth.iter().find(|range| !inside(range, &concluded.all));
            if let Some(range) = missed.filter(|_| !access.may_touch_anything()) {
                judged.wrong.get_or_insert_with(|| told("is not concluded", range));
            }
            let missed = early.iter().find(|range| !inside(range, &concluded.before_wait));
            if let Some(range) = missed.filter(|_| !access.may_touch_anything()) {
                judged.wrong.get_or_insert_with(|| told("is not concluded before the wait", range));
            }
            if !run.finished {
                continue;
            }
            if let Some(range) = concluded.exact.iter().find(|range| !inside(range, truth)) {
                judged.wrong.get_or_insert_with(|| told("is called exact and not touched", range));
            }
            if judged.loose.is_none() && concluded.all != *truth {
                judged.loose = Some(why(&concluded, touch));
            }
        }
    }
    judged
}

fn why(concluded: &Concluded, touch: Touch) -> String {
    let touch = touch.description();
    match concluded.anchored {
        true => format!("a {touch} is anchored"),
        false => format!("a {touch} is only bounded"),
    }
}

/// The conclusions for one launch and one kind of access.
#[derive(Debug, Default)]
struct Concluded {
    /// Merged.
    all: Vec<Range<u64>>,
    /// The parts that are said to be touched to the last byte.
    exact: Vec<Range<u64>>,
    /// The parts that may be touched before the wait for the prerequisite grids. Merged.
    before_wait: Vec<Range<u64>>,
    anchored: bool,
}

impl Concluded {
    fn new(kernel: &Kernel<'_>, access: &KernelAccess, touched: &[Touched], touch: Touch) -> Self {
        let mut concluded = Self::default();
        for one in touched.iter().filter(|t| t.touch == touch || t.touch == Touch::Unknown) {
            let shift = match one.base {
                Base::Pointer(_) => 0,
                Base::Global(at) => {
                    let name = &access.globals[at as usize].name;
                    let variable = kernel.variables.iter().find(|(other, _)| other == name);
                    variable.map_or(0, |&(_, address)| address)
                }
                Base::GlobalPointer(at) => {
                    let pointer = &access.global_pointers[at as usize];
                    let name = &access.globals[pointer.global as usize].name;
                    kernel.rule.held_in(name, pointer.offset).map_or(0, held_pointer)
                }
            };
            let from = concluded.all.len();
            match one.reach {
                Reach::Bytes { extent, exact } => {
                    let parts = ranges(extent).into_iter().map(|range| {
                        range.start.wrapping_add(shift)..range.end.wrapping_add(shift)
                    });
                    let parts: Vec<_> = parts.collect();
                    if exact {
                        concluded.exact.extend(parts.iter().cloned());
                    }
                    concluded.all.extend(parts);
                }
                Reach::Anchored { start } => {
                    let start = start.wrapping_add(shift);
                    concluded.anchored = true;
                    let end = start.saturating_add(PART / 2);
                    concluded.all.push(start.saturating_sub(PART / 2)..end);
                }
            }
            if one.waited != Waited::Yes {
                concluded.before_wait.extend_from_slice(&concluded.all[from..]);
            }
        }
        concluded.all = merged(concluded.all);
        concluded.before_wait = merged(concluded.before_wait);
        concluded
    }
}

pub(super) fn ranges(extent: Extent) -> Vec<Range<u64>> {
    match extent {
        Extent::Range(range) => std::iter::once(range.start..range.end).collect(),
        // More than any launch here touches in its time: only where they begin and end.
        Extent::Strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
            if rows.saturating_mul(slices) > MOST_RUNS =>
        {
            let last = start + (slices - 1) * slice_pitch + (rows - 1) * pitch;
            std::iter::once(start..last + width).collect()
        }
        Extent::Strided(pattern) => pattern.runs().map(|run| run.start..run.end).collect(),
    }
}

/// In order, none next to another.
pub(super) fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

pub(super) fn inside(inner: &Range<u64>, outer: &[Range<u64>]) -> bool {
    outer.iter().any(|o| o.start <= inner.start && inner.end <= o.end)
}
