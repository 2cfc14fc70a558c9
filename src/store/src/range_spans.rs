//! The NVTX ranges of a host thread on a grid, for a screen.
//!
//! Ranges of one thread and depth follow each other, in their issue order and in time. Some rows a column
//! are read, however many ranges the trace has.

use crate::lod::cells::time_of;
use crate::reader::ranges::RANGE_COLUMNS;
use crate::{Error, Reader};
use rusqlite::Row;
use std::sync::Arc;
use streamsan_model::{Axis, Grid, RangeSpan, ThreadId};

/// A range where it lies on an axis, `begin..end`.
#[derive(Clone, Debug)]
struct Placed {
    g: i64,
    begin: u64,
    end: u64,
    name: i64,
}

/// The side of an index on which a range is looked for.
#[derive(Clone, Copy)]
enum Side {
    Before,
    From,
}

/// The ranges of a thread at one depth, on a grid.
struct Depth<'a> {
    reader: &'a Reader,
    grid: Grid,
    thread: i64,
    depth: i64,
}

impl Reader {
    /// How many depths of ranges are drawn for a thread.
    pub(crate) fn range_depths(&self, thread: ThreadId) -> Result<u32, Error> {
        let depths = u32::try_from(self.deepest(i64::from(thread.0))? + 1).unwrap_or(0);
        Ok(depths.min(RangeSpan::DEPTHS))
    }

    /// What is drawn of a thread's ranges, by depth, outermost first. Ranges have no place on the axis
    /// of the logical order.
    pub(crate) fn range_spans(
        &self,
        grid: Grid,
        thread: ThreadId,
    ) -> Result<Vec<Vec<RangeSpan>>, Error> {
        if grid.axis == Axis::Logical {
            return Ok(Vec::new());
        }
        (0..i64::from(self.range_depths(thread)?))
            .map(|depth| Depth { reader: self, grid, thread: i64::from(thread.0), depth }.spans())
            .collect()
    }
}

impl Depth<'_> {
    fn spans(&self) -> Result<Vec<RangeSpan>, Error> {
        let (mut spans, mut column) = (Vec::new(), 0);
        while column < self.grid.columns {
            let newest = self.newest_before(self.behind(column))?;
            let Some(range) = newest.filter(|range| self.end_column(range) > column) else {
                match self.first_from(self.behind(column))? {
                    Some(next) if self.column(next.begin) > column => {
                        column = self.column(next.begin);
                        continue;
                    }
                    _ => break,
                }
            };
            let mut end = self.end_column(&range).min(self.grid.columns);
            if end > column + 1 {
                // The last column is that of the next range, if one begins there.
                let next = self.at(range.g + 1, Side::From)?;
                end -= u32::from(next.is_some_and(|next| self.column(next.begin) == end - 1));
            }
            let is_alone = end > column + 1 || !self.is_in(column, self.at(range.g, Side::Before)?);
            let name = if is_alone { Some(self.name(range.name)?) } else { None };
            spans.push(RangeSpan { start: column, end, name });
            column = end;
        }
        Ok(spans)
    }

    /// Whether an earlier range is in a column that begins a span. One that is there with its end only
    /// stands in the columns before.
    fn is_in(&self, column: u32, earlier: Option<Placed>) -> bool {
        earlier.is_some_and(|earlier| {
            let end = self.end_column(&earlier);
            end > column && (end > column + 1 || self.column(earlier.begin) == column)
        })
    }

    /// The column of a position, the first or the one behind the last for positions beyond.
    fn column(&self, position: u64) -> u32 {
        if position < self.grid.start {
            return 0;
        }
        self.grid.column(position).unwrap_or(self.grid.columns)
    }

    /// The column behind the last one of a range.
    fn end_column(&self, range: &Placed) -> u32 {
        if range.end <= self.grid.start {
            return 0;
        }
        let end = if self.grid.scale >= 0 {
            self.column(range.end - 1).saturating_add(1)
        } else {
            self.column(range.end)
        };
        // What begins on the screen is seen.
        let least = if range.begin < self.grid.start { 0 } else { self.column(range.begin) + 1 };
        end.max(least)
    }

    /// The first position behind those that begin in a column.
    fn behind(&self, column: u32) -> u64 {
        match self.grid.scale >= 0 {
            true => self.grid.position(column + 1),
            false => self.grid.position(column).saturating_add(1),
        }
    }

    fn newest_before(&self, position: u64) -> Result<Option<Placed>, Error> {
        self.at(self.index_of(position)?, Side::Before)
    }

    fn first_from(&self, position: u64) -> Result<Option<Placed>, Error> {
        self.at(self.index_of(position)?, Side::From)
    }

    /// An issue index between the ranges that begin before a position and the others.
    fn index_of(&self, position: u64) -> Result<i64, Error> {
        if self.grid.axis == Axis::Issue {
            return Ok(i64::try_from(position).unwrap_or(i64::MAX));
        }
        let (Some(first), Some(last)) = (self.at(0, Side::From)?, self.at(i64::MAX, Side::Before)?)
        else {
            return Ok(0);
        };
        let (mut low, mut high) = (first.g, last.g + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle, Side::From)? {
                Some(range) if range.begin < position => low = range.g + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    fn at(&self, g: i64, side: Side) -> Result<Option<Placed>, Error> {
        let (side, order) = match side {
            Side::Before => ("<", "DESC"),
            Side::From => (">=", "ASC"),
        };
        let sql = format!(
            "SELECT {RANGE_COLUMNS} FROM nvtx_range WHERE kind = 0 AND thread = ? AND depth = ? \
             AND g {side} ? ORDER BY g {order} LIMIT 1"
        );
        let found = self.reader.rows(&sql, [self.thread, self.depth, g], |row| self.placed(row))?;
        Ok(found.into_iter().next())
    }

    /// A row of [`RANGE_COLUMNS`].
    fn placed(&self, row: &Row<'_>) -> rusqlite::Result<Placed> {
        let g: i64 = row.get(0)?;
        let after: Option<i64> = row.get(1)?;
        let (begin, length) = match self.grid.axis {
            Axis::Issue => (g as u64, after),
            _ => (time_of(row.get(8)?), after.and(row.get(9)?)),
        };
        // One that had not ended goes on to the end.
        let end = length.map_or(u64::MAX, |length| begin.saturating_add(length.max(0) as u64));
        Ok(Placed { g, begin, end: end.max(begin.saturating_add(1)), name: row.get(6)? })
    }

    fn name(&self, id: i64) -> Result<Arc<str>, Error> {
        let sql = "SELECT value FROM string WHERE id = ?";
        let found = self.reader.rows(sql, [id], |row| row.get::<_, String>(0))?;
        let name = found.into_iter().next().ok_or_else(|| self.reader.corrupt("a range's name"))?;
        Ok(name.into())
    }
}
