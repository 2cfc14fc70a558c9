//! `streamsan export`: a trace in a form for other tools.

use super::check::write_file;
use super::explain::verify;
use super::gate::{known_upstream, read_gate};
use super::output::Stdout;
use super::source_lines::SourceLines;
use super::tables::export_tables;
use super::trace::Concluded;
use super::write_report::write_report;
use crate::error::Error;
use crate::options::{ExportFormat, ExportOptions, ReportFile};
use streamsan_model::ExitCode;

/// `streamsan export`.
///
/// # Errors
///
/// A trace, a suppression file or a baseline that cannot be read or has a mistake in it, options
/// that exclude each other, and a report that cannot be written.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode, Error> {
    if options.gate.update_baseline {
        return Err(Error::Usage("a baseline is written by run and check only".to_owned()));
    }
    let format = match options.format {
        ExportFormat::Parquet => return export_tables(options),
        ExportFormat::Report(format) => format,
    };
    let [file] = options.files.as_slice() else {
        let format = format.description();
        return Err(Error::Usage(format!(
            "export writes the {format} form of one trace, and several are named; `streamsan check \
             --report {format}=FILE` makes one report of them, and --format parquet tables"
        )));
    };
    if options.jobs.is_some() {
        return Err(Error::Usage("--jobs is for --format parquet".to_owned()));
    }
    let gate = read_gate(&options.gate)?;
    let concluded = Concluded::open(file, false)?;
    let mut report =
        concluded.report_with(options.threshold.fail_on, known_upstream(&options.gate));
    report.hold_against(&gate);
    if options.verify {
        let groups = report.groups().to_vec();
        verify(&concluded, &mut report, &groups)?;
    }
    let mut sources =
        SourceLines::below(&options.source_root)?.with_demo(concluded.trace.is_demo());
    match &options.output {
        Some(path) => {
            let file = ReportFile { format, path: path.clone() };
            write_file(&file, &report, Some(&concluded), &mut sources)?;
        }
        None => write_report(format, &report, concluded.whole(), &mut sources, &mut Stdout)?,
    }
    Ok(ExitCode::SUCCESS)
}
