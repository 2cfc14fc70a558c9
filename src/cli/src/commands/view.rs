//! `streamsan view`: a trace in the terminal.

use super::output::color;
use super::stored::Stored;
use crate::error::Error;
use crate::options::ViewOptions;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_model::{Entities, ExitCode, Finding, Threshold};
use streamsan_report::{Folded, Input, KnownUpstream, Report, TextOptions};
use streamsan_store::Reader;
use streamsan_tui::live::Run;
use streamsan_tui::{Explain, Glyphs, Palette, Theme, Viewer};

/// `streamsan view`.
///
/// # Errors
///
/// A trace that cannot be read, standard output that is no terminal, and a terminal that fails.
pub(crate) fn view(options: &ViewOptions) -> Result<ExitCode, Error> {
    // A file that cannot be read is worth knowing of without a terminal too.
    let stored = Stored::of(&options.file)?;
    let reader = Reader::open(stored.path())?;
    let file = options.file.display();
    if !io::stdout().is_terminal() {
        return Err(Error::Usage(format!(
            "view draws on a terminal, and standard output is none; run it in a terminal without \
             redirecting its output, or print the races with `streamsan check {file}` and what \
             the trace holds with `streamsan stats {file}`"
        )));
    }
    let viewer = Viewer {
        query: Box::new(reader),
        explain: broken_explainer().unwrap_or_else(|| explainer(stored.path().to_owned())),
        is_known_upstream,
        title: title(&options.file),
        theme: theme(options.ascii),
        race: options.race.clone(),
        panic_after: panic_after(),
        run: None,
    };
    match streamsan_tui::run(viewer) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Error::Usage(format!(
            "the viewer cannot go on: {error}; try another terminal, or print the races with \
             `streamsan check {file}`"
        ))),
    }
}

fn title(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
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
        query: Box::new(Reader::follow(file)?),
        explain: explainer_of_run(file.to_owned()),
        is_known_upstream,
        title: title(file),
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
