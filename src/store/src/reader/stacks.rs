//! Stored host stacks.

use super::Reader;
use super::decode::{Strings, misfit};
use super::items::Items;
use crate::Error;
use rusqlite::{Connection, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streamsan_model::{
    Entities, Entity, Frame, FrameId, FramePlace, OpSeq, SourceFrame, Stack, StackId, TraceItem,
};

/// A row of `frame`, with its rows in other tables.
pub(super) fn frame(
    connection: &Connection,
    strings: &mut Strings<'_>,
    row: &Row<'_>,
) -> rusqlite::Result<Frame> {
    let id: u32 = row.get(0)?;
    let place = match row.get::<_, Option<i64>>(1)? {
        None => FramePlace::Python,
        Some(image) => FramePlace::Native {
            image: strings.get(image)?,
            build_id: match strings.optional(row, 2)? {
                None => None,
                Some(digits) => Some(bytes(&digits).ok_or_else(|| misfit(2))?),
            },
            offset: row.get::<_, Option<i64>>(3)?.unwrap_or_default() as u64,
        },
    };
    let mut source = connection.prepare_cached(
        "SELECT function, file, line, is_inlined FROM frame_source WHERE frame = ? \
         ORDER BY ordinal",
    )?;
    let mut text = |id: Option<i64>| id.map(|id| strings.get(id)).transpose();
    let source = source.query_map([id], |row| {
        Ok(SourceFrame {
            function: text(row.get(0)?)?,
            file: text(row.get(1)?)?,
            line: row.get(2)?,
            inlined: row.get(3)?,
        })
    })?;
    let source = source.collect::<rusqlite::Result<_>>()?;
    Ok(Frame { id: FrameId(id), place, source })
}

/// The stack of an id that `stack` has rows of.
pub(super) fn stack(connection: &Connection, id: u32) -> rusqlite::Result<Stack> {
    let mut rows =
        connection.prepare_cached("SELECT frame FROM stack WHERE id = ? ORDER BY depth")?;
    let mut stack = Stack { id: StackId(id), frames: Vec::new(), truncated: false };
    let mut rows = rows.query([id])?;
    while let Some(row) = rows.next()? {
        match row.get::<_, Option<u32>>(0)? {
            Some(frame) => stack.frames.push(FrameId(frame)),
            None => stack.truncated = true,
        }
    }
    Ok(stack)
}

/// The frames of the stack of an operation, innermost first, and whether there were more.
pub(crate) fn of_operation(reader: &Reader, g: OpSeq) -> Result<(Vec<Arc<Frame>>, bool), Error> {
    let connection = &reader.connection;
    let mut strings = Strings::new(connection);
    let frames = reader.rows(
        "SELECT frame.*, stack.frame IS NULL FROM op JOIN stack ON stack.id = op.stack \
         LEFT JOIN frame ON frame.id = stack.frame WHERE op.g = ? ORDER BY stack.depth",
        [i64::try_from(g.0).unwrap_or(i64::MAX)],
        |row| match row.get(4)? {
            true => Ok(None),
            false => frame(connection, &mut strings, row).map(|frame| Some(Arc::new(frame))),
        },
    )?;
    let truncated = frames.last().is_some_and(Option::is_none);
    Ok((frames.into_iter().flatten().collect(), truncated))
}

/// The frames of a stack, innermost first.
pub(crate) fn frames(connection: &Connection, id: u32) -> rusqlite::Result<Vec<Frame>> {
    let mut strings = Strings::new(connection);
    let mut statement = connection.prepare_cached(
        "SELECT frame.* FROM stack JOIN frame ON frame.id = stack.frame WHERE stack.id = ? \
         ORDER BY stack.depth",
    )?;
    let mut rows = statement.query([id])?;
    let mut frames = Vec::new();
    while let Some(row) = rows.next()? {
        frames.push(frame(connection, &mut strings, row)?);
    }
    Ok(frames)
}

/// Declares stacks, and their frames before them. Ids are dense: one beyond the number of rows, which
/// would decide the size of a table, is damage.
pub(crate) fn declare(
    reader: &Reader,
    ids: BTreeSet<u32>,
    entities: &mut Entities,
) -> Result<(), Error> {
    let Some(last) = ids.last() else { return Ok(()) };
    let connection = &reader.connection;
    reader.holds("(SELECT DISTINCT id FROM stack)", *last)?;
    let mut declared: BTreeMap<FrameId, Frame> = BTreeMap::new();
    for &id in &ids {
        let frames = frames(connection, id).map_err(|e| reader.failed(e))?;
        declared.extend(frames.into_iter().map(|frame| (frame.id, frame)));
    }
    if let Some((last, _)) = declared.last_key_value() {
        reader.holds("frame", last.0)?;
    }
    for frame in declared.into_values() {
        entities.declare(Entity::Frame(Arc::new(frame)));
    }
    for id in ids {
        let stack = stack(connection, id).map_err(|e| reader.failed(e))?;
        entities.declare(Entity::Stack(Arc::new(stack)));
    }
    Ok(())
}

/// All frames and stacks.
pub(crate) fn all(reader: &Reader) -> Result<Entities, Error> {
    let mut entities = Entities::default();
    for item in Items::stacks_only(reader) {
        if let TraceItem::Entity(entity) = item? {
            entities.declare(entity);
        }
    }
    Ok(entities)
}

/// The bytes of pairs of hexadecimal digits.
fn bytes(digits: &str) -> Option<Arc<[u8]>> {
    let digits = digits.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}
