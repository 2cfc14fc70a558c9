//! From columns to values of the model.

use crate::row::{AccessColumns, Shape, byte_range, extent};
use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{Access, AllocationId, Basis, ByteRange, Mode};

/// A value that does not fit its column; reported as damage.
pub(crate) fn misfit(column: usize) -> rusqlite::Error {
    rusqlite::Error::IntegralValueOutOfRange(column, 0)
}

/// A number that its column must have room for.
pub(super) fn small<T: TryFrom<i64>>(number: i64) -> rusqlite::Result<T> {
    T::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, number))
}

/// The value of a code: its position in the list.
pub(crate) fn code<T: Copy>(row: &Row<'_>, column: usize, all: &[T]) -> rusqlite::Result<T> {
    all.get(row.get::<_, u8>(column)? as usize).copied().ok_or_else(|| misfit(column))
}

fn at<T: Copy>(all: &[T], code: i64) -> rusqlite::Result<T> {
    all.get(small::<usize>(code)?).copied().ok_or_else(|| misfit(0))
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

pub(super) fn range(row: &Row<'_>, column: usize) -> rusqlite::Result<ByteRange> {
    Ok(byte_range(row.get(column)?, row.get(column + 1)?))
}

/// Texts by id, each read once.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    connection: &'a Connection,
    texts: HashMap<i64, Arc<str>>,
}

impl<'a> Strings<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, texts: HashMap::new() }
    }

    pub(super) fn get(&mut self, id: i64) -> rusqlite::Result<Arc<str>> {
        if let Some(text) = self.texts.get(&id) {
            return Ok(text.clone());
        }
        let text: Arc<str> = self
            .connection
            .prepare_cached("SELECT value FROM string WHERE id = ?")?
            .query_row([id], |row| row.get(0))?;
        self.texts.insert(id, text.clone());
        Ok(text)
    }

    pub(super) fn text(&mut self, row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
        self.get(row.get(column)?).map(|text| text.to_string())
    }

    pub(super) fn optional(
        &mut self,
        row: &Row<'_>,
        column: usize,
    ) -> rusqlite::Result<Option<String>> {
        let id: Option<i64> = row.get(column)?;
        id.map(|id| self.get(id).map(|text| text.to_string())).transpose()
    }
}

/// Shapes of strided accesses by id, each read once.
#[derive(Debug)]
pub(crate) struct Patterns<'a> {
    connection: &'a Connection,
    shapes: HashMap<i64, Shape>,
}

impl<'a> Patterns<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection, shapes: HashMap::new() }
    }

    fn get(&mut self, id: i64) -> rusqlite::Result<Shape> {
        if let Some(&shape) = self.shapes.get(&id) {
            return Ok(shape);
        }
        let shape = self
            .connection
            .prepare_cached(
                "SELECT width, pitch, rows, slice_pitch, slices FROM access_pattern WHERE id = ?",
            )?
            .query_row([id], |row| {
                let mut shape = [0; 5];
                for (column, value) in shape.iter_mut().enumerate() {
                    *value = unsigned(row, column)?;
                }
                // A pattern without a run has no hull, and one whose runs all lie in one place is
                // none: they cannot have been written.
                let [width, pitch, rows, slice_pitch, slices] = shape;
                let is_flat = rows > 1 && pitch == 0 || slices > 1 && slice_pitch == 0;
                if width == 0 || rows == 0 || slices == 0 || is_flat {
                    return Err(misfit(2));
                }
                Ok(shape)
            })?;
        self.shapes.insert(id, shape);
        Ok(shape)
    }

    /// An access in the columns allocation, start, length, mode, basis, pattern from `column` on.
    pub(crate) fn access(&mut self, row: &Row<'_>, column: usize) -> rusqlite::Result<Access> {
        self.of_columns(&AccessColumns {
            allocation: row.get(column)?,
            start: row.get(column + 1)?,
            length: row.get(column + 2)?,
            mode: row.get(column + 3)?,
            basis: row.get(column + 4)?,
            pattern: row.get(column + 5)?,
        })
    }

    pub(super) fn of_columns(&mut self, columns: &AccessColumns) -> rusqlite::Result<Access> {
        let shape = columns.pattern.map(|id| self.get(id)).transpose()?;
        Ok(Access {
            allocation: AllocationId(small(columns.allocation)?),
            extent: extent(columns.start, columns.length, shape),
            mode: at(&Mode::ALL, columns.mode)?,
            basis: at(&Basis::ALL, columns.basis)?,
        })
    }
}

/// The error for an action whose columns do not fit it.
pub(super) fn bad_action(column: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Integer, column.into())
}
