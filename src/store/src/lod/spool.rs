//! Data that would grow with the length of a recording and are rarely asked for: a database of its
//! own, in a file that SQLite makes among temporary files, without a name, and that is gone with
//! it.

use rusqlite::Connection;

/// Opens one with these tables. It keeps half a MiB in memory.
pub(super) fn open(tables: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open("")?;
    // Nobody needs it after a failure: the tables are made by reading back then.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -512",
    )?;
    connection.execute_batch(tables)?;
    Ok(connection)
}
