//! Bytes of memory over the issue order, from the lives of allocations.

use crate::reader::stacks;
use crate::{Error, Reader};
use std::cmp::Reverse;
use std::collections::HashMap;
use streamsan_model::{
    AllocationId, Axis, CallStack, Entities, Footprint, FootprintBy, FootprintSeries, Holder,
    MemoryKind, Span, StackId,
};

/// Lengths from here on are those of memory whose end nobody knows.
const UNBOUNDED: i64 = 1 << 56;

/// Begins and ends of lives in issue order, ends first: memory that is given back can be had again
/// by the same call. `?1` is the first position, where allocations that were there before begin.
const LIVES: &str = "SELECT a.id, a.stack, coalesce(life.allocated, ?1), a.length, 1 AS begins \
    FROM allocation a LEFT JOIN lod_lifetime life ON life.allocation = a.id \
    WHERE a.kind <> ?2 AND a.length BETWEEN 1 AND ?3 \
    UNION ALL SELECT a.id, a.stack, life.freed, a.length, 0 \
    FROM allocation a JOIN lod_lifetime life ON life.allocation = a.id \
    WHERE a.kind <> ?2 AND a.length BETWEEN 1 AND ?3 AND life.freed IS NOT NULL \
    ORDER BY 3, 5";

/// Bytes that go up and down, by column.
#[derive(Debug, Default)]
struct Level {
    now: u64,
    /// The last column that is filled.
    column: usize,
    bytes: Vec<u64>,
}

impl Level {
    fn change(&mut self, column: usize, length: u64, begins: bool) {
        self.reach(column);
        self.now = if begins { self.now + length } else { self.now.saturating_sub(length) };
        self.bytes[column] = self.bytes[column].max(self.now);
    }

    /// Fills the columns up to one.
    fn reach(&mut self, column: usize) {
        if self.bytes.is_empty() {
            self.bytes.push(0);
        }
        while self.column < column {
            self.column += 1;
            self.bytes.push(self.now);
        }
    }
}

/// Whose bytes are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Allocation(AllocationId),
    Site(Option<String>),
}

/// A change of the bytes: whose, in which column, and by how many they go up or down.
struct Change {
    key: Key,
    column: usize,
    length: u64,
    begins: bool,
}

impl Reader {
    /// Two passes over the lives: the first one finds the holders of most bytes, so that the memory
    /// follows the answer.
    pub(crate) fn bytes_over_time(
        &self,
        by: FootprintBy,
        columns: u32,
    ) -> Result<Footprint, Error> {
        let Some(span) = self.lod()?.axis(Axis::Issue).map(|levels| levels.span) else {
            return Ok(Footprint::default());
        };
        let columns = columns.max(1) as usize;
        let entities = match by {
            FootprintBy::Site => stacks::all(self)?,
            FootprintBy::Allocation => Entities::default(),
        };
        let mut total = Level::default();
        // Bytes now, the most at once, and how many allocations.
        let mut holders: HashMap<Key, (u64, u64, u64)> = HashMap::new();
        self.lives(by, span, columns, &entities, |change| {
            total.change(change.column, change.length, change.begins);
            let (now, peak, count) = holders.entry(change.key).or_default();
            if change.begins {
                *now += change.length;
                *count += 1;
            } else {
                *now = now.saturating_sub(change.length);
            }
            *peak = (*peak).max(*now);
        })?;
        total.reach(columns - 1);
        let mut largest: Vec<(Key, u64, u64)> =
            holders.into_iter().map(|(key, (_, peak, count))| (key, peak, count)).collect();
        let order = |key: &Key| match key {
            Key::Allocation(id) => (id.0, String::new()),
            Key::Site(site) => (0, site.clone().unwrap_or_default()),
        };
        largest.sort_by_cached_key(|(key, peak, _)| (Reverse(*peak), order(key)));
        largest.truncate(Footprint::SERIES);
        let places: HashMap<Key, usize> =
            largest.iter().enumerate().map(|(place, (key, ..))| (key.clone(), place)).collect();
        let mut levels: Vec<Level> = largest.iter().map(|_| Level::default()).collect();
        self.lives(by, span, columns, &entities, |change| {
            if let Some(&place) = places.get(&change.key) {
                levels[place].change(change.column, change.length, change.begins);
            }
        })?;
        let mut series = Vec::new();
        for ((key, _, allocations), mut level) in largest.into_iter().zip(levels) {
            level.reach(columns - 1);
            let holder = match key {
                Key::Site(site) => Holder::Site(site),
                Key::Allocation(id) => match self.allocation(id)? {
                    Some(allocation) => Holder::Allocation(Box::new(allocation)),
                    None => continue,
                },
            };
            series.push(FootprintSeries { holder, allocations, bytes: level.bytes });
        }
        Ok(Footprint { span: Some(span), total: total.bytes, series })
    }

    fn lives(
        &self,
        by: FootprintBy,
        span: Span,
        columns: usize,
        entities: &Entities,
        mut take: impl FnMut(Change),
    ) -> Result<(), Error> {
        let mut sites: HashMap<Option<u32>, Option<String>> = HashMap::new();
        let bounds =
            [i64::try_from(span.start).unwrap_or(i64::MAX), MemoryKind::Pageable as i64, UNBOUNDED];
        self.rows(LIVES, bounds, |row| {
            let key = match by {
                FootprintBy::Allocation => Key::Allocation(AllocationId(row.get(0)?)),
                FootprintBy::Site => {
                    let stack: Option<u32> = row.get(1)?;
                    let site = sites.entry(stack).or_insert_with(|| site(entities, stack));
                    Key::Site(site.clone())
                }
            };
            let at = (row.get::<_, i64>(2)? as u64).saturating_sub(span.start);
            let column = u128::from(at) * columns as u128 / u128::from(span.len().max(1));
            let column = usize::try_from(column).unwrap_or(usize::MAX).min(columns - 1);
            let length = row.get::<_, i64>(3)? as u64;
            take(Change { key, column, length, begins: row.get(4)? });
            Ok(())
        })?;
        Ok(())
    }
}

/// The line of the program that allocated.
fn site(entities: &Entities, stack: Option<u32>) -> Option<String> {
    let stack = CallStack::of(entities, stack.map(StackId))?;
    let frame = stack.place().or(stack.frames.first())?;
    Some(frame.description(None))
}
