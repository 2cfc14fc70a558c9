//! Operations and their accesses as rows.

use super::Writer;
use super::batch::ReturnRow;
use crate::action::{ActionColumns, CONTROL_FLAGS, OTHER_FLAGS, control_flags};
use crate::row::{AccessColumns, AccessRow, OpRow, Shape, access_ids};
use crate::{Error, Meta};
use std::ops::Range;
use streamsan_model::{Access, GridControl, HostTime, OpSeq, Operation, Status};

impl Writer {
    pub(super) fn put_operation(&mut self, operation: &Operation) -> Result<(), Error> {
        self.put_accesses(operation.g, &operation.accesses)?;
        self.put_parts(operation.g, &operation.action);
        let (start_ns, duration_ns) = match operation.time {
            None => (None, None),
            Some(HostTime { start_ns, end_ns }) => {
                let base = self.clock_base(start_ns);
                (Some(start_ns.wrapping_sub(base)), Some(end_ns.wrapping_sub(start_ns)))
            }
        };
        let api = self.intern(&operation.api);
        let g = operation.g.0;
        self.operations.push(OpRow {
            g: g as i64,
            exit_after: operation.exit.map(|exit| exit.0.wrapping_sub(g) as i64),
            process: i64::from(operation.process.0),
            thread: i64::from(operation.thread.0),
            api,
            action: ActionColumns::from(&operation.action),
            start_ns: start_ns.map(|t| t as i64),
            duration_ns: duration_ns.map(|t| t as i64),
            result: i64::from(operation.status.0),
            stack: operation.stack.map(|stack| i64::from(stack.0)),
        });
        Ok(())
    }

    pub(super) fn put_return(
        &mut self,
        g: OpSeq,
        exit: OpSeq,
        status: Status,
    ) -> Result<(), Error> {
        let exit_after = exit.0.wrapping_sub(g.0) as i64;
        let rows = &mut self.operations;
        if let Ok(at) = rows.binary_search_by_key(&(g.0 as i64), |row| row.g) {
            rows[at].exit_after = Some(exit_after);
            rows[at].result = i64::from(status.0);
            return Ok(());
        }
        // Within a batch returns come before operations: the operation's batch goes first.
        self.flush()?;
        let (g, result) = (g.0 as i64, i64::from(status.0));
        self.batch.returns.push(ReturnRow { g, exit_after, result });
        Ok(())
    }

    pub(super) fn put_late_accesses(&mut self, g: OpSeq, list: &[Access]) -> Result<(), Error> {
        if list.is_empty() && access_ids(g).is_none() {
            return Ok(());
        }
        let ids = self.ids_of_accesses(g, list)?;
        if self.batch.replaced.contains_key(&ids.start) {
            // All that is replaced goes before what replaces it.
            self.flush()?;
        }
        self.batch.replaced.insert(ids.start, ids.end);
        for (id, access) in ids.zip(list) {
            let row = self.access_row(id, access);
            self.batch.replacements.push(row);
        }
        Ok(())
    }

    pub(super) fn put_late_control(&mut self, g: OpSeq, control: GridControl) -> Result<(), Error> {
        self.flush()?;
        self.change(
            "UPDATE op SET flags = (flags & ~?) | ? WHERE g = ?",
            &[Some(CONTROL_FLAGS), Some(control_flags(control)), Some(g.0 as i64)],
        );
        Ok(())
    }

    pub(super) fn put_late_early(&mut self, g: OpSeq, early: u32) -> Result<(), Error> {
        self.flush()?;
        let early = GridControl { early, ..GridControl::default() };
        self.change(
            "UPDATE op SET flags = (flags & ?) | ? WHERE g = ?",
            &[Some(OTHER_FLAGS), Some(control_flags(early)), Some(g.0 as i64)],
        );
        Ok(())
    }

    fn put_accesses(&mut self, g: OpSeq, list: &[Access]) -> Result<(), Error> {
        if list.is_empty() {
            return Ok(());
        }
        let ids = self.ids_of_accesses(g, list)?;
        for (id, access) in ids.zip(list) {
            let row = self.access_row(id, access);
            self.batch.accesses.push(&row.numbers());
        }
        Ok(())
    }

    /// The ids that an operation's accesses can have.
    fn ids_of_accesses(&mut self, g: OpSeq, list: &[Access]) -> Result<Range<i64>, Error> {
        let ids = access_ids(g).ok_or("its number is too large").and_then(|ids| {
            let room = (ids.end - ids.start) as u64;
            (list.len() as u64 <= room).then_some(ids).ok_or("it touches too many separate ranges")
        });
        ids.map_err(|reason| {
            self.stop();
            Error::Unstorable { op: g.0, reason }
        })
    }

    fn access_row(&mut self, id: i64, access: &Access) -> AccessRow {
        AccessRow { id, columns: AccessColumns::encode(access, |shape| self.pattern(shape)) }
    }

    /// The id of a pattern's shape.
    pub(super) fn pattern(&mut self, shape: Shape) -> i64 {
        if let Some(&id) = self.patterns.get(&shape) {
            return id;
        }
        let id = self.patterns.len() as i64 + 1;
        let [width, pitch, rows, slice_pitch, slices] = shape.map(|n| Some(n as i64));
        self.put(
            "INSERT INTO access_pattern VALUES (?, ?, ?, ?, ?, ?)",
            &[Some(id), width, pitch, rows, slice_pitch, slices],
        );
        self.patterns.insert(shape, id);
        id
    }

    pub(super) fn clock_base(&mut self, first: u64) -> u64 {
        if let Some(base) = self.clock_base {
            return base;
        }
        self.batch.meta.push((Meta::CLOCK_BASE.to_owned(), first.to_string()));
        self.clock_base = Some(first);
        first
    }
}
