//! Answers.

use super::{Message, Pane, State, Strips, Viewport};
use crate::names;
use crate::query::{Answer, Numbered, Request, Target};
use crate::traces::{LaneRef, OpRef, Opened, Spot, Traces};
use std::collections::{HashMap, HashSet};
use streamsan_model::{Axis, Cell, Detail, Grid, Strip, Verdict};

impl State {
    /// An answer; one to a question that was asked anew since is dropped.
    pub fn receive(&mut self, answer: Numbered<Answer>) {
        if self.asked[answer.slot as usize].0 != answer.number {
            return;
        }
        self.asked[answer.slot as usize].1 = false;
        match answer.value {
            Answer::Opened(opened) => self.opened(opened),
            Answer::Selected(Some((trace, detail))) => self.selected(trace, detail),
            Answer::Selected(None) => self.not_selected(),
            Answer::Strips(grid, strips) => self.take_strips(grid, strips),
            Answer::Minimap(axis, cells) => self.take_minimap(axis, cells),
            Answer::Explained(text) => {
                self.explanation = self.wanted_explanation.map(|place| (place, text));
            }
            Answer::History(trace, Some(history)) => {
                self.message = None;
                self.memory.history = Some(history);
                self.memory.history_of = trace;
                self.memory.use_cursor = 0;
                self.show_pane(Pane::Memory);
            }
            Answer::History(_, None) => self.tell("the trace does not hold the allocation"),
            Answer::Allocations(trace, allocations) => self.memory.take(trace, allocations),
            Answer::Calls(trace, calls) => self.calls = Some((trace, calls)),
            Answer::Footprint(trace, by, footprint) => self.footprint.take(trace, by, footprint),
            Answer::Hits(hits) => self.take_hits(hits),
            Answer::CallNumber(op, number) => {
                if let Some(side) = &mut self.side {
                    side.call = Some((op, number));
                }
            }
            Answer::Refreshed(fresh) => self.refreshed(*fresh),
            Answer::Broken => self.quit = true,
            Answer::Failed(text) => self.message = Some(Message { text, error: true }),
        }
        self.ask_for_screen();
    }

    /// Takes cells into the columns of the screen.
    fn take_strips(&mut self, grid: Grid, traces: Vec<(usize, u32, Vec<Strip>)>) {
        let (mut cells, mut ranges) = (HashMap::new(), HashMap::new());
        for (trace, before, strips) in traces {
            for mut strip in strips {
                for cell in &mut strip.cells {
                    cell.column += before;
                    if let Some(name) = &mut cell.name {
                        let short = self.short_names.entry(name.clone());
                        *name = short.or_insert_with_key(|name| names::label(name).into()).clone();
                    }
                }
                for span in strip.ranges.iter_mut().flatten() {
                    span.start += before;
                    span.end += before;
                }
                let lane = LaneRef { trace, id: strip.lane };
                cells.insert(lane, strip.cells);
                ranges.insert(lane, strip.ranges);
            }
        }
        self.strips = Strips { grid: Some(grid), cells, ranges };
    }

    /// Adds up the columns of all traces.
    fn take_minimap(&mut self, axis: Axis, mut traces: Vec<Vec<Cell>>) {
        let columns = self.wanted_minimap.map_or(0, |(_, columns)| columns);
        let cells = match (&self.open, traces.as_mut_slice()) {
            (_, [cells]) if self.alignment.is_plain() => std::mem::take(cells),
            (Some(open), _) => self.alignment.minimap(open, axis, columns, traces),
            (None, _) => Vec::new(),
        };
        self.minimap = Some((axis, columns, cells));
    }

    fn opened(&mut self, opened: Vec<Opened>) {
        let columns = self.areas().columns();
        let open = Traces::new(opened);
        for axis in Axis::ALL {
            if let Some(span) = self.alignment.span(&open, axis) {
                self.views.insert(axis, Viewport::whole(axis, span, columns));
            }
        }
        let axes = self.axes();
        // Of several traces, only the clock says where they lie.
        let clock = axes.iter().find(|axis| open.are_several() && **axis == Axis::Time);
        self.axis = clock.or(axes.first()).copied();
        if open.are_several() {
            let traces = names::plural(self.labels.len() as u64, "trace");
            let text = format!("{traces}, aligned {}; {{ and }} shift one", self.clock);
            self.tell(text);
        }
        self.open = Some(open);
        self.find_race_places();
        self.update_rows();
        self.update_list();
        if self.axis.is_none() {
            let goes_on = self.live.is_some();
            return self.tell(if goes_on {
                "no operations yet"
            } else if self.has_no_cuda() {
                Verdict::NO_CUDA_MEANS
            } else {
                "the trace holds no operations"
            });
        }
        if self.list.shown.is_empty() {
            return self.row_end(false);
        }
        // The whole trace is shown, with the first race's operation selected.
        let wanted = self.start_race.take().and_then(|id| {
            let mut findings = self.open.as_ref()?.findings();
            findings.position(|(_, finding)| finding.fingerprint.to_string() == id)
        });
        match wanted {
            Some(place) => self.go_to_finding(place),
            None => {
                let views = self.views.clone();
                self.go_to_finding(0);
                self.guests.clear();
                (self.finding, self.views, self.keep_view) = (None, views, true);
            }
        }
    }

    pub(super) fn find_race_places(&mut self) {
        let sides = |open: &Traces| -> Vec<OpRef> {
            let sides = open
                .findings()
                .flat_map(|(trace, f)| [f.first.op, f.second.op].map(|g| OpRef { trace, g }));
            sides.collect()
        };
        let mut sides = self.open.as_ref().map_or_else(Vec::new, sides);
        sides.sort_unstable();
        sides.dedup();
        self.race_places = sides.into_iter().filter_map(|op| self.place_of(op)).collect();
        self.find_accepted_places();
    }

    /// To be asked when the list is made anew, which judges the findings.
    pub(super) fn find_accepted_places(&mut self) {
        let Some(open) = &self.open else { return };
        let judged = open.findings().zip(self.list.upstream.iter().copied());
        let sides = judged.flat_map(|((trace, f), is_known)| {
            [f.first.op, f.second.op].map(|g| (OpRef { trace, g }, is_known))
        });
        let (known, counting): (Vec<_>, Vec<_>) = sides.partition(|(_, is_known)| *is_known);
        let counting: HashSet<OpRef> = counting.into_iter().map(|(op, _)| op).collect();
        let mut known: Vec<OpRef> = known.into_iter().map(|(op, _)| op).collect();
        known.retain(|op| !counting.contains(op));
        known.sort_unstable();
        known.dedup();
        self.accepted_places = known.into_iter().filter_map(|op| self.place_of(op)).collect();
    }

    fn selected(&mut self, trace: usize, detail: Box<Detail>) {
        self.steps = None;
        self.was_found = true;
        let spot = Spot { trace, place: detail.place };
        if !std::mem::take(&mut self.keep_row) {
            self.show_lane(spot.lane());
        }
        let keep = std::mem::take(&mut self.keep_view);
        let at = self.axis.filter(|_| !keep).and_then(|axis| self.position_on(axis, &spot));
        if let (Some(at), Some(view)) = (at, self.view_mut()) {
            view.reveal(at);
        }
        let g = detail.operation.g;
        let another = self.selected_op() != Some(OpRef { trace, g });
        if self.pane == Pane::Details && another {
            self.pane_scroll = 0;
        }
        (self.selection, self.selected_trace) = (Some(detail), trace);
        if self.side.as_ref().is_some_and(|side| side.has_focus) {
            self.ask(Request::CallNumber(OpRef { trace, g }));
        }
        if std::mem::take(&mut self.edit_selected) {
            self.edit();
        }
        self.notice_departure();
    }

    fn not_selected(&mut self) {
        let steps = self.steps.take();
        self.was_found = false;
        match (steps, &self.last_target) {
            (Some((.., steps)), _) => {
                self.tell(if steps < 0 {
                    "first operation of the row"
                } else {
                    "last operation of the row"
                });
            }
            (None, Some(Target::Match { text, .. })) => {
                let text = format!("nothing matches {text:?}");
                self.tell(text);
            }
            (None, Some(Target::Op(op))) => {
                let text = format!("the trace holds no operation #{}", op.g);
                self.tell(text);
            }
            (None, Some(Target::Call { .. })) => self.tell("no such call here"),
            _ => self.tell("the row holds no operation"),
        }
    }

    /// Opens the trace at a race, by its id in reports.
    pub fn start_at(&mut self, id: String) {
        self.start_race = Some(id);
    }
}
