//! The operations that a filter finds.

use crate::{Error, Reader};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    AllocationId, History, Hits, LaneId, NvtxKind, NvtxRange, OpFilter, OpSeq, StreamId, ThreadId,
};

/// Allocations that a text may match; more are not a filter.
const ALLOCATIONS: usize = 64;

/// `1, 2, 3`, for a list of numbers in SQL.
fn list(numbers: impl IntoIterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    numbers.join(", ")
}

impl Reader {
    /// One pass over the operations; where allocations are asked for, over their uses.
    pub(crate) fn find_hits(&self, filter: &OpFilter) -> Result<Hits, Error> {
        let condition = self.condition(filter)?;
        let held = self.held_by_ranges(&filter.ranges)?;
        let is_held = |g: OpSeq, thread: u32| held.as_ref().is_none_or(|held| held.hold(g, thread));
        let mut hits = Hits::default();
        let mut lanes: BTreeMap<LaneId, u64> = BTreeMap::new();
        let mut first: Vec<OpSeq> = Vec::new();
        let mut take = |g: OpSeq, lane: LaneId| {
            hits.total += 1;
            *lanes.entry(lane).or_default() += 1;
            if first.len() < Hits::PLACES {
                first.push(g);
            }
        };
        if filter.allocations.is_empty() {
            let sql = format!("SELECT g, stream, thread FROM op WHERE {condition} ORDER BY g");
            self.rows(&sql, [], |row| {
                let (g, thread) = (OpSeq(row.get::<_, i64>(0)? as u64), row.get(2)?);
                if is_held(g, thread) {
                    take(g, lane(row.get(1)?, thread));
                }
                Ok(())
            })?;
        } else {
            let mut more = false;
            let mut used: BTreeSet<OpSeq> = BTreeSet::new();
            for id in self.allocations_of(&filter.allocations)? {
                let (uses, has_more) = self.uses(id)?;
                more |= has_more;
                used.extend(uses.iter().map(|found| found.op));
            }
            let sql = format!("SELECT stream, thread FROM op WHERE g = ? AND {condition}");
            for g in used {
                let found = self.rows(&sql, [i64::try_from(g.0).unwrap_or(i64::MAX)], |row| {
                    let thread = row.get(1)?;
                    Ok((lane(row.get(0)?, thread), thread))
                })?;
                let found = found.into_iter().filter(|(_, thread)| is_held(g, *thread));
                found.for_each(|(lane, _)| take(g, lane));
            }
            hits.more = more;
        }
        let lod = self.lod()?;
        for g in first {
            if let Some(place) = lod.place(self.connection(), g).map_err(|e| self.failed(e))? {
                hits.places.push((g, place));
            }
        }
        hits.lanes = lanes.into_iter().collect();
        Ok(hits)
    }

    /// The conditions on an operation alone, in SQL.
    fn condition(&self, filter: &OpFilter) -> Result<String, Error> {
        let mut conditions = vec!["1".to_owned()];
        if let Some(kernels) = &filter.kernels {
            let ids = list(kernels.iter().map(|id| i64::from(id.0)));
            conditions.push(format!("kernel IN ({ids})"));
        }
        for (column, texts) in [("file", &filter.files), ("function", &filter.functions)] {
            if texts.is_empty() {
                continue;
            }
            let mut strings = BTreeSet::new();
            for text in texts {
                strings.extend(self.matching(text)?);
            }
            conditions.push(format!(
                "stack IN (SELECT id FROM stack WHERE frame IN \
                 (SELECT frame FROM frame_source WHERE {column} IN ({})))",
                list(strings)
            ));
        }
        Ok(conditions.join(" AND "))
    }

    /// What the pushed ranges hold whose names or domains contain one of the texts; `None` without
    /// texts.
    fn held_by_ranges(&self, texts: &[String]) -> Result<Option<Held>, Error> {
        if texts.is_empty() {
            return Ok(None);
        }
        self.prove_ranges()?;
        let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
        let mut held = Held::default();
        self.each_range(|range| {
            let contains = |name: &str| {
                let name = name.to_lowercase();
                texts.iter().any(|text| name.contains(text))
            };
            let is_meant = contains(&range.name) || range.domain.as_deref().is_some_and(contains);
            if range.kind == NvtxKind::Pushed && is_meant {
                held.add(&range);
            }
        })?;
        Ok(Some(held))
    }

    /// Allocations whose id or name is one of the texts, or whose name contains it.
    fn allocations_of(&self, texts: &[String]) -> Result<BTreeSet<AllocationId>, Error> {
        let mut found = BTreeSet::new();
        for text in texts {
            if let Ok(id) = text.trim_start_matches('#').parse() {
                found.insert(AllocationId(id));
            }
            let names = list(self.matching(text)?);
            let sql =
                format!("SELECT id FROM allocation WHERE name IN ({names}) LIMIT {ALLOCATIONS}");
            found.extend(self.rows(&sql, [], |row| Ok(AllocationId(row.get(0)?)))?);
        }
        Ok(found)
    }
}

/// Issue indices by thread, as intervals that neither overlap nor touch, in ascending order.
#[derive(Debug, Default)]
struct Held(BTreeMap<ThreadId, Vec<(OpSeq, OpSeq)>>);

impl Held {
    /// Ranges come in the order of their begins.
    fn add(&mut self, range: &NvtxRange) {
        let of_thread = self.0.entry(range.thread).or_default();
        let end = range.end.unwrap_or(OpSeq(u64::MAX));
        match of_thread.last_mut() {
            Some((_, last)) if range.begin <= *last => *last = end.max(*last),
            _ => of_thread.push((range.begin, end)),
        }
    }

    fn hold(&self, g: OpSeq, thread: u32) -> bool {
        let Some(of_thread) = self.0.get(&ThreadId(thread)) else { return false };
        let behind = of_thread.partition_point(|(begin, _)| *begin < g);
        behind.checked_sub(1).is_some_and(|at| g < of_thread[at].1)
    }
}

/// The row of an operation.
fn lane(stream: Option<u32>, thread: u32) -> LaneId {
    match stream {
        Some(stream) => LaneId::Stream(StreamId(stream)),
        None => LaneId::Host(ThreadId(thread)),
    }
}

const _: () = assert!(History::USES * ALLOCATIONS < 1 << 20, "a bounded answer");
