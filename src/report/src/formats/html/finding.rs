//! One finding: what, where, why, the fix, and a drawing.

use super::around::Around;
use super::{HtmlInput, class_pages, drawing};
use crate::marked::tests_in_words;
use crate::names::{self, op, seen};
use crate::stacks::LISTED;
use crate::text::{self, FRAMES, Quote};
use crate::{Disposition, Group, Report};
use maud::{Markup, html};
use std::ops::Range;
use streamsan_model::{FindingAccess, QueryError, RaceClass, Severity};
use streamsan_names::printable_line;

/// How much of a finding is told, where it is told in more than a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    /// The words.
    Words,
    /// The words, and a drawing of the two accesses.
    Small,
    /// The words, the proof, and a drawing of what the finding names.
    Sparse,
    /// The words, the proof, and a drawing with the neighbours of both accesses.
    Full,
}

/// The state of a finding: word, and class in the style sheet.
pub(super) fn state(fails: bool, severity: Severity, disposition: &Disposition) -> (&str, &str) {
    match disposition {
        Disposition::Open if fails => ("fails", "bad"),
        Disposition::Open if severity == Severity::Latent => ("latent", "open"),
        Disposition::Open => ("below the threshold", "open"),
        other => (other.description(), "settled"),
    }
}

/// A finding as a row of a table.
pub(super) fn row(report: &Report<'_>, group: &Group) -> Markup {
    let finding = &group.finding;
    let (word, class) = state(group.fails, finding.severity, &group.disposition);
    html! {
        tr id={ "f-" (finding.fingerprint) } {
            td { b.(class) { (word) } }
            td { (finding.class.description()) }
            td { (report.headline(group)) }
            td.n { (names::number(group.count)) }
            td { code { (finding.fingerprint) } }
        }
    }
}

/// A finding that can be folded; `is_open`: unfolded at first.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn card(
    report: &Report<'_>,
    group: &Group,
    input: &mut HtmlInput<'_>,
    room: Room,
    is_open: bool,
) -> Result<Markup, QueryError> {
    let finding = &group.finding;
    let (word, class) = state(group.fails, finding.severity, &group.disposition);
    let drawing = match (room, finding.severity) {
        (Room::Full | Room::Sparse, Severity::Race | Severity::Latent) => {
            let around = Around::of(report, finding, input.trace, room == Room::Full)?;
            around.map(|around| drawing::draw(report, finding, &around))
        }
        (Room::Small, Severity::Race | Severity::Latent) => drawing::small(report, finding),
        _ => None,
    };
    Ok(html! {
        details.card.finding id={ "f-" (finding.fingerprint) } open[is_open] {
            summary {
                h3 { b.(class) { (word) } " " (report.headline(group)) }
                p {
                    (report.rule(finding.class, finding.severity)) ", " (finding.confidence.description())
                    ", " (seen(group.count)) ", id " code { (finding.fingerprint) }
                }
            }
            div.body {
                @for note in notes(report, group) { p.muted { (note) } }
                (sides(report, group, input))
                @if let Some(drawing) = drawing { div.scroll { (drawing) } }
                (reasons(report, group))
                @if room >= Room::Sparse { (details(report, group)) }
            }
        }
    })
}

/// Lines that say of which occurrence the rest is.
fn notes(report: &Report<'_>, group: &Group) -> Vec<String> {
    let mut notes = text::occurrences(report, group);
    let known = group.disposition.upstream();
    notes.extend(known.map(|known| format!("known upstream in {}", known.description())));
    notes.extend(tests_in_words(&group.tests).map(|tests| format!("test {tests}")));
    if let Disposition::Suppressed { line, reason } = &group.disposition {
        notes.push(format!("suppressed in line {line}: {}", printable_line(reason)));
    }
    notes
}

/// The two accesses in the order of their issue, each with its line.
fn sides(report: &Report<'_>, group: &Group, input: &mut HtmlInput<'_>) -> Markup {
    let finding = &group.finding;
    let with_device = report.devices_differ(&finding.first, &finding.second);
    let lines = report.apart([finding.first.stack, finding.second.stack]);
    let all = [("(1) first", &finding.first), ("(2) later", &finding.second)];
    html! {
        div.sides {
            @for ((when, side), line) in all.into_iter().zip(lines) {
                @let place = match finding.class {
                    RaceClass::GraphUnordered => report.node(side),
                    _ => report.side_in_full(side, with_device),
                };
                div {
                    h4 { (when) " " (side.access.mode.weak().description().to_uppercase()) }
                    p { code { (report.what(side)) } }
                    p { (op(side.op)) ", " (place) }
                    @if let Some(around) = report.around_in_words(side) { p { "in " (around) } }
                    (frames(report, side, line, input))
                }
            }
        }
    }
}

/// The frames from the call outwards to the line at which an edit would stand, and that line as its
/// source has it.
fn frames(
    report: &Report<'_>,
    side: &FindingAccess,
    line: usize,
    input: &mut HtmlInput<'_>,
) -> Markup {
    let frames = report.listed(side.stack, (line + 1).min(FRAMES));
    let places = report.own_places(side.stack);
    let place = places.get(line).and_then(|place| Some((&place.path, place.line?)));
    let source = place.and_then(|(path, number)| (input.source_line)(path, number));
    html! {
        @if !frames.is_empty() {
            ul {
                @for (depth, frame) in frames.iter().enumerate() {
                    li { @if depth == 0 { "at " } @else { "by " } (frame) }
                }
            }
        }
        @if let Some(source) = source {
            @let quote = report.quote(&source, side, line);
            @let [before, call, behind] = parts(&quote);
            pre { code { (before) mark { (call) } (behind) } }
        }
    }
}

/// A line before the call, the call, and the rest.
fn parts(quote: &Quote) -> [String; 3] {
    let take = |range: Range<usize>| -> String {
        quote.source.chars().skip(range.start).take(range.len()).collect()
    };
    let Range { start, end } = quote.call;
    [take(0..start), take(start..end), take(end..usize::MAX)]
}

/// Why nothing orders the two, the fix, and what else there is to know.
fn reasons(report: &Report<'_>, group: &Group) -> Markup {
    let finding = &group.finding;
    html! {
        dl {
            @if finding.severity != Severity::Lint {
                dt.strong { "Why" }
                dd { (report.why(finding)) }
            }
            @if let Some(fix) = report.fix(finding) {
                dt.fix { "Fix" }
                dd {
                    (fix.sentence)
                    @for step in &fix.steps {
                        p.muted { (step.place) }
                        pre.step { code { (step.code) } }
                    }
                    @if let Some(effect) = report.effect(finding) {
                        @let word = if effect.is_verified() { "verified: " } else { "not enough: " };
                        p { (word) (effect.description()) }
                    }
                }
            }
            @if finding.severity != Severity::Lint {
                dt { "In" }
                dd { (text::memory(report, finding)) }
            }
            dt { "Confidence" }
            dd { (report.confidence(finding)) }
            dt { "Class" }
            dd { a href={ "#" (class_pages::anchor(finding.class)) } { (finding.class.description()) } }
        }
    }
}

/// The proof, for those who want it, and the whole stacks.
fn details(report: &Report<'_>, group: &Group) -> Markup {
    let finding = &group.finding;
    let lines = report.apart([finding.first.stack, finding.second.stack]);
    let sides = [("(1)", &finding.first), ("(2)", &finding.second)];
    let outer = sides.into_iter().zip(lines).filter_map(|((number, side), line)| {
        let frames = report.listed(side.stack, (line + 1).max(LISTED));
        let outer = frames.get((line + 1).min(FRAMES)..).filter(|outer| !outer.is_empty())?;
        Some(format!("{number} is called from {}", outer.join(", from ")))
    });
    let mut all = text::details(report, group);
    all.extend(outer);
    html! {
        @if !all.is_empty() {
            details.more {
                summary { "In detail" }
                ul { @for line in &all { li { (line) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parts;
    use crate::text::Quote;

    #[test]
    fn lines_are_taken_apart_by_characters() {
        let quote = |call| Quote { source: "\u{e4} = f(b)".to_owned(), call };
        assert_eq!(parts(&quote(4..5)), ["\u{e4} = ", "f", "(b)"]);
        assert_eq!(parts(&quote(0..8)), ["", "\u{e4} = f(b)", ""]);
    }
}
