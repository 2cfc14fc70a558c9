//! `streamsan view`: a trace in the terminal.

use super::output::color;
use crate::error::Error;
use crate::options::ViewOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use streamsan_model::{Entities, ExitCode, Finding, Threshold};
use streamsan_report::{Input, Report, TextOptions};
use streamsan_store::Reader;
use streamsan_tui::{Explain, Glyphs, Palette, Theme, Viewer};

pub(crate) fn view(options: &ViewOptions) -> Result<ExitCode, Error> {
    // A file that cannot be read is worth knowing of without a terminal too.
    let reader = Reader::open(&options.file)?;
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
        explain: explainer(options.file.clone()),
        title: options.file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
        theme: Theme {
            palette: if color(&io::stdout()) { Palette::Colour } else { Palette::Plain },
            glyphs: if options.ascii || !speaks_utf8() { Glyphs::Ascii } else { Glyphs::Unicode },
        },
        race: options.race.clone(),
        run: None,
    };
    match streamsan_tui::run(viewer) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Error::Usage(format!(
            "the terminal cannot be used: {error}; try another one, or print the races with \
             `streamsan check {file}`"
        ))),
    }
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

fn explain(finding: &Finding, reader: &Reader, entities: &Entities) -> String {
    let input = Input {
        findings: [finding.clone()].into_iter().collect(),
        entities,
        // Everything is told in full.
        threshold: match finding.severity {
            streamsan_model::Severity::Race => Threshold::Possible,
            streamsan_model::Severity::Latent => Threshold::Latent,
            streamsan_model::Severity::Lint => Threshold::Lint,
        },
        reasons: Vec::new(),
        coverage: None,
        trace: None,
    };
    let report = Report::new(input, |g| reader.operation(g).ok().flatten());
    let text = report.render_text(&TextOptions { color: false, max_findings: None });
    // The verdict is one over the whole run.
    let lines = text.lines().take_while(|line| !line.starts_with("verdict:"));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
