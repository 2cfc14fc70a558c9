//! The tables of many traces.
//!
//! A trace is read and analysed once, and its rows are written on the way. A text trace is stored for
//! the time of the command.

use super::super::gate::{known_upstream, read_gate};
use super::super::jobs::{in_order, jobs};
use super::super::output::warn;
use super::super::stored::Stored;
use super::super::trace::{Concluded, Trace};
use super::super::traces::traces;
use super::super::warn_of_large_images;
use super::rows::Rows;
use crate::error::Error;
use crate::options::ExportOptions;
use Value::{Flag, Integer, Null, Text, Unsigned};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use streamsan_model::{ExitCode, OpSeq};
use streamsan_report::{FindingRow, Gate, Report, SideOfRow};
use streamsan_store::Reader;
use streamsan_tables::{Partition, Table, Value, partition_names};

/// Writes the tables of all traces that are named.
///
/// # Errors
///
/// Options that say nothing here, a trace that cannot be read where it is the only one, and a table that
/// cannot be written.
pub(in crate::commands) fn export_tables(options: &ExportOptions) -> Result<ExitCode, Error> {
    let Some(directory) = &options.output else {
        let message = "tables are written into a directory, which -o names";
        return Err(Error::Usage(message.to_owned()));
    };
    if options.verify || !options.source_root.is_empty() {
        let message = "tables hold neither effects of proposed edges nor lines of sources: leave out \
                       --verify and --source-root";
        return Err(Error::Usage(message.to_owned()));
    }
    let gate = read_gate(&options.gate)?;
    let files = traces(&options.files)?;
    let names = partition_names(&files);
    // Where one table cannot be written, the others cannot either.
    let is_over = AtomicBool::new(false);
    let work = |at: usize| {
        if is_over.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let written = export_one(&files[at], directory, &names[at], (options, &gate));
        if matches!(written, Err(Error::Tables(_))) {
            is_over.store(true, Ordering::Relaxed);
        }
        written
    };
    let (mut too_large, mut failures) = (BTreeSet::new(), Vec::new());
    in_order(files.len(), jobs(options.jobs), work, |written| match written {
        Ok(images) => too_large.extend(images),
        Err(error) => failures.push(error),
    });
    warn_of_large_images(&too_large.into_iter().collect::<Vec<_>>());
    let of_tables = failures.iter().position(|error| matches!(error, Error::Tables(_)));
    if let Some(position) = of_tables {
        return Err(failures.swap_remove(position));
    }
    if files.len() == 1
        && let Some(error) = failures.pop()
    {
        return Err(error);
    }
    failures.iter().for_each(warn);
    Ok(failures.first().map_or(ExitCode::SUCCESS, Error::exit_code))
}

/// Writes the tables of a trace; answers the images that are too large to be looked at.
fn export_one(
    file: &Path,
    directory: &Path,
    name: &str,
    (options, gate): (&ExportOptions, &Gate),
) -> Result<Vec<PathBuf>, Error> {
    let stored = Stored::of(file)?;
    let trace = Trace::Stored(Box::new(Reader::open(stored.path())?));
    let mut rows = Rows::new(Partition::create(directory, name)?);
    let concluded = trace.conclude(file, false, &mut rows);
    // A trace of which not all was read because a row was not written says nothing.
    rows.so_far()?;
    let (concluded, too_large) = concluded?;
    let mut report =
        concluded.report_with(options.threshold.fail_on, known_upstream(&options.gate));
    report.hold_against(gate);
    rows.stacks(concluded.entities());
    concluded.trace.each_range(|range| rows.range(&range))?;
    report.rows().iter().for_each(|finding| finding_row(&mut rows, finding));
    for (kind, text) in report.reasons_in_words() {
        rows.row(Table::Reasons, &[Text(kind), Text(&text)]);
    }
    trace_row(&mut rows, &concluded, &report)?;
    rows.finish()?;
    Ok(too_large)
}

fn trace_row(rows: &mut Rows, concluded: &Concluded, report: &Report<'_>) -> Result<(), Error> {
    let Trace::Stored(reader) = &concluded.trace else { return Ok(()) };
    let meta = reader.meta()?;
    // What was made of a text trace has the time of nothing.
    let began = meta.started_at.timestamp_nanos_opt().filter(|&began| began != 0);
    let (calls, dropped) = report.calls_seen();
    let operations = Value::amount(rows.operations);
    rows.row(
        Table::Traces,
        &[
            Text(&concluded.file.to_string_lossy()),
            Text(&meta.tool_version),
            Text(reader.state().description()),
            Value::of(began, Integer),
            Text(&meta.host),
            Text(&meta.driver),
            Text(&meta.command.join(" ")),
            Text(report.verdict().description()),
            Value::amount(calls),
            Value::amount(dropped),
            operations,
        ],
    );
    Ok(())
}

fn finding_row(rows: &mut Rows, finding: &FindingRow) {
    let memory = finding.memory.as_ref();
    let op = |op: OpSeq| Value::amount(op.0);
    let [first_op, last_op] = finding.ops.map(op);
    let mut row = vec![
        Text(&finding.id),
        Text(finding.severity.description()),
        Text(finding.class.description()),
        Value::of(finding.kind, |kind| Text(kind.description())),
        Value::of(finding.confidence, |confidence| Text(confidence.description())),
        Flag(finding.fails),
        Text(finding.disposition.description()),
        Value::amount(finding.count),
        first_op,
        last_op,
        Text(&finding.title),
        Value::of(memory, |memory| Value::amount(memory.allocation.0)),
        Value::of(memory, |memory| Text(&memory.name)),
        Value::of(memory, |memory| Unsigned(memory.overlap.start)),
        Value::of(memory, |memory| Value::amount(memory.overlap.len())),
    ];
    finding.sides.iter().for_each(|side| row.extend(side_values(side.as_ref())));
    row.extend([Value::of(finding.masked_by, op), Value::of(finding.fix.as_deref(), Text)]);
    rows.row(Table::Findings, &row);
}

fn side_values(side: Option<&SideOfRow>) -> [Value<'_>; 10] {
    let Some(side) = side else { return [Null; 10] };
    let place = side.place.as_ref();
    [
        Value::amount(side.op.0),
        Value::of(side.stream, |stream| Value::amount(stream.0)),
        Text(&side.api),
        Value::of(side.kernel.as_deref(), Text),
        Value::of(side.access, |[mode, _]| Text(mode)),
        Value::of(side.access, |[_, basis]| Text(basis)),
        Value::of(place, |place| Text(&place.shown)),
        Value::of(place.and_then(|place| place.line), Value::amount),
        Value::of(place.and_then(|place| place.function.as_deref()), Text),
        Value::of(side.stack, |stack| Value::amount(stack.0)),
    ]
}
