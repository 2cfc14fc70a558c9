//! One file of a table.

use crate::{Column, Error, Kind, Table, Value};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Rows that are held until they are written together.
pub const ROWS_IN_A_GROUP: usize = 1 << 16;

/// Bytes of text that are held at most, whatever the number of rows.
const TEXT_IN_A_GROUP: usize = 16 << 20;

/// The values of a column that wait to be written.
#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
}

#[derive(Debug)]
struct Held {
    column: &'static Column,
    values: Values,
    /// Of each row 1 for a value and 0 for none; nothing where each row has a value.
    levels: Vec<i16>,
}

impl Held {
    fn new(column: &'static Column) -> Self {
        let values = match column.kind {
            Kind::Integer | Kind::Unsigned => Values::Integers(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { column, values, levels: Vec::new() }
    }

    /// Takes the value of a row; answers the bytes of its text.
    ///
    /// # Panics
    /// The column is for other values: a mistake of this program.
    fn take(&mut self, value: Value<'_>) -> usize {
        let mut text = 0;
        match (&mut self.values, self.column.kind, value) {
            (_, _, Value::Null) => assert!(self.column.nullable, "{} is null", self.column.name),
            (Values::Integers(values), Kind::Integer, Value::Integer(number)) => {
                values.push(number);
            }
            // The same bits; the type of the column says that there is no sign.
            (Values::Integers(values), Kind::Unsigned, Value::Unsigned(number)) => {
                values.push(number as i64);
            }
            (Values::Texts(values), _, Value::Text(value)) => {
                text = value.len();
                values.push(ByteArray::from(value));
            }
            (Values::Flags(values), _, Value::Flag(flag)) => values.push(flag),
            (_, kind, value) => panic!("{} is of {kind:?}, not {value:?}", self.column.name),
        }
        if self.column.nullable {
            self.levels.push(i16::from(value != Value::Null));
        }
        text
    }

    fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            Values::Integers(values) => values.clear(),
            Values::Texts(values) => values.clear(),
            Values::Flags(values) => values.clear(),
        }
    }
}

/// A file that is being written under another name.
#[derive(Debug)]
pub(crate) struct TableFile {
    /// Its name once it is whole.
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    temporary: NamedTempFile,
    columns: Vec<Held>,
    rows: usize,
    text: usize,
}

impl TableFile {
    /// Begins the file of a table at `path`, in a directory that is there.
    pub(crate) fn create(table: Table, path: PathBuf) -> Result<Self, Error> {
        let failed = Error::of(&path);
        let directory = path.parent().unwrap_or(Path::new("."));
        // Engines pass over names that begin with a dot.
        let temporary = tempfile::Builder::new()
            .prefix(".part-")
            .suffix(".tmp")
            // As any other file of this user: the umask takes its part.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(&failed)?;
        let out = temporary.reopen().map_err(&failed)?;
        let writer = writer(table, out).map_err(Error::of_parquet(&path))?;
        let columns = table.columns().iter().map(Held::new).collect();
        Ok(Self { path, writer, temporary, columns, rows: 0, text: 0 })
    }

    /// Adds a row.
    ///
    /// # Panics
    /// The row is not one of this table: a mistake of this program.
    pub(crate) fn row(&mut self, row: &[Value<'_>]) -> Result<(), Error> {
        assert_eq!(row.len(), self.columns.len(), "the columns of {}", self.path.display());
        for (column, value) in self.columns.iter_mut().zip(row) {
            self.text += column.take(*value);
        }
        self.rows += 1;
        if self.rows >= ROWS_IN_A_GROUP || self.text >= TEXT_IN_A_GROUP {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the rows that wait.
    fn flush(&mut self) -> Result<(), Error> {
        if self.rows > 0 {
            group(&mut self.writer, &self.columns).map_err(Error::of_parquet(&self.path))?;
            self.columns.iter_mut().for_each(Held::clear);
            (self.rows, self.text) = (0, 0);
        }
        Ok(())
    }

    /// Completes the file; it is safe on the disk afterwards, under its other name.
    pub(crate) fn finish(mut self) -> Result<Whole, Error> {
        self.flush()?;
        self.writer.close().map_err(Error::of_parquet(&self.path))?;
        let synced = self.temporary.as_file().sync_all();
        synced.map_err(Error::of(&self.path))?;
        Ok(Whole { path: self.path, temporary: self.temporary })
    }
}

/// A whole file that has not got its name yet.
#[derive(Debug)]
pub(crate) struct Whole {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl Whole {
    /// Gives the file its name, in the place of an earlier one.
    pub(crate) fn publish(self) -> Result<(), Error> {
        let failed = Error::of(&self.path);
        self.temporary.persist(&self.path).map(drop).map_err(|refused| failed(refused.error))
    }
}

fn writer(table: Table, out: File) -> Result<SerializedFileWriter<File>, ParquetError> {
    let columns = table.columns().iter().map(Column::parquet).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.name()).with_fields(columns).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("streamsan {}", env!("CARGO_PKG_VERSION")))
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

/// Writes a group of rows.
fn group(writer: &mut SerializedFileWriter<File>, columns: &[Held]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for held in columns {
        let Some(mut column) = group.next_column()? else { break };
        let levels = held.column.nullable.then_some(held.levels.as_slice());
        match &held.values {
            Values::Integers(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
            }
            Values::Texts(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
            }
            Values::Flags(values) => {
                column.typed::<BoolType>().write_batch(values, levels, None)?;
            }
        }
        column.close()?;
    }
    group.close().map(drop)
}
