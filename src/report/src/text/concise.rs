//! A finding a line, for those who have many: place, class, confidence, id.
//!
//! The lines have the form of a compiler's messages, so that editors and scripts find the place:
//! `src/pool.cc:40: error[missing-wait]: write-after-read race on 4.0 KiB of `pool`, certain, seen
//! once, id tnz8vktd`. Findings that do not count are left out, as in the full form's list.

use super::{Color, Style, headline};
use crate::names::{op, seen};
use crate::{Disposition, Report, explain};
use std::fmt::Write;
use streamsan_model::{OpSeq, Severity, StackId};
use streamsan_names::printable_first;

pub(super) fn render(report: &Report<'_>, style: Style, text: &mut String) {
    let open = report.groups.iter().filter(|group| group.disposition == Disposition::Open);
    for group in open {
        let (finding, own) = (&group.finding, report.part_of(group));
        let place = place(own, finding.second.op, finding.second.stack);
        let class = match finding.severity {
            Severity::Latent => format!("latent-{}", finding.class.description()),
            Severity::Race | Severity::Lint => finding.class.description().to_owned(),
        };
        let class = level(style, group.fails, &class);
        let _ = writeln!(
            text,
            "{place}: {class}: {}, {}, {}, id {}",
            headline(own, finding),
            match finding.severity {
                Severity::Lint => "lint",
                Severity::Race | Severity::Latent => finding.confidence.description(),
            },
            seen(group.count),
            finding.fingerprint
        );
    }
    let open = report
        .lints
        .iter()
        .filter(|group| group.disposition == Disposition::Open && !group.is_only_counted());
    for group in open {
        let (lint, own) = (&group.lint, report.part_of_lint(group));
        let place = place(own, lint.op, lint.stack);
        let class = level(style, group.fails, lint.class.description());
        let _ = writeln!(
            text,
            "{place}: {class}: {}, lint, {}, id {}",
            explain::lint(lint.class),
            seen(group.count),
            lint.fingerprint
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
}

fn level(style: Style, fails: bool, class: &str) -> String {
    match fails {
        true => style.paint(Color::Error, &format!("error[{class}]")),
        false => style.paint(Color::Warning, &format!("warning[{class}]")),
    }
}

/// The line of the program that made a call, else the operation in its trace.
fn place(report: &Report<'_>, at: OpSeq, stack: Option<StackId>) -> String {
    match report.place(at, stack) {
        Some(place) => {
            let file = printable_first(&place.file);
            match place.line {
                Some(line) => format!("{file}:{line}"),
                None => format!("{file} {}", op(at)),
            }
        }
        None => op(at),
    }
}
