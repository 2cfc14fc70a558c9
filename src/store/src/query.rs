//! The viewer's queries ([`TraceQuery`]), answered from the tables of a trace.

use crate::lod::cells::at_time;
use crate::lod::edges::{PlainEdge, outgoing};
use crate::lod::scan::edges_are_by_id;
use crate::lod::{lane_code, lane_of};
use crate::reader::decode::{code, misfit};
use crate::reader::stacks;
use crate::row::edge_ids;
use crate::{Coverage, Error, Reader};
use rusqlite::{Row, params_from_iter};
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{
    Action, Allocation, AllocationId, Axis, Backing, BackingId, ByteRange, CallCount, CallNumber,
    Cell, ContextId, Detail, Edge, EdgeKind, Entities, Entity, Event, EventId, Finding, Footprint,
    FootprintBy, Grid, History, Hits, Interrupt, Lane, LaneId, Lifetime, MemoryKind, OpFilter,
    OpSeq, Overview, Place, ProcessId, QueryError, Refreshed, StackId, Strip, Tier, TraceItem,
    TraceQuery, doubt_after_losses,
};

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Texts that a search may match; more are not a search.
const MATCHES: usize = 500;

/// An index as SQLite compares it.
pub(crate) fn signed(g: OpSeq) -> i64 {
    i64::try_from(g.0).unwrap_or(i64::MAX)
}

const ALLOCATION: &str = "a.id, a.process, a.context, a.kind, a.start, a.length, api.value, \
                          name.value, a.backing, a.backing_offset, a.stack";
const ALLOCATION_TEXTS: &str =
    "LEFT JOIN string api ON api.id = a.api LEFT JOIN string name ON name.id = a.name";

fn allocation(row: &Row<'_>) -> rusqlite::Result<Allocation> {
    let start = row.get::<_, i64>(4)? as u64;
    Ok(Allocation {
        id: AllocationId(row.get(0)?),
        process: ProcessId(row.get(1)?),
        context: row.get::<_, Option<u32>>(2)?.map(ContextId),
        kind: code(row, 3, &MemoryKind::ALL)?,
        range: ByteRange::new(start, start.wrapping_add(row.get::<_, i64>(5)? as u64)),
        api: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        name: row.get(7)?,
        backing: match row.get::<_, Option<u32>>(8)? {
            Some(memory) => {
                Some(Backing { memory: BackingId(memory), offset: row.get::<_, i64>(9)? as u64 })
            }
            None => None,
        },
        stack: row.get::<_, Option<u32>>(10)?.map(StackId),
    })
}

const EDGE: &str = "from_op, to_op, kind, tier";
const TIERS: [Tier; 2] = [Tier::Documented, Tier::Incidental];

fn edge(row: &Row<'_>) -> rusqlite::Result<Edge> {
    Ok(Edge {
        from: OpSeq(row.get::<_, i64>(0)? as u64),
        to: OpSeq(row.get::<_, i64>(1)? as u64),
        kind: code(row, 2, &EdgeKind::ALL)?,
        tier: code(row, 3, &TIERS)?,
    })
}

impl Reader {
    fn ask<T>(&self, answer: rusqlite::Result<T>) -> Result<T, QueryError> {
        Ok(answer.map_err(|e| self.failed(e))?)
    }

    pub(crate) fn allocation(&self, id: AllocationId) -> Result<Option<Allocation>, Error> {
        let found = self.allocation_as_stored(id)?;
        found.map(|allocation| self.in_programs_words(allocation)).transpose()
    }

    /// Whether a table with dense ids has rows up to an id.
    ///
    /// # Errors
    ///
    /// It has not: then the id is damaged.
    pub(crate) fn holds(&self, table: &str, id: u32) -> Result<(), Error> {
        let rows = self.rows(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        match rows.first() {
            Some(&rows) if i64::from(id) < rows => Ok(()),
            _ => Err(self.corrupt(&format!("a reference to {id} of {table}"))),
        }
    }

    fn allocation_as_stored(&self, id: AllocationId) -> Result<Option<Allocation>, Error> {
        let sql =
            format!("SELECT {ALLOCATION} FROM allocation a {ALLOCATION_TEXTS} WHERE a.id = ?");
        Ok(self.rows(&sql, [id.0], allocation)?.pop())
    }

    /// The allocation with its call as the program made it.
    fn in_programs_words(&self, mut allocation: Allocation) -> Result<Allocation, Error> {
        let (api, stack) = (allocation.api.as_str().into(), allocation.stack.map(|id| id.0));
        let called = self.lod()?.called(self.connection(), &api, stack);
        allocation.api = called.map_err(|e| self.failed(e))?.to_string();
        Ok(allocation)
    }

    fn event(&self, id: EventId) -> Result<Option<Event>, Error> {
        let sql = "SELECT e.context, e.handle, e.flags, s.value, e.is_imported FROM event e \
                   LEFT JOIN string s ON s.id = e.name WHERE e.id = ?";
        let found = self.rows(sql, [id.0], |row| {
            Ok(Event {
                id,
                context: ContextId(row.get(0)?),
                handle: row.get::<_, i64>(1)? as u64,
                flags: row.get(2)?,
                imported: row.get(4)?,
                name: row.get(3)?,
            })
        })?;
        Ok(found.into_iter().next())
    }

    /// Edges at one end of an operation, the nearest ones, with the place of the other end.
    fn edges_at(&self, g: OpSeq, incoming: bool) -> Result<Vec<(Edge, Place)>, Error> {
        let edges = if incoming { self.incoming(g)? } else { self.outgoing(g)? };
        let lod = self.lod()?;
        let mut placed = Vec::new();
        for edge in edges {
            let end = if incoming { edge.from } else { edge.to };
            if let Some(place) = lod.place(self.connection(), end).map_err(|e| self.failed(e))? {
                placed.push((edge, place));
            }
        }
        Ok(placed)
    }

    fn incoming(&self, g: OpSeq) -> Result<Vec<Edge>, Error> {
        let by_id = edges_are_by_id(self.connection()).map_err(|e| self.failed(e))?;
        let (key, bounds) = match edge_ids(g).filter(|_| by_id) {
            Some(ids) => ("id >= ? AND id < ?", [ids.start, ids.end]),
            None => ("to_op = ? AND to_op = ?", [signed(g); 2]),
        };
        let sql = format!(
            "SELECT {EDGE} FROM edge WHERE {key} AND from_op <> to_op ORDER BY from_op DESC LIMIT {}",
            Detail::EDGES
        );
        self.rows(&sql, bounds, edge)
    }

    fn outgoing(&self, g: OpSeq) -> Result<Vec<Edge>, Error> {
        // The blocks of a trace that is followed are not kept up.
        if !self.is_followed() {
            // Where there are no blocks, they are made with the rest.
            drop(self.lod()?);
            let packed = outgoing(self.connection(), g.0, Detail::EDGES);
            if let Some(packed) = packed.map_err(|e| self.failed(e))? {
                let decode = |edge: &PlainEdge| {
                    let kind = EdgeKind::ALL.get(usize::try_from(edge.kind).ok()?)?;
                    let tier = TIERS.get(usize::try_from(edge.tier).ok()?)?;
                    let (from, to) = (OpSeq(edge.from), OpSeq(edge.to));
                    Some(Edge { from, to, kind: *kind, tier: *tier })
                };
                let edges = packed.iter().map(decode).collect::<Option<_>>();
                return edges.ok_or_else(|| self.corrupt("a block of `lod_edge`"));
            }
        }
        let sql = format!(
            "SELECT {EDGE} FROM edge WHERE from_op = ? AND to_op <> from_op ORDER BY to_op LIMIT {}",
            Detail::EDGES
        );
        self.rows(&sql, [signed(g)], edge)
    }

    /// Puts the call sites into the fingerprints, as reports have them.
    fn name_sites(&self, findings: &mut [Finding]) -> Result<(), Error> {
        let entities = stacks::all(self)?;
        if findings.is_empty() || entities.frames().next().is_none() {
            return Ok(());
        }
        let allocated =
            self.rows("SELECT id, stack FROM allocation WHERE stack IS NOT NULL", [], |row| {
                Ok((AllocationId(row.get(0)?), StackId(row.get(1)?)))
            })?;
        let allocated: HashMap<AllocationId, StackId> = allocated.into_iter().collect();
        // A mistake occurs often, on few paths.
        let mut known = HashMap::new();
        for finding in findings {
            let allocation = allocated.get(&finding.allocation).copied();
            let stacks = [finding.first.stack, finding.second.stack, allocation];
            let base = finding.fingerprint;
            finding.fingerprint =
                *known.entry((base, stacks)).or_insert_with(|| base.at_sites(&entities, &stacks));
        }
        Ok(())
    }

    /// Texts that contain `text`, in any case of letters.
    pub(crate) fn matching(&self, text: &str) -> Result<Vec<i64>, Error> {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let sql = format!(
            "SELECT id FROM string WHERE value LIKE '%' || ? || '%' ESCAPE '\\' LIMIT {MATCHES}"
        );
        self.rows(&sql, [escaped], |row| row.get(0))
    }
}

impl TraceQuery for Reader {
    fn interrupt(&self) -> Interrupt {
        let handle = self.connection().get_interrupt_handle();
        Arc::new(move || handle.interrupt())
    }

    fn overview(&self) -> Result<Overview, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        let lod = self.lod()?;
        let mut entities = Entities::default();
        for item in self.outline() {
            if let TraceItem::Entity(entity) = item? {
                debug_assert!(!matches!(entity, Entity::Event(_) | Entity::Allocation(_)));
                entities.declare(entity);
            }
        }
        let mut stacks = self.note_creations(&mut entities)?;
        let sides = "SELECT DISTINCT stack FROM finding_access WHERE stack IS NOT NULL";
        stacks.extend(self.rows(sides, [], |row| row.get::<_, u32>(0))?);
        let memory = "SELECT DISTINCT allocation FROM finding_access";
        let memory = self.rows(memory, [], |row| Ok(AllocationId(row.get(0)?)))?;
        if let Some(last) = memory.iter().max() {
            self.holds("allocation", last.0)?;
        }
        for id in memory {
            let Some(allocation) = self.allocation_as_stored(id)? else { continue };
            stacks.extend(allocation.stack.map(|stack| stack.0));
            entities.declare(Entity::Allocation(allocation));
        }
        stacks::declare(self, stacks, &mut entities)?;
        let lanes = self.rows("SELECT lane, process, operations FROM lod_lane", [], |row| {
            let id = lane_of(row.get(0)?).ok_or_else(|| misfit(0))?;
            let stream = match id {
                LaneId::Stream(stream) => entities.stream(stream).cloned(),
                LaneId::Host(_) => None,
            };
            let operations = row.get::<_, i64>(2)? as u64;
            Ok(Lane { id, process: ProcessId(row.get(1)?), stream, operations, ranges: 0 })
        })?;
        let mut lanes = lanes;
        self.prove_ranges()?;
        for lane in &mut lanes {
            if let LaneId::Host(thread) = lane.id {
                lane.ranges = self.range_depths(thread)?;
            }
        }
        lanes.sort_by_key(|lane| lane.id);
        let incomplete = self.incomplete_reasons()?;
        self.overview_is_seen();
        let operations = lanes.iter().map(|lane| lane.operations).sum();
        // Calls are counted at the end of a recording.
        let Coverage { entry_points: counted, host_accesses, .. } = self.coverage()?;
        let calls = match counted.is_empty() {
            true => operations,
            false => counted.iter().map(|entry| entry.calls).sum(),
        };
        Ok(Overview {
            operations,
            calls,
            lanes,
            axes: lod.axes.iter().map(|levels| (levels.axis, levels.span)).collect(),
            entities,
            incomplete,
            host_accesses,
        })
    }

    fn findings(&self) -> Result<Vec<Finding>, QueryError> {
        let _now = self.at_once()?;
        let mut findings = Reader::findings(self)?;
        doubt_after_losses(&mut findings, &self.incomplete_reasons()?);
        self.name_sites(&mut findings)?;
        findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
        Ok(findings)
    }

    fn refresh(&self) -> Result<Refreshed, QueryError> {
        Ok(self.look()?)
    }

    fn finding_places(&self) -> Result<Vec<(OpSeq, Place)>, QueryError> {
        let lod = self.lod()?;
        let places = self.ask(lod.finding_places(self.connection()))?;
        self.findings_are_seen();
        Ok(places)
    }

    fn strips(&self, grid: Grid, lanes: &[LaneId]) -> Result<Vec<Strip>, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        let lod = self.lod()?;
        let mut strips = self.ask(lod.strips(self.connection(), grid, lanes))?;
        for strip in &mut strips {
            if let LaneId::Host(thread) = strip.lane {
                strip.ranges = self.range_spans(grid, thread)?;
            }
        }
        Ok(strips)
    }

    fn minimap(&self, axis: Axis, columns: u32) -> Result<Vec<Cell>, QueryError> {
        let lod = self.lod()?;
        self.ask(lod.minimap(self.connection(), axis, columns))
    }

    fn detail(&self, g: OpSeq) -> Result<Option<Detail>, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        let Some(operation) = self.operation(g)? else { return Ok(None) };
        let Some(place) = self.place(g)? else { return Ok(None) };
        let mut ids: Vec<_> = operation.accesses.iter().map(|access| access.allocation).collect();
        ids.extend(match operation.action {
            Action::Allocate { allocation, .. } | Action::Free { allocation, .. } => {
                Some(allocation)
            }
            _ => None,
        });
        ids.sort_unstable();
        ids.dedup();
        let event = match operation.action {
            Action::EventCreate { event }
            | Action::EventDestroy { event }
            | Action::EventRecord { event, .. }
            | Action::EventSynchronize { event }
            | Action::EventQuery { event }
            | Action::StreamWaitEvent { event, .. }
            | Action::ContextRecordEvent { event, .. }
            | Action::ContextWaitEvent { event, .. } => self.event(event)?,
            _ => None,
        };
        let (stack, stack_truncated) = stacks::of_operation(self, g)?;
        let allocations = ids.into_iter().filter_map(|id| self.allocation(id).transpose());
        Ok(Some(Detail {
            place,
            incoming: self.edges_at(g, true)?,
            outgoing: self.edges_at(g, false)?,
            allocations: allocations.collect::<Result<_, _>>()?,
            event,
            ranges: self.ranges_of(g)?,
            stack,
            stack_truncated,
            operation,
        }))
    }

    fn place(&self, g: OpSeq) -> Result<Option<Place>, QueryError> {
        let lod = self.lod()?;
        self.ask(lod.place(self.connection(), g))
    }

    fn neighbour(
        &self,
        lane: LaneId,
        g: OpSeq,
        forward: bool,
    ) -> Result<Option<OpSeq>, QueryError> {
        if self.lod()?.axis(Axis::Logical).is_some() {
            return self.ask(self.lod()?.neighbour(self.connection(), lane, g, forward));
        }
        // A trace that is followed.
        let Some(levels) = self.lod()?.axis(Axis::Issue).copied() else { return Ok(None) };
        let (row, id) = match lane {
            LaneId::Host(thread) => ("stream IS NULL AND thread = ?", thread.0),
            LaneId::Stream(stream) => ("stream = ?", stream.0),
        };
        let shift = levels.base;
        // Within one bucket of the finest level, in `first..end`.
        let inside = |first: u64, end: u64| -> Result<Option<OpSeq>, Error> {
            let order = if forward { "ASC" } else { "DESC" };
            let sql = format!(
                "SELECT g FROM op WHERE {row} AND g >= ? AND g < ? ORDER BY g {order} LIMIT 1"
            );
            let bounds = [i64::from(id), signed(OpSeq(first)), signed(OpSeq(end))];
            let found = self.rows(&sql, bounds, |row| row.get::<_, i64>(0))?;
            Ok(found.first().map(|&g| OpSeq(g as u64)))
        };
        let g = OpSeq(g.0.min(levels.span.end));
        let bucket = g.0 >> shift;
        let (begin, end) = (bucket << shift, bucket.saturating_add(1) << shift);
        let near = if forward { inside(g.0.saturating_add(1), end)? } else { inside(begin, g.0)? };
        if near.is_some() {
            return Ok(near);
        }
        let (side, order) = if forward { (">", "ASC") } else { ("<", "DESC") };
        let sql = format!(
            "SELECT bucket FROM lod WHERE axis = 0 AND shift = ? AND lane = ? \
             AND bucket {side} ? ORDER BY bucket {order} LIMIT 1"
        );
        let key = [i64::from(shift), lane_code(lane), bucket as i64];
        let next = self.rows(&sql, key, |row| row.get::<_, i64>(0))?;
        match next.first() {
            Some(&next) => Ok(inside((next as u64) << shift, (next as u64 + 1) << shift)?),
            None => Ok(None),
        }
    }

    fn nearest(&self, lane: LaneId, axis: Axis, at: u64) -> Result<Option<OpSeq>, QueryError> {
        let lod = self.lod()?;
        let connection = self.connection();
        let around = match axis {
            Axis::Logical => return self.ask(lod.nearest_depth(connection, lane, at)),
            Axis::Issue => at,
            Axis::Time => {
                let Some(issue) = lod.axis(Axis::Issue) else { return Ok(None) };
                self.ask(at_time(connection, issue.span, at))?
            }
        };
        let before = self.neighbour(lane, OpSeq(around.saturating_add(1)), false)?;
        let after = self.neighbour(lane, OpSeq(around), true)?;
        let mut best: Option<(u64, OpSeq)> = None;
        for g in [before, after].into_iter().flatten() {
            let place = self.ask(lod.place(connection, g))?;
            let distance = place.and_then(|p| p.on(axis)).map_or(u64::MAX, |p| p.abs_diff(at));
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, g));
            }
        }
        Ok(best.map(|(_, g)| g))
    }

    fn search(&self, text: &str, from: OpSeq, forward: bool) -> Result<Option<OpSeq>, QueryError> {
        let texts = self.matching(text)?;
        if texts.is_empty() || text.is_empty() {
            return Ok(None);
        }
        let places = vec!["?"; texts.len()].join(", ");
        let (side, order) = if forward { (">", "ASC") } else { ("<", "DESC") };
        let sql = format!(
            "SELECT g FROM op WHERE g {side} ? AND (api IN ({places}) OR kernel IN \
             (SELECT id FROM kernel WHERE name IN ({places})) OR stack IN \
             (SELECT stack.id FROM stack JOIN frame_source source USING (frame) \
             JOIN string ON string.id = source.function \
             WHERE source.function IN ({places}) AND string.value LIKE 'cuda%')) \
             ORDER BY g {order} LIMIT 1"
        );
        // Names of entry points, of kernels, and of functions of the runtime.
        let texts = [&texts; 3].into_iter().flatten().copied();
        let values = std::iter::once(signed(from)).chain(texts);
        let found = self.rows(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))?;
        Ok(found.first().map(|&g| OpSeq(g as u64)))
    }

    fn call_number(&self, g: OpSeq) -> Result<Option<CallNumber>, QueryError> {
        Ok(self.number_of_call(g)?)
    }

    fn call_of_number(&self, lane: LaneId, call: &CallNumber) -> Result<Option<OpSeq>, QueryError> {
        Ok(self.numbered_call(lane, call)?)
    }

    fn history(&self, id: AllocationId) -> Result<Option<History>, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        let Some(allocation) = self.allocation(id)? else { return Ok(None) };
        let (uses, more) = self.uses(id)?;
        Ok(Some(History { allocation, uses, more }))
    }

    fn hits(&self, filter: &OpFilter) -> Result<Hits, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        Ok(self.find_hits(filter)?)
    }

    fn footprint(&self, by: FootprintBy, columns: u32) -> Result<Footprint, QueryError> {
        let _now = self.lod().map(drop).and_then(|()| self.at_once())?;
        Ok(self.bytes_over_time(by, columns)?)
    }

    fn allocations(&self, most: u32) -> Result<Vec<Lifetime>, QueryError> {
        self.lod()?;
        let sql = format!(
            "SELECT {ALLOCATION}, life.allocated, life.freed FROM allocation a {ALLOCATION_TEXTS} \
             LEFT JOIN lod_lifetime life ON life.allocation = a.id \
             ORDER BY a.kind = {}, a.length DESC, a.id LIMIT ?",
            MemoryKind::Pageable as i64
        );
        let g = |value: Option<i64>| value.map(|g| OpSeq(g as u64));
        let found = self.rows(&sql, [most], |row| {
            Ok(Lifetime {
                allocation: allocation(row)?,
                allocated: g(row.get("allocated")?),
                freed: g(row.get("freed")?),
            })
        })?;
        let in_words = |life: Lifetime| {
            Ok(Lifetime { allocation: self.in_programs_words(life.allocation)?, ..life })
        };
        found.into_iter().map(in_words).collect()
    }

    fn calls(&self) -> Result<Vec<CallCount>, QueryError> {
        self.lod()?;
        let sql = "SELECT string.value, calls, driver_ns, failures FROM lod_call \
                   JOIN string ON string.id = api ORDER BY calls DESC, string.value";
        Ok(self.rows(sql, [], |row| {
            Ok(CallCount {
                api: row.get(0)?,
                calls: row.get::<_, i64>(1)? as u64,
                driver_ns: row.get::<_, i64>(2)? as u64,
                failures: row.get::<_, i64>(3)? as u64,
            })
        })?)
    }
}
