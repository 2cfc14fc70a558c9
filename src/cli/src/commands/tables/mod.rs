//! `streamsan export --format parquet`: traces as tables, for engines that ask across many of them.

mod export;
mod rows;

pub(super) use export::export_tables;
