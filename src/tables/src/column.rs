//! Columns and their values.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::Type;
use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of 64 bits with a sign.
    Integer,
    /// A number of 64 bits without a sign: addresses, handles.
    Unsigned,
    /// UTF-8.
    Text,
    /// True or false.
    Flag,
}

impl Kind {
    /// The word of the document.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::Text => "text",
            Self::Flag => "flag",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have nothing in it.
    pub nullable: bool,
    /// What it means, with its unit, for the document.
    pub meaning: &'static str,
}

impl Column {
    pub(crate) fn parquet(&self) -> Result<Arc<Type>, parquet::errors::ParquetError> {
        let (physical, logical, converted) = match self.kind {
            Kind::Integer => (Physical::INT64, None, ConvertedType::NONE),
            Kind::Unsigned => {
                (Physical::INT64, Some(LogicalType::integer(64, false)), ConvertedType::UINT_64)
            }
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), ConvertedType::UTF8),
            Kind::Flag => (Physical::BOOLEAN, None, ConvertedType::NONE),
        };
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, physical)
            .with_logical_type(logical)
            .with_converted_type(converted)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    }
}

/// What a row has in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// Of [`Kind::Integer`].
    Integer(i64),
    /// Of [`Kind::Unsigned`].
    Unsigned(u64),
    /// Of [`Kind::Text`].
    Text(&'a str),
    /// Of [`Kind::Flag`].
    Flag(bool),
}

impl<'a> Value<'a> {
    /// An index, an id or an amount. What no signed number holds becomes the largest one.
    pub fn amount(number: impl Into<u64>) -> Self {
        Self::Integer(i64::try_from(number.into()).unwrap_or(i64::MAX))
    }

    /// The value of something that may be missing.
    pub fn of<T>(optional: Option<T>, value: impl FnOnce(T) -> Value<'a>) -> Self {
        optional.map_or(Self::Null, value)
    }
}
