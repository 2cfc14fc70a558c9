//! Reading a trace.

mod bounds;
pub(crate) mod decode;
mod findings;
mod follow;
mod graphs;
mod items;
mod kernels;
mod open;
mod proven;
pub(crate) mod ranges;
pub(crate) mod stacks;
mod upgrade;

use crate::failures::Failures;
use crate::{
    Coverage, EntryPoint, Error, KernelCount, MeasuredCount, MeasuredKind, Meta, TraceState,
    Treatment,
};
use decode::{Strings, code};
pub use items::Items;
use rusqlite::{Connection, Transaction};
use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use streamsan_model::{
    Edge, Entities, Finding, IncompleteReason, KernelGap, Lint, OpSeq, Operation, Refreshed, Tier,
    TraceItem, Unwatched,
};

/// Numbers of rows in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub processes: u64,
    pub threads: u64,
    pub contexts: u64,
    pub streams: u64,
    pub events: u64,
    pub allocations: u64,
    pub kernels: u64,
    pub operations: u64,
    pub accesses: u64,
    pub edges: u64,
    pub findings: u64,
}

/// Reads one trace file; never writes to it.
///
/// A trace that is still being recorded is read up to its writer's last commit, and so is one whose
/// writer was killed; both answer [`TraceState::Recording`].
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
    state: Cell<TraceState>,
    proven: proven::Proven,
    lod: RefCell<Option<crate::lod::cells::Lod>>,
    /// Live level-of-detail data, for a trace that is followed while it is recorded.
    live: RefCell<Option<crate::lod::live::Live>>,
    /// The news since the overview and the findings were asked for.
    unseen: Cell<Refreshed>,
}

impl Reader {
    /// Whether the trace is whole.
    pub fn state(&self) -> TraceState {
        self.state.get()
    }

    /// The facts about the recording.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, a fact is missing or cannot be parsed.
    pub fn meta(&self) -> Result<Meta, Error> {
        let rows = self.meta_rows()?;
        Meta::from_rows(rows).map_err(|key| self.corrupt(&format!("fact {key} of `meta`")))
    }

    /// Where the times of the calls begin, on `CLOCK_MONOTONIC` in nanoseconds; `None` where no call
    /// has a time.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or the fact cannot be parsed.
    pub fn clock_base(&self) -> Result<Option<u64>, Error> {
        let is_known = self.meta_rows()?.contains_key(Meta::CLOCK_BASE);
        is_known.then(|| items::clock_base(self)).transpose()
    }

    /// The items, in an order that the engine takes: every entity, then the operations by `g`.
    /// After an error the iterator ends.
    pub fn items(&self) -> Items<'_> {
        Items::new(self)
    }

    /// Processes, threads, contexts, streams and kernels.
    pub(crate) fn outline(&self) -> impl Iterator<Item = Result<TraceItem, Error>> {
        Items::outline(self)
    }

    /// All entities, with the creations of streams.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn entities(&self) -> Result<Entities, Error> {
        let _now = self.at_once()?;
        let mut entities = Entities::default();
        for item in Items::entities_only(self) {
            if let TraceItem::Entity(entity) = item? {
                entities.declare(entity);
            }
        }
        self.note_creations(&mut entities)?;
        Ok(entities)
    }

    /// The operation `g`; `None` where the trace does not hold it.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or the operation's row is damaged.
    pub fn operation(&self, g: OpSeq) -> Result<Option<Operation>, Error> {
        items::one_operation(self, g)
    }

    /// The last operation of the trace; `None` for an empty trace.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn last_operation(&self) -> Result<Option<OpSeq>, Error> {
        let last = self.rows("SELECT max(g) FROM op", [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(last.first().copied().flatten().map(|g| OpSeq(g as u64)))
    }

    /// The stored edges, by the later operation, then the earlier one.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn edges(&self) -> Result<Vec<Edge>, Error> {
        self.verify(&["edge"])?;
        let sql = "SELECT from_op, to_op, kind, tier FROM edge ORDER BY id";
        let mut edges = self.rows(sql, [], |row| {
            Ok(Edge {
                from: OpSeq(row.get::<_, i64>(0)? as u64),
                to: OpSeq(row.get::<_, i64>(1)? as u64),
                kind: code(row, 2, &streamsan_model::EdgeKind::ALL)?,
                tier: code(row, 3, &[Tier::Documented, Tier::Incidental])?,
            })
        })?;
        edges.sort_by_key(|edge| (edge.to, edge.from));
        Ok(edges)
    }

    /// The stored findings, in the order in which they were written.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn findings(&self) -> Result<Vec<Finding>, Error> {
        self.verify(proven::FINDINGS)?;
        findings::read(self)
    }

    /// The stored lints.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn lints(&self) -> Result<Vec<Lint>, Error> {
        self.verify(&["string", "lint"])?;
        findings::lints(self)
    }

    /// The stored coverage: the calls that the recording saw, and its losses.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn coverage(&self) -> Result<Coverage, Error> {
        use IncompleteReason as R;
        self.verify(&["string", "coverage"])?;
        let sql = "SELECT kind, name, count FROM coverage ORDER BY id";
        let mut strings = Strings::new(&self.connection);
        let mut coverage = Coverage::default();
        let rows = self.rows(sql, [], |row| {
            let name = strings.optional(row, 1)?.unwrap_or_default();
            Ok((usize::from(row.get::<_, u8>(0)?), name, row.get::<_, i64>(2)? as u64))
        })?;
        let counters = Treatment::ALL.len();
        for (kind, name, count) in rows {
            if let Some(&treatment) = Treatment::ALL.get(kind) {
                coverage.entry_points.push(EntryPoint { name, treatment, calls: count });
                continue;
            }
            let reason = match kind - counters {
                0 => {
                    coverage.dropped = count;
                    continue;
                }
                1 => {
                    coverage.ambiguous = count;
                    continue;
                }
                2 => R::NotAttached,
                3 => R::DroppedRecords(count),
                4 => R::NotUnderstood { api: name, calls: count },
                5 => R::UnknownKernelParameters { kernel: name, launches: count },
                6 => R::TruncatedTrace,
                7 => R::TraceLimit(count),
                8 => R::TraceNotWritten(name),
                9 => R::PointersInMemory { kernel: name, launches: count },
                gap if KernelGap::ALL.get(gap - 10).is_some() => {
                    let gap = KernelGap::ALL[gap - 10];
                    coverage.kernels.push(KernelCount { gap, name, count });
                    continue;
                }
                host if host - 10 - KernelGap::ALL.len() < 6 => {
                    let told = coverage.host_accesses.get_or_insert_default();
                    match host - 10 - KernelGap::ALL.len() {
                        0 => told.operations = count,
                        1 => told.fenced = count,
                        2 => told.in_part = count,
                        3 => told.not_fenced.push((name, count)),
                        4 => told.left_alone.push((name, count)),
                        _ => {
                            let reason = Unwatched::ALL.into_iter().find(|r| r.id() == name);
                            told.unwatched = Some(reason.ok_or_else(|| {
                                self.corrupt("a reason why host accesses were not watched")
                            })?);
                        }
                    }
                    continue;
                }
                measured if MeasuredKind::ALL.get(measured - 21).is_some() => {
                    let kind = MeasuredKind::ALL[measured - 21];
                    coverage.measured.push(MeasuredCount { kind, name, count });
                    continue;
                }
                _ => return Err(self.corrupt("a code in `coverage`")),
            };
            coverage.reasons.push(reason);
        }
        coverage.entry_points.sort();
        coverage.kernels.sort();
        coverage.measured.sort();
        Ok(coverage)
    }

    /// The reasons why a run without findings is not clean: the stored reasons, those that follow
    /// from the stored counts if a reason is missing, and the truncation of the trace if no stored
    /// reason names it.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn incomplete_reasons(&self) -> Result<Vec<IncompleteReason>, Error> {
        use IncompleteReason as R;
        let Coverage { mut reasons, entry_points, dropped, .. } = self.coverage()?;
        for entry in entry_points.iter().filter(|e| e.treatment == Treatment::NotUnderstood) {
            let is_entry = |r: &R| matches!(r, R::NotUnderstood { api, .. } if *api == entry.name);
            if !reasons.iter().any(is_entry) {
                reasons.push(R::NotUnderstood { api: entry.name.clone(), calls: entry.calls });
            }
        }
        if dropped > 0 && !reasons.iter().any(|r| matches!(r, R::DroppedRecords(_))) {
            reasons.push(R::DroppedRecords(dropped));
        }
        let told = reasons
            .iter()
            .any(|r| matches!(r, R::TruncatedTrace | R::TraceLimit(_) | R::TraceNotWritten(_)));
        // One that is followed is not cut off: it goes on.
        let is_followed = self.live.borrow().is_some() && self.state() == TraceState::Recording;
        if self.state() != TraceState::Complete && !told && !is_followed {
            reasons.push(R::TruncatedTrace);
        }
        Ok(reasons)
    }

    /// Numbers of rows in the trace.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn counts(&self) -> Result<Counts, Error> {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            let count = self.connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
            count.map(|n| n as u64).map_err(|e| self.failed(e))
        };
        Ok(Counts {
            processes: count("process")?,
            threads: count("thread")?,
            contexts: count("context")?,
            streams: count("stream")?,
            events: count("event")?,
            allocations: count("allocation")?,
            kernels: count("kernel")?,
            operations: count("op")?,
            accesses: count("access")?,
            edges: count("edge")?,
            findings: count("finding")?,
        })
    }

    /// Number of operations by entry point, sorted by its name.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn calls_by_api(&self) -> Result<Vec<(String, u64)>, Error> {
        let sql = "SELECT string.value, n FROM (SELECT api, count(*) AS n FROM op GROUP BY api) \
                   JOIN string ON string.id = api ORDER BY string.value";
        self.rows(sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))
    }

    fn meta_rows(&self) -> Result<BTreeMap<String, String>, Error> {
        let rows =
            self.rows("SELECT key, value FROM meta", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        mut decode: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let read = || -> rusqlite::Result<Vec<T>> {
            Failures::of_this_thread().point()?;
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map(parameters, |row| decode(row))?;
            rows.collect()
        };
        read().map_err(|e| self.failed(e))
    }

    /// As [`Self::rows`], for rows that are not kept.
    fn each_row(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        let read = || -> rusqlite::Result<()> {
            Failures::of_this_thread().point()?;
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                take(row)?;
            }
            Ok(())
        };
        read().map_err(|e| self.failed(e))
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Level-of-detail data for viewers, made at the first use where the file does not hold it.
    pub(crate) fn lod(&self) -> Result<Ref<'_, crate::lod::cells::Lod>, Error> {
        if self.lod.borrow().is_none() {
            let lod = if self.live.borrow().is_some() {
                self.catch_up()?;
                crate::lod::cells::Lod::read(&self.connection)
            } else {
                self.verify(proven::LEVELS_OF_DETAIL)?;
                crate::lod::cells::Lod::open(&self.connection)
            };
            *self.lod.borrow_mut() = Some(lod.map_err(|e| self.failed(e))?);
        }
        Ok(Ref::map(self.lod.borrow(), |lod| lod.as_ref().expect("it was just made")))
    }

    /// All that is read until the answer is dropped is of one state of the file, however many
    /// statements it takes: a trace that is being recorded goes on between two.
    pub(crate) fn at_once(&self) -> Result<Option<Transaction<'_>>, Error> {
        if !self.connection.is_autocommit() {
            return Ok(None);
        }
        self.connection.unchecked_transaction().map(Some).map_err(|e| self.failed(e))
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> Error {
        Error::reading(&self.path, source)
    }

    /// Whether the trace is kept up with while it is recorded.
    pub(crate) fn is_followed(&self) -> bool {
        self.live.borrow().is_some()
    }

    fn damaged(&self, detail: String) -> Error {
        Error::Damaged { path: self.path.clone(), detail }
    }

    pub(crate) fn corrupt(&self, what: &str) -> Error {
        Error::Corrupt { path: self.path.clone(), detail: format!("{what} makes no sense") }
    }
}
