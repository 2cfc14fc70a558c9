//! Code images, and the stored knowledge of kernels from their code.

use super::Reader;
use super::decode::{Strings, code as value_of, unsigned};
use rusqlite::Row;
use streamsan_model::{
    CodeSource, KernelCode, KernelGlobal, KernelId, KernelWord, Mode, Module, ModuleId, ProcessId,
    WordKind,
};

/// A row of `module`.
pub(super) fn module(strings: &mut Strings<'_>, row: &Row<'_>) -> rusqlite::Result<Module> {
    Ok(Module {
        id: ModuleId(row.get(0)?),
        process: ProcessId(row.get(1)?),
        hash: row.get::<_, Option<i64>>(2)?.map(|hash| hash as u64),
        size: unsigned(row, 3)?,
        path: strings.optional(row, 4)?,
        offset: unsigned(row, 5)?,
    })
}

fn mode(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Mode>> {
    match row.get::<_, Option<i64>>(column)? {
        None => Ok(None),
        Some(_) => value_of(row, column, &Mode::ALL).map(Some),
    }
}

/// A row of `kernel_code`, with its rows in other tables.
pub(super) fn code(
    reader: &Reader,
    strings: &mut Strings<'_>,
    row: &Row<'_>,
) -> rusqlite::Result<KernelCode> {
    let kernel: u32 = row.get(0)?;
    let mut words = reader.connection.prepare_cached(
        "SELECT param, offset, kind, mode, is_table FROM kernel_word WHERE kernel = ? \
         ORDER BY ordinal",
    )?;
    let words = words.query_map([kernel], |row| {
        Ok(KernelWord {
            param: row.get(0)?,
            offset: row.get(1)?,
            kind: value_of(row, 2, &WordKind::ALL)?,
            mode: mode(row, 3)?,
            table: row.get(4)?,
        })
    })?;
    let words = words.collect::<rusqlite::Result<_>>()?;
    let mut globals = reader.connection.prepare_cached(
        "SELECT name, mode, is_table FROM kernel_global WHERE kernel = ? ORDER BY ordinal",
    )?;
    let globals = globals.query_map([kernel], |row| {
        Ok(KernelGlobal { name: strings.text(row, 0)?, mode: mode(row, 1)?, table: row.get(2)? })
    })?;
    let globals = globals.collect::<rusqlite::Result<_>>()?;
    Ok(KernelCode {
        kernel: KernelId(kernel),
        module: row.get::<_, Option<u32>>(1)?.map(ModuleId),
        source: value_of(row, 2, &CodeSource::ALL)?,
        reason: strings.optional(row, 3)?.unwrap_or_default(),
        waits_on_primary: row.get(4)?,
        words,
        globals,
    })
}
