//! The files of one trace.

use crate::file::{TableFile, Whole};
use crate::{Error, Table, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the rows of one trace into all tables.
#[derive(Debug)]
pub struct Partition {
    files: Vec<TableFile>,
}

impl Partition {
    /// Begins the files of the trace `name` below `directory`, which is made where it is missing.
    ///
    /// # Errors
    /// A directory or a file that cannot be made.
    pub fn create(directory: &Path, name: &str) -> Result<Self, Error> {
        let files = Table::ALL.iter().map(|&table| {
            let path = Self::path(directory, table, name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(Error::of(&path))?;
            }
            TableFile::create(table, path)
        });
        Ok(Self { files: files.collect::<Result<_, _>>()? })
    }

    /// The file of a trace in a table.
    fn path(directory: &Path, table: Table, name: &str) -> PathBuf {
        directory.join(table.name()).join(format!("trace={name}")).join("part-0.parquet")
    }

    /// Adds a row to a table.
    ///
    /// # Errors
    /// It cannot be written.
    ///
    /// # Panics
    /// The row does not have the columns of the table: a mistake of the caller.
    pub fn row(&mut self, table: Table, row: &[Value<'_>]) -> Result<(), Error> {
        self.files[table as usize].row(row)
    }

    /// Completes all files, and gives them their names once all are whole: where this fails, what an
    /// earlier export of the trace has written is still there.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let whole = self.files.into_iter().map(TableFile::finish);
        let whole: Vec<Whole> = whole.collect::<Result<_, _>>()?;
        whole.into_iter().try_for_each(Whole::publish)
    }
}
