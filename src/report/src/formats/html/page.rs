//! The page from its parts.

use super::tight::tighten;
use super::{assets, class_pages, findings, memory, scope, statistics, timeline};
use crate::{Report, SourceLine};
use maud::{DOCTYPE, html};
use std::fmt;
use streamsan_model::{QueryError, TraceQuery};
use streamsan_names::printable_text;

/// Bytes of a page.
const BYTES: usize = 1_990_000;
/// Bytes of a page that are always there, lints and the words around the findings included.
const FRAME: usize = 150_000;

/// The input of a page beside the findings of its report.
pub struct HtmlInput<'a> {
    /// The trace that the report is about.
    pub trace: &'a dyn TraceQuery,
    /// The program and its arguments; empty where nobody knows, as of a text trace.
    pub command: Vec<String>,
    /// The driver: its version, or the simulated one; empty where unknown.
    pub driver: String,
    /// Version of the command that makes the page.
    pub version: &'a str,
    /// Answers a line of a source file, where it may be shown.
    pub source_line: &'a mut SourceLine<'a>,
}

impl fmt::Debug for HtmlInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HtmlInput").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The page.
///
/// # Errors
///
/// The trace cannot be read.
pub(crate) fn render(report: &Report<'_>, mut input: HtmlInput<'_>) -> Result<String, QueryError> {
    let header = scope::header(report, &input);
    let classes = class_pages::section(report);
    let timeline = timeline::section(report, &input)?;
    let memory = memory::section(report, &input)?;
    let statistics = statistics::section(report, &input)?;
    let parts = [&header, &timeline, &memory, &statistics, &classes];
    let others = parts.map(|part| part.0.len()).iter().sum::<usize>() + FRAME;
    let findings = findings::section(report, &mut input, BYTES.saturating_sub(others))?;
    let links = [
        ("findings", "Findings", &findings),
        ("timeline", "Timeline", &timeline),
        ("memory", "Memory", &memory),
        ("statistics", "Statistics", &statistics),
        ("classes", "Classes", &classes),
    ];
    let links = links.into_iter().filter(|(.., section)| !section.0.is_empty());
    let body = html! {
        a.skip href="#findings" { "Skip to the findings" }
        (header)
        nav aria-label="Sections" {
            @for (id, name, _) in links { a href={ "#" (id) } { (name) } }
        }
        main { (findings) (timeline) (memory) (statistics) (classes) }
        footer {
            p { "Positions are the order of the calls, or the times at which the host made them. \
                 Nothing here is a time of the GPU." }
        }
    };
    let head = html! {
        meta charset="utf-8";
        meta http-equiv="Content-Security-Policy" content=(assets::policy());
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { "streamsan: " (report.verdict.description()) }
        (assets::style())
    };
    let body = tighten(&printable_text(&body.0));
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head { (head) }
            body { (maud::PreEscaped(body)) (assets::script()) }
        }
    }
    .0 + "\n")
}
