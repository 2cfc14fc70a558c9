//! A running recording. Invariant: new data comes beside the present data; selections, marks and
//! the visible part do not change.

use super::{Pane, Row, State, Viewport};
use crate::live::{Phase, Standing};
use crate::names;
use crate::query::{Fresh, Places, Request, Slot, Target};
use crate::traces::Opened;
use streamsan_model::{AllocationId, Finding, Fingerprint, LaneId, OpSeq, Overview};

/// Looks between two at what costs more the longer the trace is: the list of allocations.
const SELDOM: u32 = 12;

/// The state of a running recording.
#[derive(Clone, Debug, Default)]
pub struct LiveRun {
    /// Whether the window follows the end of the trace.
    pub follow: bool,
    /// How far the run is.
    pub phase: Phase,
    /// The last lines that the program has printed.
    pub output: Vec<String>,
    printed: u64,
    /// Whether the trace is finished, and all of it is known.
    ended: bool,
    looks: u32,
}

/// The identity of a finding, wherever it stands in the list.
type FindingKey = (Fingerprint, OpSeq, OpSeq, AllocationId);

/// Finds a finding by its former key. At the end of a run the call sites become known, which are
/// part of the id, and another occurrence of the mistake may represent it.
fn same(findings: &[Finding], known: FindingKey) -> Option<usize> {
    let (id, first, second, allocation) = known;
    let find = |is: &dyn Fn(FindingKey) -> bool| findings.iter().position(|f| is(key(f)));
    find(&|key| key == known)
        .or_else(|| find(&|(_, a, b, on)| (a, b, on) == (first, second, allocation)))
        .or_else(|| find(&|(_, a, b, _)| (a, b) == (first, second)))
        .or_else(|| {
            let same = findings.iter().enumerate().filter(|(_, finding)| finding.fingerprint == id);
            same.min_by_key(|(_, f)| f.second.op.0.abs_diff(second.0)).map(|(place, _)| place)
        })
}

fn key(finding: &Finding) -> FindingKey {
    (finding.fingerprint, finding.first.op, finding.second.op, finding.allocation)
}

impl State {
    /// The trace is of a run that goes on.
    pub fn begin_live(&mut self) {
        self.live = Some(LiveRun { follow: true, ..LiveRun::default() });
    }

    /// Whether the program runs.
    pub fn is_running(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.phase == Phase::Running)
    }

    /// Whether the run is over, or was, and no driver call was seen.
    pub(crate) fn has_no_cuda(&self) -> bool {
        let is_empty =
            |trace: &Opened| trace.overview.calls == 0 && trace.overview.incomplete.is_empty();
        let none = self.open.as_ref().is_some_and(|open| open.iter().all(is_empty));
        none && !self.is_running()
    }

    /// A moment has passed: takes how the run stands, and asks for what has come.
    pub fn look(&mut self, standing: Standing, output: impl FnOnce() -> Vec<String>) {
        let waiting = self.is_waiting(Slot::Refresh) || self.open.is_none();
        let Some(live) = &mut self.live else { return };
        live.looks = live.looks.wrapping_add(1);
        if live.printed != standing.printed {
            live.printed = standing.printed;
            live.output = output();
        }
        self.quit |= standing.leave;
        let news = live.phase != standing.phase;
        live.phase = standing.phase;
        if !live.ended && !waiting {
            self.ask(Request::Refresh);
        }
        if news && let Some(Phase::Ended(words)) = self.live.as_ref().map(|live| &live.phase) {
            let text = format!("the program has ended: {words}");
            self.tell(text);
        }
    }

    /// Takes in the news since the last refresh.
    pub(super) fn refreshed(&mut self, fresh: Fresh) {
        if fresh.more {
            self.ask(Request::Refresh);
        }
        if let Some(overview) = fresh.overview {
            self.grow(overview);
            self.wanted_strips = None;
            self.wanted_minimap = None;
        }
        if let Some((findings, places)) = fresh.findings {
            self.take_findings(findings, places);
        }
        let Some(live) = &mut self.live else { return };
        let seldom = fresh.ended || live.looks.is_multiple_of(SELDOM);
        live.ended |= fresh.ended;
        if !fresh.changed {
            return;
        }
        // Its edges may have come since, and at the end its depth.
        if let Some(op) = self.selected_op()
            && !self.is_waiting(Slot::Select)
            && (self.pane == Pane::Details || fresh.ended)
        {
            self.select(Target::Op(op));
            self.keep_view = true;
            self.keep_row = true;
        }
        if seldom && self.filter.has_operations() && !self.is_waiting(Slot::Hits) {
            self.ask(Request::Hits(self.filter.operations.clone()));
        }
        match self.pane {
            Pane::Memory if seldom && !self.is_waiting(Slot::Allocations) => {
                self.ask(Request::Allocations(0));
            }
            Pane::Bytes if seldom && !self.is_waiting(Slot::Footprint) => self.footprint.forget(),
            Pane::Statistics if !self.is_waiting(Slot::Calls) => self.ask(Request::Calls(0)),
            _ => {}
        }
    }

    /// More of the same trace: rows may have come between others.
    fn grow(&mut self, overview: Overview) {
        // A run that goes on is the only trace.
        let Some(open) = self.open.as_mut().map(|open| open.of_mut(0)) else { return };
        let old = open.replace_overview(overview);
        let id = |lane: usize| -> LaneId { old.lanes[lane].id };
        let lanes = &open.overview.lanes;
        let place = |lane: usize| lanes.binary_search_by_key(&id(lane), |lane| lane.id).ok();
        self.rows = self
            .rows
            .iter()
            .map(|&row| match row {
                // A row never goes; if it did, another one would be selected.
                Row::Lane(lane) => Row::Lane(place(lane).unwrap_or(0)),
                Row::Ranges(lane, depth) => Row::Ranges(place(lane).unwrap_or(0), depth),
                headline => headline,
            })
            .collect();
        self.filter.pinned = self.filter.pinned.iter().filter_map(|&lane| place(lane)).collect();
        self.guests = self.guests.iter().filter_map(|&lane| place(lane)).collect();
        let first = old.axes.is_empty();
        let axes = open.overview.axes.clone();
        let columns = self.areas().columns();
        let follow = self.live.as_ref().is_some_and(|live| live.follow);
        for (axis, span) in axes {
            match self.views.get_mut(&axis) {
                Some(view) => view.grow(span, follow),
                None => drop(self.views.insert(axis, Viewport::whole(axis, span, columns))),
            }
            self.axis.get_or_insert(axis);
        }
        let (scroll, screen_top) = (self.scroll, self.rows.get(self.scroll).copied());
        self.update_rows();
        // The rows that the user looks at stay where they are, when rows come above them.
        if let Some(top) = screen_top.and_then(|top| self.rows.iter().position(|&row| row == top))
            && scroll > 0
        {
            self.scroll = top;
            self.scroll_to_cursor();
        }
        if first && self.axis.is_some() {
            // Nothing was on the screen so far; the message that the run is over stays longer.
            if !self.live.as_ref().is_some_and(|live| matches!(live.phase, Phase::Ended(_))) {
                self.message = None;
            }
            self.row_end(true);
            self.keep_view = true;
        }
    }

    /// The findings as they are now.
    fn take_findings(&mut self, findings: Vec<Finding>, places: Places) {
        let Some(open) = self.open.as_mut().map(|open| open.of_mut(0)) else { return };
        let known = |place: usize| open.findings.get(place).map(key);
        let selected = self.list.shown.get(self.list.cursor).and_then(|&place| known(place));
        let current = self.finding.and_then(known);
        let explained = self.explanation.as_ref().and_then(|(place, _)| known(*place));
        let wanted = self.wanted_explanation.and_then(known);
        let before = open.findings.len();
        (open.findings, open.places) = (findings, places);
        let find = |open: &Opened, wanted: Option<FindingKey>| {
            wanted.and_then(|wanted| open.findings.iter().position(|f| key(f) == wanted))
        };
        self.finding = current.and_then(|current| same(&open.findings, current));
        let is_gone = current.is_some() && self.finding.is_none();
        self.wanted_explanation = find(open, wanted);
        let explained = find(open, explained);
        self.explanation = self.explanation.take().and_then(|(_, text)| Some((explained?, text)));
        let selected = selected.and_then(|selected| same(&open.findings, selected));
        let count = open.findings.len();
        self.find_race_places();
        self.update_list();
        let line = selected.and_then(|s| self.list.shown.iter().position(|&place| place == s));
        self.list.cursor = line.unwrap_or(self.list.cursor);
        if count > before && self.message.is_none() {
            let newest = self.open.as_ref().and_then(|open| open.of(0).findings.last());
            let found = names::races(self.list.tally);
            let class = newest.map_or("", |finding| finding.class.description());
            let text = format!("{found} so far, the latest {class}: r goes from one to the next");
            self.tell(text);
        }
        if is_gone {
            self.tell("the race that was selected is none any more, by all that is known now");
        }
    }

    /// Begins to follow the end of the trace, or stops.
    pub(super) fn toggle_follow(&mut self) {
        let Some(live) = &mut self.live else {
            return self.tell("the trace is finished: nothing comes any more");
        };
        live.follow = !live.follow;
        if live.follow {
            self.views.values_mut().for_each(Viewport::to_end);
            self.tell("following the end of the trace");
        } else {
            self.tell("no longer following the end of the trace");
        }
    }

    /// Moving away from the end stops following.
    pub(super) fn notice_departure(&mut self) {
        let away = self.view().is_some_and(|view| !view.shows_end());
        if let Some(live) = self.live.as_mut().filter(|live| live.follow && away) {
            live.follow = false;
            if self.message.is_none() {
                self.tell("no longer following: F goes back to the end");
            }
        }
    }
}
