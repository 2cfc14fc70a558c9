//! The shown rows, and their groups.

use crate::names;
use crate::traces::{LaneRef, Opened, Traces};
use std::collections::BTreeSet;
use streamsan_model::{ContextId, Entities, KernelId, Lane, LaneId, OpFilter, Overview, ProcessId};

/// A line of the timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The headline of a trace among several; not selectable.
    Trace(usize),
    /// The headline of a process of a trace; not selectable.
    Process(usize, ProcessId),
    /// The headline of a context of a trace; not selectable.
    Context(usize, ContextId),
    /// The ranges above the row of a host thread, at a depth from 0; not selectable.
    Ranges(usize, u32),
    /// A row: its place among the rows of all traces.
    Lane(usize),
}

impl Row {
    /// The row's place in the list of lanes, if it is one.
    pub fn lane(self) -> Option<usize> {
        match self {
            Self::Lane(lane) => Some(lane),
            _ => None,
        }
    }

    /// The row whose cells or ranges it shows.
    pub(crate) fn shown_lane(self) -> Option<usize> {
        match self {
            Self::Lane(lane) | Self::Ranges(lane, _) => Some(lane),
            Self::Trace(_) | Self::Process(..) | Self::Context(..) => None,
        }
    }
}

/// The shown rows.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    /// The filter as it was typed, divided at the commas.
    pub parts: Vec<String>,
    /// Words, one of which a row's name must contain; all rows where there are none.
    pub words: Vec<String>,
    /// Which operations are looked for, of each trace.
    pub operations: Vec<OpFilter>,
    /// The rows that hold such operations, once it is known which do.
    pub hit: Option<BTreeSet<LaneRef>>,
    /// Whether streams are shown that hold nothing but their creation.
    pub idle: bool,
    /// Rows at the top, in order.
    pub pinned: Vec<usize>,
}

impl RowFilter {
    /// Takes the parts of an input: `decode, host` are words of rows' names; `kernel:Mul`,
    /// `file:train.py`, `function:step`, `allocation:kv_cache`, `range:forward` and `stream:copy` say
    /// what is meant.
    ///
    /// # Errors
    ///
    /// A part that says something else, in words.
    pub fn set(&mut self, text: &str, entities: &[&Entities]) -> Result<(), String> {
        let mut new = Self { idle: self.idle, pinned: self.pinned.clone(), ..Self::default() };
        new.operations = vec![OpFilter::default(); entities.len()];
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (subject, word) = match part.split_once(':') {
                // `at::native` is no subject.
                Some((subject, word)) if !word.starts_with(':') => (subject.trim(), word.trim()),
                _ => ("stream", part),
            };
            if word.is_empty() {
                return Err(format!("{subject}: what of it?"));
            }
            if matches!(subject, "stream" | "row" | "thread") {
                new.words.push(word.to_lowercase());
            }
            for (operations, entities) in new.operations.iter_mut().zip(entities) {
                match subject {
                    "stream" | "row" | "thread" => {}
                    "kernel" => {
                        operations.kernels.get_or_insert_default().extend(kernels(word, entities));
                    }
                    "file" => operations.files.push(word.to_owned()),
                    "function" | "fn" => operations.functions.push(word.to_owned()),
                    "range" => operations.ranges.push(word.to_owned()),
                    "allocation" | "alloc" => operations.allocations.push(word.to_owned()),
                    _ => {
                        return Err(format!(
                            "{subject:?} is none of stream, kernel, file, function, allocation, \
                             range"
                        ));
                    }
                }
            }
            new.parts.push(part.to_owned());
        }
        *self = new;
        Ok(())
    }

    /// Whether nothing is filtered.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether operations are looked for.
    pub fn has_operations(&self) -> bool {
        self.operations.iter().any(|operations| !operations.is_empty())
    }

    /// Shows all rows again.
    pub fn clear(&mut self) {
        *self =
            Self { idle: self.idle, pinned: std::mem::take(&mut self.pinned), ..Self::default() };
    }

    fn shows(&self, open: &Opened, lane: LaneRef, row: &Lane) -> bool {
        if self.hit.as_ref().is_some_and(|hit| !hit.contains(&lane)) {
            return false;
        }
        if is_idle(&open.overview, row) && !self.idle && self.is_empty() {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let about = names::about_stream(&open.overview.entities, row).join(" ");
        let name = format!("{} {about}", open.lane(row.id)).to_lowercase();
        self.words.iter().any(|word| name.contains(word))
    }

    /// Streams that are hidden because nothing happens in them.
    pub fn hidden_idle(&self, open: &Traces) -> usize {
        if self.idle || !self.is_empty() {
            return 0;
        }
        let of = |overview: &Overview| {
            overview.lanes.iter().filter(|row| is_idle(overview, row)).count()
        };
        open.iter().map(|opened| of(&opened.overview)).sum()
    }

    /// The rows, grouped by trace, process, then context, host threads first. Headlines stand only
    /// where there are several of their kind. Above a host thread's row stand its ranges, at most so
    /// many depths.
    pub fn rows(&self, open: &Traces, depths: u32) -> Vec<Row> {
        let mut rows = Vec::new();
        for trace in 0..open.iter().len() {
            let of_trace = self.rows_of(open, trace, depths);
            if open.are_several() && !of_trace.is_empty() {
                rows.push(Row::Trace(trace));
            }
            rows.extend(of_trace);
        }
        rows
    }

    fn rows_of(&self, open: &Traces, trace: usize, depths: u32) -> Vec<Row> {
        let first = open.first_lane(trace);
        let open = open.of(trace);
        let overview = &open.overview;
        let context = |lane: usize| overview.lanes[lane].stream.as_ref().map(|s| s.context);
        // A stream of several processes belongs to the process of its context.
        let process = |lane: usize| {
            let of = context(lane).and_then(|id| overview.entities.context(id));
            of.map_or(overview.lanes[lane].process, |context| context.process)
        };
        let shows = |lane: usize| {
            let row = &overview.lanes[lane];
            self.shows(open, LaneRef { trace, id: row.id }, row)
        };
        let mut shown: Vec<usize> = (0..overview.lanes.len()).filter(|&lane| shows(lane)).collect();
        if shown.is_empty() && self.is_empty() {
            // A trace of idle streams only is not an empty one.
            shown = (0..overview.lanes.len()).collect();
        }
        shown.sort_by_key(|&lane| (process(lane), context(lane), overview.lanes[lane].id));
        let processes: BTreeSet<_> = shown.iter().map(|&lane| process(lane)).collect();
        let contexts: BTreeSet<_> = shown.iter().filter_map(|&lane| context(lane)).collect();
        let mut rows = Vec::new();
        let mut last = (None, None);
        for lane in shown {
            if processes.len() > 1 && last.0 != Some(process(lane)) {
                rows.push(Row::Process(trace, process(lane)));
            }
            if let Some(context) = context(lane)
                && contexts.len() > 1
                && last.1 != Some(context)
            {
                rows.push(Row::Context(trace, context));
            }
            last = (Some(process(lane)), context(lane));
            let depths = 0..overview.lanes[lane].ranges.min(depths);
            rows.extend(depths.map(|depth| Row::Ranges(first + lane, depth)));
            rows.push(Row::Lane(first + lane));
        }
        rows
    }
}

/// Whether nothing happens in a stream but its creation.
fn is_idle(overview: &Overview, row: &Lane) -> bool {
    let LaneId::Stream(id) = row.id else { return false };
    row.operations <= u64::from(overview.entities.creation(id).is_some())
}

/// Kernels whose name, in any of its forms, contains a word in any case of letters.
fn kernels(word: &str, entities: &Entities) -> Vec<KernelId> {
    let word = word.to_lowercase();
    let named = |name: String| name.to_lowercase().contains(&word);
    let found = entities.kernels().filter(|kernel| {
        let forms = [names::label, names::full, str::to_owned];
        forms.iter().any(|form| named(form(&kernel.name)))
    });
    found.map(|kernel| kernel.id).collect()
}

#[cfg(test)]
mod tests {
    use super::RowFilter;
    use streamsan_model::{Entities, Entity, Kernel, KernelId};

    #[test]
    fn filters_say_what_they_mean() {
        let mut entities = Entities::default();
        for (id, name) in [(0, "_Z5scalePfi"), (1, "_ZN2at6native13reduce_kernelILi512ELi1EEEvT_")]
        {
            let kernel = Kernel { id: KernelId(id), name: name.to_owned(), params: vec![] };
            entities.declare(Entity::Kernel(kernel));
        }
        let mut filter = RowFilter::default();
        let entities = &[&entities];
        filter.set("Decode, kernel:NATIVE, file:train.py, alloc:kv", entities).expect("a filter");
        assert_eq!(filter.words, ["decode"]);
        assert_eq!(filter.operations[0].kernels, Some(vec![KernelId(1)]));
        assert_eq!(filter.operations[0].files, ["train.py"]);
        assert_eq!(filter.operations[0].allocations, ["kv"]);
        filter.set("range:forward", entities).expect("a filter");
        assert_eq!(filter.operations[0].ranges, ["forward"]);
        filter.set("at::native", entities).expect("a word");
        assert_eq!(filter.words, ["at::native"]);
        assert!(!filter.has_operations());
        filter.set("kernel:none", entities).expect("a filter");
        assert_eq!(filter.operations[0].kernels, Some(vec![]));
        let before = filter.parts.clone();
        for wrong in ["colour:red", "kernel:"] {
            assert!(filter.set(wrong, entities).is_err(), "{wrong}");
            assert_eq!(filter.parts, before);
        }
    }
}
