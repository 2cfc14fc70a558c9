//! The axes of level-of-detail data that is made from passing batches. The ends of the axes are
//! known last, and a depth is known only once no edge of its operation can come any more.

use super::build::SAMPLE;
use super::depth::Depths;
use super::depth_log::DepthLog;
use super::pyramid::{Levels, LodRow, Overall, Point, Pyramid};
use std::collections::VecDeque;
use streamsan_model::Axis;

/// Operations that may wait for their edges: a call that blocks holds back those behind it.
const MOST_WAITING: usize = 1 << 18;

/// One axis in the making.
#[derive(Debug)]
pub(super) struct FedAxis {
    axis: Axis,
    /// The first operations, held back.
    sample: Vec<Point>,
    pyramid: Option<Pyramid>,
    overall: Overall,
    /// The highest shift of a row that was given out.
    given: u8,
}

impl FedAxis {
    pub(super) fn new(axis: Axis) -> Self {
        Self { axis, sample: Vec::new(), pyramid: None, overall: Overall::default(), given: 0 }
    }

    pub(super) fn add(&mut self, point: Point, rows: &mut Vec<LodRow>) {
        self.overall.add(point.at, point.g, point.group, 0);
        if let Some(pyramid) = &mut self.pyramid {
            return pyramid.add(point, 0, rows);
        }
        self.sample.push(point);
        if self.sample.len() == SAMPLE {
            self.begin(rows);
        }
    }

    fn begin(&mut self, rows: &mut Vec<LodRow>) {
        let by: Vec<_> = self.sample.iter().map(|point| (point.lane, point.at)).collect();
        let mut pyramid = Pyramid::new(Levels::unbounded(self.axis, &by));
        std::mem::take(&mut self.sample).into_iter().for_each(|p| pyramid.add(p, 0, rows));
        self.pyramid = Some(pyramid);
    }

    /// Whether a row of this axis belongs to a level however the trace goes on, if it goes on behind
    /// `end`.
    pub(super) fn gives(&mut self, row: &LodRow, end: u64) -> bool {
        let levels = self.pyramid.as_ref().map(|pyramid| pyramid.levels().up_to(end));
        let gives = levels.is_some_and(|levels| row.shift <= levels.top);
        if gives {
            self.given = self.given.max(row.shift);
        }
        gives
    }

    /// Gives out the rest, now that the end is known. Answers the levels, and whether rows of coarser
    /// ones were given out: the axis has become shorter.
    pub(super) fn finish(&mut self, end: u64, rows: &mut Vec<LodRow>) -> Option<(Levels, bool)> {
        if self.pyramid.is_none() {
            self.begin(rows);
        }
        let pyramid = self.pyramid.take()?;
        let levels = pyramid.levels().up_to(end);
        pyramid.finish_at(end, rows);
        rows.retain(|row| row.axis != self.axis as i64 || row.shift <= levels.top);
        Some((levels, self.given > levels.top))
    }

    pub(super) fn overall(&mut self) -> &mut Overall {
        &mut self.overall
    }
}

/// An operation whose depth is not known yet.
#[derive(Debug)]
struct Waiting {
    point: Point,
    host: usize,
    /// The batch with which it was whole; `None` while the call runs.
    whole: Option<u64>,
    /// Where documented edges begin that end at it, and their kinds.
    edges: Vec<(u64, i64)>,
}

/// The logical axis in the making. The edges that end at an operation come right behind it, or, if it
/// was stored while the call ran, behind its return; with the next batch at the latest.
#[derive(Debug)]
pub(super) struct FedDepths {
    pub(super) axis: FedAxis,
    depths: Depths,
    log: DepthLog,
    waiting: VecDeque<Waiting>,
    batch: u64,
    /// The last operation with an edge that came before the operation itself.
    ahead: Option<u64>,
    pub(super) deepest: u64,
}

/// The depths cannot be told from what passed by.
#[derive(Debug)]
pub(super) struct Unclear;

/// Data that were put away cannot be read, or nothing can be put away.
impl From<rusqlite::Error> for Unclear {
    fn from(_: rusqlite::Error) -> Self {
        Self
    }
}

impl FedDepths {
    pub(super) fn new() -> Self {
        Self {
            axis: FedAxis::new(Axis::Logical),
            depths: Depths::default(),
            log: DepthLog::default(),
            waiting: VecDeque::new(),
            batch: 0,
            ahead: None,
            deepest: 0,
        }
    }

    /// The next operation.
    pub(super) fn add(&mut self, point: Point, host: usize, runs: bool) -> Result<(), Unclear> {
        if self.ahead.is_some_and(|ahead| point.g <= ahead) || self.waiting.len() >= MOST_WAITING {
            return Err(Unclear);
        }
        let whole = (!runs).then_some(self.batch);
        self.waiting.push_back(Waiting { point, host, whole, edges: Vec::new() });
        Ok(())
    }

    /// A call has returned.
    pub(super) fn returned(&mut self, g: u64) -> Result<(), Unclear> {
        let batch = self.batch;
        self.find(g).ok_or(Unclear)?.whole = Some(batch);
        Ok(())
    }

    fn find(&mut self, g: u64) -> Option<&mut Waiting> {
        let found = self.waiting.binary_search_by_key(&g, |waiting| waiting.point.g).ok()?;
        Some(&mut self.waiting[found])
    }

    /// A documented edge. One that ends at an operation that is not stored has no effect.
    pub(super) fn edge(
        &mut self,
        newest: Option<u64>,
        to: u64,
        from: u64,
        kind: i64,
    ) -> Result<(), Unclear> {
        if let Some(waiting) = self.find(to) {
            waiting.edges.push((from, kind));
        } else if newest.is_none_or(|newest| newest < to) {
            self.ahead = self.ahead.max(Some(to));
        } else if self.log.depth(to)?.is_some() {
            return Err(Unclear);
        }
        Ok(())
    }

    /// A batch has ended: what was whole before it has all of its edges.
    pub(super) fn end_batch(&mut self, rows: &mut Vec<LodRow>) -> Result<(), Unclear> {
        let batch = self.batch;
        let has_all = |waiting: &Waiting| waiting.whole.is_some_and(|whole| whole < batch);
        while self.waiting.front().is_some_and(has_all) {
            let first = self.waiting.pop_front();
            first.into_iter().try_for_each(|first| self.take(first, rows))?;
        }
        self.batch += 1;
        Ok(())
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self, rows: &mut Vec<LodRow>) -> Result<(), Unclear> {
        while let Some(first) = self.waiting.pop_front() {
            self.take(first, rows)?;
        }
        Ok(())
    }

    fn take(&mut self, waiting: Waiting, rows: &mut Vec<LodRow>) -> Result<(), Unclear> {
        let Waiting { mut point, host, edges, .. } = waiting;
        self.depths.begin(point.slot, host);
        for (from, kind) in edges {
            let from = if from < point.g { self.log.depth(from)? } else { None };
            self.depths.edge(kind, from);
        }
        point.at = self.depths.end();
        self.log.push(point.g, point.at)?;
        self.deepest = self.deepest.max(point.at);
        self.axis.add(point, rows);
        Ok(())
    }

    pub(super) fn depth(&mut self, g: u64) -> Result<Option<u64>, Unclear> {
        Ok(self.log.depth(g)?)
    }

    /// Bytes in memory that a recording could make more.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.log.held() + self.waiting.len() * size_of::<Waiting>()
    }
}
