//! Stored findings.

use super::Reader;
use super::decode::{Patterns, Strings, code, misfit, range, unsigned};
use crate::Error;
use rusqlite::Row;
use streamsan_model::{
    AllocationId, Confidence, ConflictKind, EventId, Finding, FindingAccess, Fingerprint, Lint,
    OpSeq, ProposedEdge, RaceClass, Severity, StackId, StreamId,
};

pub(super) fn read(reader: &Reader) -> Result<Vec<Finding>, Error> {
    let mut strings = Strings::new(&reader.connection);
    let mut patterns = Patterns::new(&reader.connection);
    let sides = reader.rows(
        "SELECT finding, side, op, stream, api, kernel, allocation, start, length, mode, basis, \
         pattern, stack FROM finding_access ORDER BY finding, side",
        [],
        |row| {
            let side = FindingAccess {
                op: OpSeq(unsigned(row, 2)?),
                stream: row.get::<_, Option<u32>>(3)?.map(StreamId),
                api: strings.text(row, 4)?,
                kernel: strings.optional(row, 5)?,
                access: patterns.access(row, 6)?,
                stack: row.get::<_, Option<u32>>(12)?.map(StackId),
            };
            Ok((row.get::<_, i64>(0)?, side))
        },
    )?;
    let mut sides = sides.into_iter();
    let mut side = |finding: i64| {
        sides.next().filter(|(id, _)| *id == finding).map(|(_, side)| side).ok_or_else(|| misfit(0))
    };
    reader.rows(
        "SELECT id, fingerprint, severity, class, kind, confidence, allocation, start, length, \
         knows, nearest, masked_by, record_after_op, on_stream, wait_before_op, in_stream \
         FROM finding ORDER BY id",
        [],
        |row| {
            let id = row.get(0)?;
            Ok(Finding {
                fingerprint: Fingerprint(unsigned(row, 1)?),
                severity: code(row, 2, Severity::ALL)?,
                class: code(row, 3, RaceClass::ALL)?,
                kind: code(row, 4, ConflictKind::ALL)?,
                confidence: code(row, 5, Confidence::ALL)?,
                allocation: AllocationId(row.get(6)?),
                overlap: range(row, 7)?,
                first: side(id)?,
                second: side(id)?,
                knows: op(row, 9)?,
                nearest: op(row, 10)?,
                masked_by: op(row, 11)?,
                proposed_edge: proposed_edge(row)?,
            })
        },
    )
}

/// Stored lints.
pub(super) fn lints(reader: &Reader) -> Result<Vec<Lint>, Error> {
    let mut strings = Strings::new(&reader.connection);
    reader.rows(
        "SELECT fingerprint, class, op, api, stream, event, related, stack, related_stack FROM lint \
         ORDER BY id",
        [],
        |row| {
            Ok(Lint {
                fingerprint: Fingerprint(unsigned(row, 0)?),
                class: code(row, 1, RaceClass::ALL)?,
                op: OpSeq(unsigned(row, 2)?),
                api: strings.get(row.get(3)?)?,
                stream: row.get::<_, Option<u32>>(4)?.map(StreamId),
                event: row.get::<_, Option<u32>>(5)?.map(EventId),
                related: op(row, 6)?,
                stack: row.get::<_, Option<u32>>(7)?.map(StackId),
                related_stack: row.get::<_, Option<u32>>(8)?.map(StackId),
            })
        },
    )
}

fn op(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<OpSeq>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|g| OpSeq(g as u64)))
}

fn proposed_edge(row: &Row<'_>) -> rusqlite::Result<Option<ProposedEdge>> {
    let Some(record_after_op) = op(row, 12)? else {
        return Ok(None);
    };
    Ok(Some(ProposedEdge {
        record_after_op,
        on_stream: row.get::<_, Option<u32>>(13)?.map(StreamId),
        wait_before_op: op(row, 14)?.ok_or_else(|| misfit(14))?,
        in_stream: row.get::<_, Option<u32>>(15)?.map(StreamId),
    }))
}
