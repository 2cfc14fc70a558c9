//! The traces that are shown, one or several beside each other.
//!
//! Invariants: rows and findings are counted through all traces, in the order of the traces; those of
//! a single trace keep their places in it. Nothing is concluded between traces: an id, an operation
//! and a finding belong to one trace.

use crate::query::Places;
use streamsan_model::{
    Axis, Finding, Lane, LaneId, OpSeq, Overview, Place, Span, StreamId, StreamNames,
};
use streamsan_names::printable;

/// A row of one of the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneRef {
    /// The trace, a place in the list of traces.
    pub trace: usize,
    /// The row.
    pub id: LaneId,
}

/// An operation of one of the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpRef {
    /// The trace, a place in the list of traces.
    pub trace: usize,
    /// The operation.
    pub g: OpSeq,
}

/// Where an operation of one of the traces is drawn. The positions are those of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The trace, a place in the list of traces.
    pub trace: usize,
    /// The place in it.
    pub place: Place,
}

impl Spot {
    /// Its row.
    pub fn lane(&self) -> LaneRef {
        LaneRef { trace: self.trace, id: self.place.lane }
    }
}

/// The data that is known once a trace is open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The overview of the trace.
    pub overview: Overview,
    /// The names of its streams.
    streams: StreamNames,
    /// All findings, by the later operation.
    pub findings: Vec<Finding>,
    /// Where their sides are drawn.
    pub places: Places,
}

impl Opened {
    pub(crate) fn new(overview: Overview, findings: Vec<Finding>, places: Places) -> Self {
        let streams = StreamNames::of(&overview.entities, printable);
        Self { overview, streams, findings, places }
    }

    /// Takes a newer overview, answers the old one.
    pub(crate) fn replace_overview(&mut self, overview: Overview) -> Overview {
        self.streams = StreamNames::of(&overview.entities, printable);
        std::mem::replace(&mut self.overview, overview)
    }

    /// The name of a stream, as the report has it.
    pub(crate) fn stream(&self, id: StreamId) -> String {
        self.streams.name(id, &self.overview.entities)
    }

    /// The same as the object of a sentence: `the default stream`.
    pub(crate) fn the_stream(&self, id: StreamId) -> String {
        let name = self.stream(id);
        if name.starts_with("stream ") { name } else { format!("the {name}") }
    }

    /// The stream of an access or an operation, or the host.
    pub(crate) fn side(&self, id: Option<StreamId>) -> String {
        id.map_or_else(|| "host".to_owned(), |id| self.stream(id))
    }

    /// The name of a row.
    pub(crate) fn lane(&self, id: LaneId) -> String {
        match id {
            LaneId::Stream(id) => self.stream(id),
            LaneId::Host(id) => match self.overview.entities.thread(id) {
                Some(thread) => format!("thread {}", thread.tid),
                None => format!("thread {id}"),
            },
        }
    }

    /// The positions of an axis that hold operations.
    pub(crate) fn span(&self, axis: Axis) -> Option<Span> {
        self.overview.axes.iter().find(|(other, _)| *other == axis).map(|&(_, span)| span)
    }

    /// Number of streams.
    pub(crate) fn streams(&self) -> u64 {
        self.overview.lanes.iter().filter(|lane| lane.stream.is_some()).count() as u64
    }
}

/// The traces once they are open.
#[derive(Clone, Debug)]
pub struct Traces(Vec<Opened>);

impl Traces {
    /// At least one trace.
    pub(crate) fn new(traces: Vec<Opened>) -> Self {
        Self(traces)
    }

    /// A trace by its place in the list.
    ///
    /// # Panics
    ///
    /// There is no such trace.
    pub fn of(&self, trace: usize) -> &Opened {
        &self.0[trace]
    }

    pub(crate) fn of_mut(&mut self, trace: usize) -> &mut Opened {
        &mut self.0[trace]
    }

    /// All traces.
    pub fn iter(&self) -> std::slice::Iter<'_, Opened> {
        self.0.iter()
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// A place in a list of all traces together, as the trace and the place in its own list.
    fn divide(&self, mut place: usize, length: fn(&Opened) -> usize) -> Option<(usize, usize)> {
        for (trace, opened) in self.0.iter().enumerate() {
            match place.checked_sub(length(opened)) {
                None => return Some((trace, place)),
                Some(rest) => place = rest,
            }
        }
        None
    }

    /// The place of the first row of a trace among all rows.
    pub(crate) fn first_lane(&self, trace: usize) -> usize {
        self.0[..trace].iter().map(|opened| opened.overview.lanes.len()).sum()
    }

    /// A row by its place among all rows, and its trace.
    ///
    /// # Panics
    ///
    /// There is no such row.
    pub fn lane(&self, place: usize) -> (usize, &Lane) {
        let found = self.divide(place, |opened| opened.overview.lanes.len());
        let (trace, lane) = found.expect("rows are those of the traces");
        (trace, &self.0[trace].overview.lanes[lane])
    }

    /// Which row it is.
    ///
    /// # Panics
    ///
    /// There is no such row.
    pub fn lane_ref(&self, place: usize) -> LaneRef {
        let (trace, lane) = self.lane(place);
        LaneRef { trace, id: lane.id }
    }

    /// The place of a row among all rows.
    pub fn lane_place(&self, lane: LaneRef) -> Option<usize> {
        let lanes = &self.0.get(lane.trace)?.overview.lanes;
        let place = lanes.binary_search_by_key(&lane.id, |lane| lane.id).ok()?;
        Some(self.first_lane(lane.trace) + place)
    }

    /// A finding by its place among all findings, and its trace.
    pub fn finding(&self, place: usize) -> Option<(usize, &Finding)> {
        let (trace, finding) = self.divide(place, |opened| opened.findings.len())?;
        Some((trace, &self.0[trace].findings[finding]))
    }

    /// All findings with their traces.
    pub fn findings(&self) -> impl Iterator<Item = (usize, &Finding)> {
        let all = self.0.iter().enumerate();
        all.flat_map(|(trace, opened)| opened.findings.iter().map(move |finding| (trace, finding)))
    }

    /// Where a side of a finding is drawn.
    pub(crate) fn place_of_side(&self, op: OpRef) -> Option<Spot> {
        let places = &self.0.get(op.trace)?.places;
        let found = places.binary_search_by_key(&op.g, |(g, _)| *g).ok()?;
        Some(Spot { trace: op.trace, place: places[found].1 })
    }
}
