//! Texts are stored once and referred to by number.

use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Arc;

/// The texts stored so far.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: HashMap<Arc<str>, i64>,
}

impl Strings {
    /// Those that a trace holds already.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT value, id FROM string")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { ids: rows.collect::<rusqlite::Result<_>>()? })
    }

    /// The id of a text, stored now if it is new.
    pub(super) fn id(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<i64> {
        if let Some(&id) = self.ids.get(text) {
            return Ok(id);
        }
        let id = self.ids.len() as i64 + 1;
        connection
            .prepare_cached("INSERT INTO string (id, value) VALUES (?, ?)")?
            .execute(params![id, text])?;
        self.ids.insert(Arc::from(text), id);
        Ok(id)
    }
}
