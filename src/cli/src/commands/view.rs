//! `streamsan view`: traces in the terminal.

use super::clocks::{Clocks, align};
use super::output::color;
use super::stored::Stored;
use super::traces::traces;
use crate::error::Error;
use crate::options::{Offset, ViewOptions};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_model::{Entities, ExitCode, Finding, Threshold};
use streamsan_names::printable_path;
use streamsan_report::{Folded, Input, KnownUpstream, Report, TextOptions};
use streamsan_store::Reader;
use streamsan_tui::live::Run;
use streamsan_tui::query::Source;
use streamsan_tui::state::{Changes, Label};
use streamsan_tui::{Explain, Glyphs, Palette, Theme, Trace, Viewer};

/// `streamsan view`.
///
/// # Errors
///
/// A trace that cannot be read, standard output that is no terminal, and a terminal that fails.
pub(crate) fn view(options: &ViewOptions) -> Result<ExitCode, Error> {
    let files = traces(&options.files)?;
    // A file that cannot be read is worth knowing of without a terminal too.
    let stored = files.iter().map(|file| Stored::of(file)).collect::<Result<Vec<_>, _>>()?;
    let (traces, clock) = opened(&files, &stored, &options.offsets)?;
    let file = printable_path(&files[0]);
    if !io::stdout().is_terminal() {
        return Err(Error::Usage(format!(
            "view draws on a terminal, and standard output is none; run it in a terminal without \
             redirecting its output, or print the races with `streamsan check {file}` and what \
             the trace holds with `streamsan stats {file}`"
        )));
    }
    let viewer = Viewer {
        traces,
        clock,
        is_known_upstream,
        theme: theme(options.ascii),
        race: options.race.clone(),
        panic_after: panic_after(),
        run: None,
    };
    let instead = format!("print the races with `streamsan check {file}`");
    streamsan_tui::run(viewer).map_err(|error| cannot_go_on(&error, &instead))?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_go_on(error: &io::Error, instead: &str) -> Error {
    Error::Usage(format!("the viewer cannot go on: {error}; try another terminal, or {instead}"))
}

/// Shows two traces beside each other, and what became of their findings.
///
/// # Errors
///
/// As [`view`].
pub(super) fn view_both(files: [&Path; 2], changes: Changes) -> Result<(), Error> {
    let files = files.map(Path::to_owned);
    let stored = files.iter().map(|file| Stored::of(file)).collect::<Result<Vec<_>, _>>()?;
    let (traces, clock) = opened(&files, &stored, &[])?;
    let instead = "leave out --view to print what is new and gone";
    if !io::stdout().is_terminal() {
        return Err(Error::Usage(format!(
            "diff --view draws on a terminal, and standard output is none; run it in a terminal \
             without redirecting its output, or {instead}"
        )));
    }
    let viewer = Viewer {
        traces,
        clock,
        is_known_upstream,
        theme: theme(false),
        race: None,
        panic_after: panic_after(),
        run: None,
    };
    streamsan_tui::run_pair(viewer, changes).map_err(|error| cannot_go_on(&error, instead))
}

/// The traces for the viewer, and the clock by which several are aligned, in words.
///
/// # Errors
///
/// A trace that cannot be read, and an offset of a trace that is not there.
fn opened(
    files: &[PathBuf],
    stored: &[Stored],
    offsets: &[Offset],
) -> Result<(Vec<Trace>, String), Error> {
    let paths = stored.iter().map(Stored::path);
    let readers = paths.map(Reader::open).collect::<Result<Vec<_>, _>>()?;
    if let Some(offset) = offsets.iter().find(|offset| offset.trace >= readers.len()) {
        return Err(Error::Usage(format!(
            "--offset is about trace {}, and there are {}; traces are counted from 1 in the order in \
             which they are shown",
            offset.trace + 1,
            readers.len()
        )));
    }
    let clocks = readers.iter().map(Clocks::of).collect::<Result<Vec<_>, _>>()?;
    let (mut begins, clock) = align(&clocks);
    for offset in offsets {
        let Some(begin) = &mut begins[offset.trace] else {
            return Err(Error::Usage(format!(
                "{} holds no host times that --offset could move; leave it out for this trace",
                printable_path(&files[offset.trace])
            )));
        };
        *begin = begin.saturating_add(offset.by_ns);
    }
    let names = readers.into_iter().zip(stored).zip(files).zip(clocks.iter().zip(begins));
    let traces = names.map(|(((reader, stored), file), (clocks, begins_ns))| Trace {
        source: Source {
            query: Box::new(reader),
            explain: broken_explainer().unwrap_or_else(|| explainer(stored.path().to_owned())),
        },
        label: Label { title: told_apart(file, files), about: clocks.about(), begins_ns },
    });
    Ok((traces.collect(), clock))
}

fn title(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
}

/// The name of a file; with its directories, where another one has the same name.
fn told_apart(file: &Path, all: &[PathBuf]) -> String {
    let name = title(file);
    let is_lone = all.iter().filter(|other| title(other) == name).count() < 2;
    if is_lone { name } else { file.to_string_lossy().into() }
}

fn theme(ascii: bool) -> Theme {
    Theme {
        palette: palette(),
        glyphs: if ascii || !speaks_utf8() { Glyphs::Ascii } else { Glyphs::Unicode },
    }
}

fn palette() -> Palette {
    if !color(&io::stdout()) {
        return Palette::Plain;
    }
    let [term, colorterm] = ["TERM", "COLORTERM"].map(|name| std::env::var(name).ok());
    Palette::of_terminal(term.as_deref(), colorterm.as_deref())
}

/// The viewer of a run that goes on, whose trace is there.
///
/// # Errors
///
/// A trace that cannot be read.
pub(crate) fn viewer_of(file: &Path, run: Arc<dyn Run>) -> Result<Viewer, Error> {
    Ok(Viewer {
        traces: vec![Trace {
            source: Source {
                query: Box::new(Reader::follow(file)?),
                explain: explainer_of_run(file.to_owned()),
            },
            label: Label { title: title(file), ..Label::default() },
        }],
        clock: String::new(),
        is_known_upstream,
        theme: theme(false),
        race: None,
        panic_after: panic_after(),
        run: Some(run),
    })
}

/// As [`explainer`]; of a trace to which entities come, so that all is read each time.
fn explainer_of_run(file: PathBuf) -> Explain {
    Box::new(move |finding| {
        let read = || -> Result<_, streamsan_store::Error> {
            let reader = Reader::open(&file)?;
            let entities = reader.entities()?;
            Ok(explain(finding, &reader, &entities))
        };
        read().unwrap_or_else(|error| error.to_string())
    })
}

/// Frames after which the viewer is to panic: for the tests, and only in builds for them.
fn panic_after() -> Option<u32> {
    if !cfg!(debug_assertions) {
        return None;
    }
    std::env::var("STREAMSAN_VIEWER_PANIC").ok()?.parse().ok()
}

/// Puts findings into words for the tests of a panic in the thread that does so.
fn broken_explainer() -> Option<Explain> {
    let asked = cfg!(debug_assertions)
        && std::env::var_os("STREAMSAN_VIEWER_PANIC").is_some_and(|value| value == "reader");
    asked.then(|| -> Explain { Box::new(|_| panic!("a panic was asked for")) })
}

/// Whether the locale is one of UTF-8: the first of the three variables that is set decides.
fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Puts findings into the words of the report. Reads the trace by a connection of its own, once
/// there is a finding to explain.
fn explainer(file: PathBuf) -> Explain {
    let mut open: Option<(Reader, Entities)> = None;
    Box::new(move |finding| {
        if open.is_none() {
            let read = || -> Result<_, streamsan_store::Error> {
                let reader = Reader::open(&file)?;
                let entities = reader.entities()?;
                Ok((reader, entities))
            };
            match read() {
                Ok(read) => open = Some(read),
                Err(error) => return error.to_string(),
            }
        }
        open.as_ref()
            .map_or_else(String::new, |(reader, entities)| explain(finding, reader, entities))
    })
}

/// Whether a race is on the list of those that are known in libraries.
fn is_known_upstream(finding: &Finding, entities: &Entities) -> bool {
    KnownUpstream::shipped().entry_of(finding, entities).is_some()
}

fn explain(finding: &Finding, reader: &Reader, entities: &Entities) -> String {
    let input = Input {
        findings: Folded::of_sited(finding.clone()),
        entities,
        // Everything is told in full.
        threshold: match finding.severity {
            streamsan_model::Severity::Race => Threshold::Possible,
            streamsan_model::Severity::Latent => Threshold::Latent,
            streamsan_model::Severity::Lint => Threshold::Lint,
        },
        reasons: Vec::new(),
        coverage: None,
        upstream: Some(KnownUpstream::shipped()),
        trace: None,
    };
    let report = Report::new(input, |g| reader.operation(g).ok().flatten());
    let report = report.in_ranges(|g| reader.ranges_of(g).unwrap_or_default());
    let report = report.relative_to(super::trace::directory());
    // The viewer breaks lines itself.
    let options = TextOptions {
        color: palette() != Palette::Plain,
        columns: Some(usize::MAX),
        ..TextOptions::default()
    };
    let told = report.groups().first().map(|group| report.render_in_full(group, &options));
    told.unwrap_or_default().trim_end().to_owned()
}
