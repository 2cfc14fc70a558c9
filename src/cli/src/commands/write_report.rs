//! A report in any of its forms.

use super::source_lines::SourceLines;
use super::stored::Stored;
use super::trace::Trace;
use crate::error::Error;
use crate::options::ReportFormat;
use std::io::{self, Write};
use std::path::Path;
use streamsan_model::{Edge, Entity, TraceItem};
use streamsan_report::{HtmlInput, Neighbourhood, PerfettoWriter, Report, TextOptions};
use streamsan_store::Reader;

/// The input of the forms that show more than findings.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub(super) trace: &'a Trace,
    /// The file that the trace was read from.
    pub(super) file: &'a Path,
    pub(super) strict: bool,
}

/// Writes a report.
///
/// # Errors
///
/// [`Error::Output`] where `out` cannot be written to, and a trace that cannot be read.
pub(super) fn write_report(
    format: ReportFormat,
    report: &Report<'_>,
    whole: Whole<'_>,
    sources: &mut SourceLines,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Whole { trace, strict, .. } = whole;
    match format {
        ReportFormat::Html => {
            let text = html(report, whole, sources)?;
            out.write_all(text.as_bytes()).map_err(Error::Output)
        }
        ReportFormat::Perfetto => perfetto(report, trace, &trace.edges(strict)?, out),
        ReportFormat::Dot => {
            let text = dot(report, trace, &trace.edges(strict)?)?;
            out.write_all(text.as_bytes()).map_err(Error::Output)
        }
        _ => write_findings(format, report, sources, out),
    }
}

/// Writes a report in a form that shows findings only; nothing for the others.
///
/// # Errors
///
/// [`Error::Output`] where `out` cannot be written to.
pub(super) fn write_findings(
    format: ReportFormat,
    report: &Report<'_>,
    sources: &mut SourceLines,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let text = match format {
        // A file gets everything.
        ReportFormat::Text => {
            let options = TextOptions {
                list_library_lints: true,
                list_known_upstream: true,
                ..TextOptions::default()
            };
            report.render_text_with(&options, &mut |path, line| sources.line(path, line))
        }
        ReportFormat::Json => report.render_json(),
        ReportFormat::Sarif => report.render_sarif(env!("CARGO_PKG_VERSION")),
        ReportFormat::Junit => report.render_junit(),
        ReportFormat::Github => report.render_github(),
        ReportFormat::GithubSummary => report.render_github_summary(),
        ReportFormat::CodeQuality => report.render_code_quality(),
        ReportFormat::Html | ReportFormat::Perfetto | ReportFormat::Dot => String::new(),
    };
    out.write_all(text.as_bytes()).map_err(Error::Output)
}

/// One page, about a stored trace: a text trace is stored for this.
fn html(report: &Report<'_>, whole: Whole<'_>, sources: &mut SourceLines) -> Result<String, Error> {
    let mut source_line = |path: &str, line: u32| sources.line(path, line);
    let version = env!("CARGO_PKG_VERSION");
    match whole.trace {
        Trace::Stored(reader) => {
            let meta = reader.meta()?;
            let (command, driver) = (meta.command, meta.driver);
            let source_line = &mut source_line;
            let input = HtmlInput { trace: &**reader, command, driver, version, source_line };
            Ok(report.render_html(input)?)
        }
        Trace::Text { trace, .. } => {
            let stored = Stored::of_text(trace.clone(), whole.file)?;
            let input = HtmlInput {
                trace: &Reader::open(stored.path())?,
                command: Vec::new(),
                driver: String::new(),
                version,
                source_line: &mut source_line,
            };
            Ok(report.render_html(input)?)
        }
    }
}

fn perfetto(
    report: &Report<'_>,
    trace: &Trace,
    edges: &[Edge],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut writer =
        PerfettoWriter::new(io::BufWriter::new(out), report, edges).map_err(Error::Output)?;
    let mut outcome = Ok(());
    trace.items(|item| match (&item, &outcome) {
        (TraceItem::Operation(operation), Ok(())) => outcome = writer.operation(operation),
        (TraceItem::Entity(Entity::Stream(stream)), Ok(())) => outcome = writer.stream(stream),
        _ => {}
    })?;
    trace.each_range(|range| {
        if outcome.is_ok() {
            outcome = writer.range(&range);
        }
    })?;
    outcome.and_then(|()| writer.finish()).map_err(Error::Output)
}

/// The surroundings of every finding that fails, or of all where none does.
fn dot(report: &Report<'_>, trace: &Trace, edges: &[Edge]) -> Result<String, Error> {
    let any = report.groups().iter().any(|group| group.fails);
    let groups = report.groups().iter().filter(|group| group.fails || !any);
    let mut around: Vec<Neighbourhood<'_>> =
        groups.map(|group| Neighbourhood::new(report, &group.finding, edges)).collect();
    trace.items(|item| {
        if let TraceItem::Operation(operation) = &item {
            around.iter_mut().for_each(|around| around.operation(operation));
        }
    })?;
    Ok(Neighbourhood::render(&around))
}
