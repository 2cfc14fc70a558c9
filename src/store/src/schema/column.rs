//! Descriptions of tables and columns.

/// The meaning of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Row of another table.
    Id(&'static str),
    /// Position in the global issue order.
    Index,
    /// Value of an enumeration.
    Code(&'static str),
    /// Bytes.
    Bytes,
    /// Address in the process.
    Address,
    /// Nanoseconds of the host's monotonic clock.
    Nanoseconds,
    /// Bits.
    Bits,
    /// A plain number.
    Number,
    /// Text.
    Text,
    /// Packed numbers.
    Packed,
}

impl Unit {
    pub(crate) fn description(self) -> String {
        match self {
            Self::Id(table) => format!("id in `{table}`"),
            Self::Index => "issue index".to_owned(),
            Self::Code(name) => format!("code `{name}`"),
            Self::Bytes => "bytes".to_owned(),
            Self::Address => "address".to_owned(),
            Self::Nanoseconds => "ns".to_owned(),
            Self::Bits => "bits".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Packed => "packed numbers".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) declaration: &'static str,
    pub(crate) unit: Unit,
    pub(crate) doc: &'static str,
}

impl Column {
    /// Whether the column is stored in the file and not computed from others.
    pub(crate) fn is_stored(&self) -> bool {
        !self.declaration.contains("GENERATED ALWAYS")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// Primary key of several columns; the table then has no row id.
    pub(crate) key: Option<&'static str>,
    pub(crate) columns: &'static [Column],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) on: &'static str,
}
