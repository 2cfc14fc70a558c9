//! The calls that created streams, as streams without a name are told by them.

use crate::{Error, Reader};
use rusqlite::Row;
use std::collections::BTreeSet;
use streamsan_model::{Entities, OpSeq, StackId, StreamId};

/// By the rows of the timelines: the creation of a stream is the first operation of its row.
const BY_ROWS: &str = "SELECT op.stream, op.g, op.stack FROM lod_lane CROSS JOIN op \
    WHERE op.g = lod_lane.first AND op.action = ?1 AND lod_lane.lane = 2 * op.stream ORDER BY op.g";

/// By a search through the operations, for a trace without rows.
const BY_SEARCH: &str =
    "SELECT stream, g, stack FROM op WHERE action = ?1 AND stream IS NOT NULL ORDER BY g";

impl Reader {
    /// Notes the creations of all streams. Answers their stacks.
    pub(crate) fn note_creations(&self, entities: &mut Entities) -> Result<BTreeSet<u32>, Error> {
        let has_rows = self.rows("SELECT EXISTS (SELECT 1 FROM lod_lane)", [], |row| row.get(0));
        // The first schema has no such table.
        let sql = if matches!(has_rows.as_deref(), Ok([true])) { BY_ROWS } else { BY_SEARCH };
        let creation =
            |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<u32>>(2)?));
        let mut stacks = BTreeSet::new();
        for (stream, g, stack) in self.rows(sql, [crate::action::STREAM_CREATE], creation)? {
            // The tables that follow are by id: a damaged one must not decide their size.
            if entities.stream(StreamId(stream)).is_some() {
                entities.note_creation(StreamId(stream), OpSeq(g as u64), stack.map(StackId));
                stacks.extend(stack);
            }
        }
        Ok(stacks)
    }
}
