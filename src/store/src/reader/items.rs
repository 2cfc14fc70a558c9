//! The items of a trace, read in chunks so that a trace of any length takes little memory.
//!
//! Every table is read in the order of its key, and each chunk begins behind the last row of the
//! one before, so nothing is held open between two calls.
//!
//! There may be as many streams, events and allocations as operations. The first ones come before
//! all operations, and each later one before the chunk of operations that refers to it; a caller
//! that forgets ended entities therefore never holds all of them. Graphs may refer to any entity,
//! so in a trace with graphs all entities come first.

mod entities;

use super::Reader;
use super::bounds::Declared;
use super::decode::{Patterns, Strings, bad_action, misfit, small};
use super::graphs;
use super::proven;
use crate::part::PartColumns;
use crate::proof::{Sum, hash_of, numbers};
use crate::row::{
    ACCESS_COLUMNS, ACCESS_WIDTH, AccessRow, OP_COLUMNS, OP_WIDTH, OpRow, access_ids,
};
use crate::{Error, Meta};
use entities::entity;
use rusqlite::params;
use std::collections::VecDeque;
use std::ops::Range;
use streamsan_model::{
    HostTime, OpSeq, Operation, ProcessId, StackId, Status, ThreadId, TraceItem,
};

/// Rows in a chunk.
const CHUNK: i64 = 1024;

/// Tables in the order in which they are read: each refers only to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Processes,
    Threads,
    Contexts,
    Streams,
    Events,
    Frames,
    Stacks,
    Allocations,
    Modules,
    Kernels,
    KernelCodes,
    Graphs,
    Operations,
    Done,
}

impl Stage {
    /// The table of entities that it reads, and its key.
    fn table(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Processes => ("process", "id"),
            Self::Threads => ("thread", "id"),
            Self::Contexts => ("context", "id"),
            Self::Streams => ("stream", "id"),
            Self::Events => ("event", "id"),
            Self::Frames => ("frame", "id"),
            // One row a stack; the others are read with it.
            Self::Stacks => ("(SELECT DISTINCT id FROM stack)", "id"),
            Self::Allocations => ("allocation", "id"),
            Self::Modules => ("module", "id"),
            Self::Kernels => ("kernel", "id"),
            Self::KernelCodes => ("kernel_code", "kernel"),
            Self::Graphs => ("graph", "id"),
            Self::Operations | Self::Done => return None,
        })
    }

    fn next(self) -> Self {
        match self {
            Self::Processes => Self::Threads,
            Self::Threads => Self::Contexts,
            Self::Contexts => Self::Streams,
            Self::Streams => Self::Events,
            Self::Events => Self::Frames,
            Self::Frames => Self::Stacks,
            Self::Stacks => Self::Allocations,
            Self::Allocations => Self::Modules,
            Self::Modules => Self::Kernels,
            Self::Kernels => Self::KernelCodes,
            Self::KernelCodes => Self::Graphs,
            Self::Graphs => Self::Operations,
            Self::Operations | Self::Done => Self::Done,
        }
    }
}

/// Entities of a table that are read when operations refer to them.
#[derive(Clone, Copy, Debug)]
struct Later {
    stage: Stage,
    /// Key of the last row that was read.
    last: i64,
    /// Number of these rows.
    rows: u64,
    /// Whether that was all of them.
    is_all: bool,
}

impl Stage {
    /// Which of the ids that operations refer to are those of the table.
    fn referred(self) -> Option<usize> {
        [Self::Streams, Self::Events, Self::Allocations].iter().position(|&stage| stage == self)
    }
}

/// The highest stream, event and allocation that operations refer to.
type Referred = [i64; 3];

/// The items of a trace: the entities and the operations by `g`, every entity before the operations
/// that refer to it.
#[derive(Debug)]
pub struct Items<'a> {
    reader: &'a Reader,
    strings: Strings<'a>,
    patterns: Patterns<'a>,
    stage: Stage,
    end: Stage,
    /// Key of the last row read in this stage.
    last: i64,
    /// Number of rows read in this stage.
    rows: u64,
    /// Number and checksum of the rows read from `op` and `access`.
    operations: Sum,
    accesses: Sum,
    /// First id of the accesses that were not read.
    next_access: i64,
    /// Entities that come later.
    later: Vec<Later>,
    /// Added to stored times, in ns; read with the first chunk of operations.
    clock_base: u64,
    chunk: VecDeque<TraceItem>,
    /// The bounds that the items so far give to the next ones.
    declared: Declared,
}

impl Iterator for Items<'_> {
    type Item = Result<TraceItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.chunk.pop_front() {
                if let Err(error) = self.declared.admit(self.reader, &item) {
                    self.chunk.clear();
                    self.stage = self.end;
                    return Some(Err(error));
                }
                return Some(Ok(item));
            }
            if self.stage == self.end {
                return None;
            }
            if let Err(error) = self.load() {
                self.stage = self.end;
                return Some(Err(error));
            }
        }
    }
}

impl<'a> Items<'a> {
    pub(super) fn new(reader: &'a Reader) -> Self {
        Self {
            reader,
            strings: Strings::new(&reader.connection),
            patterns: Patterns::new(&reader.connection),
            stage: Stage::Processes,
            end: Stage::Done,
            last: i64::MIN,
            rows: 0,
            operations: Sum::default(),
            accesses: Sum::default(),
            next_access: i64::MIN,
            later: Vec::new(),
            clock_base: 0,
            chunk: VecDeque::new(),
            declared: Declared::of_all(),
        }
    }

    /// One that leaves tables out, and reads entities only.
    fn part(self, stage: Stage, end: Stage) -> Self {
        Self { stage, end, declared: Declared::default(), ..self }
    }

    pub(super) fn entities_only(reader: &'a Reader) -> Self {
        Self { end: Stage::Operations, ..Self::new(reader) }
    }

    /// Frames and stacks.
    pub(super) fn stacks_only(reader: &'a Reader) -> Self {
        Self::new(reader).part(Stage::Frames, Stage::Allocations)
    }

    /// Processes, threads, contexts, streams and kernels: what a run has few of.
    pub(super) fn outline(reader: &'a Reader) -> impl Iterator<Item = Result<TraceItem, Error>> {
        let few = Self { end: Stage::Events, ..Self::new(reader) };
        few.chain(Self::new(reader).part(Stage::Kernels, Stage::KernelCodes))
    }

    /// Reads the next chunk, or steps to the next table.
    fn load(&mut self) -> Result<(), Error> {
        self.reader.verify(proven::ENTITIES)?;
        match self.stage {
            Stage::Operations => self.load_operations()?,
            _ => self.load_entities()?,
        }
        let is_referred = self.end == Stage::Done && self.stage.referred().is_some();
        if is_referred && !self.chunk.is_empty() {
            let is_all = (self.chunk.len() as i64) < CHUNK;
            let (stage, last, rows) = (self.stage, self.last, self.rows);
            self.later.push(Later { stage, last, rows, is_all });
        }
        if self.chunk.is_empty() {
            self.end_stage()?;
        }
        if self.chunk.is_empty() || is_referred {
            self.stage = self.stage.next();
            (self.last, self.rows) = (i64::MIN, 0);
        }
        Ok(())
    }

    /// A table was read to its end: holds what was read against what was written. A search that goes
    /// astray in a damaged file misses rows.
    fn end_stage(&mut self) -> Result<(), Error> {
        match self.stage {
            Stage::Operations => {
                for later in &self.later {
                    self.prove_count(later.stage, later.rows)?;
                }
                self.skip_accesses(i64::MAX)?;
                self.reader.prove("op", self.operations)?;
                self.reader.prove("access", self.accesses)
            }
            // Several rows make one stack.
            Stage::Stacks => Ok(()),
            stage => self.prove_count(stage, self.rows),
        }
    }

    fn prove_count(&self, stage: Stage, rows: u64) -> Result<(), Error> {
        match stage.table() {
            Some((table, _)) => self.reader.prove_count(table, rows),
            None => Ok(()),
        }
    }

    fn load_entities(&mut self) -> Result<(), Error> {
        let count;
        (self.last, count) = self.read_entities(self.stage, self.last)?;
        self.rows += count as u64;
        if self.stage == Stage::Graphs && !self.chunk.is_empty() {
            self.load_later([i64::MAX; 3])?;
        }
        Ok(())
    }

    /// Reads entities on, as far as operations refer to them.
    fn load_later(&mut self, referred: Referred) -> Result<(), Error> {
        for at in 0..self.later.len() {
            let mut later = self.later[at];
            let upto = later.stage.referred().map_or(i64::MAX, |table| referred[table]);
            while !later.is_all && later.last < upto {
                let count;
                (later.last, count) = self.read_entities(later.stage, later.last)?;
                later.rows += count as u64;
                later.is_all = (count as i64) < CHUNK;
            }
            self.later[at] = later;
        }
        Ok(())
    }

    /// Reads the entities behind a key. Answers the last key, and how many they are.
    fn read_entities(&mut self, stage: Stage, after: i64) -> Result<(i64, usize), Error> {
        let Some((table, key)) = stage.table() else { return Ok((after, 0)) };
        let (reader, strings) = (self.reader, &mut self.strings);
        let mut last = after;
        let entities = reader.rows(
            &format!("SELECT * FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {CHUNK}"),
            [after],
            |row| {
                last = ascend(last, row.get(0)?)?;
                entity(reader, stage, strings, row)
            },
        )?;
        let count = entities.len();
        self.chunk.extend(entities.into_iter().map(TraceItem::Entity));
        Ok((last, count))
    }

    fn load_operations(&mut self) -> Result<(), Error> {
        let reader = self.reader;
        if self.last == i64::MIN {
            self.clock_base = clock_base(reader)?;
        }
        let (strings, base, sum) = (&mut self.strings, self.clock_base, &mut self.operations);
        let mut referred = [i64::MIN; 3];
        // No operation has an index below 0.
        let mut last = self.last.max(-1);
        let mut operations = reader.rows(
            &format!("SELECT {OP_COLUMNS} FROM op WHERE g > ? ORDER BY g LIMIT {CHUNK}"),
            [self.last],
            |row| {
                let columns = numbers::<OP_WIDTH>(row)?;
                sum.add(hash_of(&columns));
                let row = OpRow::of_numbers(&columns).map_err(misfit)?;
                last = ascend(last, row.g)?;
                operation(reader, strings, base, &row, &mut referred)
            },
        )?;
        let (Some(first), Some(last)) = (operations.first(), operations.last()) else {
            // Entities that no operation refers to.
            return self.load_later([i64::MAX; 3]);
        };
        self.last = last.g.0 as i64;
        // Operations past the limit have no accesses.
        if let Some(first) = access_ids(first.g) {
            let end = access_ids(last.g).map_or(i64::MAX, |ids| ids.end);
            self.skip_accesses(first.start)?;
            let (sum, ids) = (&mut self.accesses, first.start..end);
            self.next_access = end;
            add_accesses(reader, &mut self.patterns, ids, &mut operations, |row| sum.add(row))?;
        }
        let touched = operations.iter().flat_map(|operation| &operation.accesses);
        let touched = touched.map(|access| i64::from(access.allocation.0)).max();
        referred[2] = referred[2].max(touched.unwrap_or(i64::MIN));
        self.load_later(referred)?;
        self.chunk.extend(operations.into_iter().map(TraceItem::Operation));
        Ok(())
    }

    /// Counts the accesses in that belong to no operation, before `end`: they came late for one that
    /// was not stored.
    fn skip_accesses(&mut self, end: i64) -> Result<(), Error> {
        let begin = std::mem::replace(&mut self.next_access, end);
        if self.reader.is_proven() {
            let sum = &mut self.accesses;
            add_accesses(self.reader, &mut self.patterns, begin..end, &mut [], |row| sum.add(row))?;
        }
        Ok(())
    }
}

/// The key of a row that is read behind the one of key `last`.
fn ascend(last: i64, key: i64) -> rusqlite::Result<i64> {
    if key > last { Ok(key) } else { Err(misfit(0)) }
}

pub(super) fn one_operation(reader: &Reader, g: OpSeq) -> Result<Option<Operation>, Error> {
    let mut strings = Strings::new(&reader.connection);
    let base = clock_base(reader)?;
    let mut found =
        reader.rows(&format!("SELECT {OP_COLUMNS} FROM op WHERE g = ?"), [g.0 as i64], |row| {
            let row = OpRow::of_numbers(&numbers(row)?).map_err(misfit)?;
            operation(reader, &mut strings, base, &row, &mut Referred::default())
        })?;
    if let Some(ids) = access_ids(g) {
        let mut patterns = Patterns::new(&reader.connection);
        add_accesses(reader, &mut patterns, ids, &mut found, |_| {})?;
    }
    Ok(found.pop())
}

/// Gives the operations, which are in ascending order, their accesses, which have these ids. `each`
/// takes the checksums of the rows.
fn add_accesses(
    reader: &Reader,
    patterns: &mut Patterns<'_>,
    ids: Range<i64>,
    operations: &mut [Operation],
    mut each: impl FnMut(u128),
) -> Result<(), Error> {
    let mut rest = operations.iter_mut().peekable();
    let mut last = -1;
    reader.each_row(
        &format!("SELECT {ACCESS_COLUMNS} FROM access WHERE id >= ? AND id < ? ORDER BY id"),
        params![ids.start, ids.end],
        |row| {
            let columns = numbers::<ACCESS_WIDTH>(row)?;
            each(hash_of(&columns));
            let row = AccessRow::of_numbers(&columns).map_err(misfit)?;
            last = ascend(last, row.id)?;
            let g = row.id as u64 >> crate::schema::ACCESS_BITS;
            while rest.next_if(|operation| operation.g.0 < g).is_some() {}
            // Accesses that came late for an operation that was not stored belong to nothing.
            if let Some(operation) = rest.peek_mut().filter(|operation| operation.g.0 == g) {
                operation.accesses.push(patterns.of_columns(&row.columns)?);
            }
            Ok(())
        },
    )
}

pub(super) fn clock_base(reader: &Reader) -> Result<u64, Error> {
    match reader.meta_rows()?.get(Meta::CLOCK_BASE) {
        None => Ok(0),
        Some(text) => text
            .parse()
            .map_err(|_| reader.corrupt(&format!("fact {} of `meta`", Meta::CLOCK_BASE))),
    }
}

fn operation(
    reader: &Reader,
    strings: &mut Strings<'_>,
    base: u64,
    row: &OpRow,
    referred: &mut Referred,
) -> rusqlite::Result<Operation> {
    let (g, columns) = (row.g, &row.action);
    let parts = match columns.has_parts() {
        true => graphs::of_operation(&reader.connection, OpSeq(g as u64))?,
        false => Vec::new(),
    };
    let in_parts = parts.iter().flat_map(PartColumns::referred);
    for (highest, ids) in columns.referred().chain(in_parts) {
        referred[highest] = referred[highest].max(ids);
    }
    let time = match (row.start_ns, row.duration_ns) {
        (Some(start), Some(duration)) => {
            let start_ns = base.wrapping_add(start as u64);
            Some(HostTime { start_ns, end_ns: start_ns.wrapping_add(duration as u64) })
        }
        _ => None,
    };
    Ok(Operation {
        g: OpSeq(g as u64),
        exit: row.exit_after.map(|after| OpSeq(g.wrapping_add(after) as u64)),
        process: ProcessId(small(row.process)?),
        thread: ThreadId(small(row.thread)?),
        api: strings.get(row.api)?,
        time,
        status: Status(small(row.result)?),
        action: columns.decode(&parts).map_err(bad_action)?,
        accesses: Vec::new(),
        stack: row.stack.map(small).transpose()?.map(StackId),
    })
}
