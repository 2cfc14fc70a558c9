//! The list of findings, and how much of each there is room for.

use super::finding::{self, Room, card, row};
use super::tight::tighten;
use super::{HtmlInput, class_pages, drawing};
use crate::names::{number, plural};
use crate::{Group, Report};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeMap;
use streamsan_model::{QueryError, Severity};

/// Findings beyond that are only counted.
pub(super) const LISTED: usize = 4_000;
/// Lints that are listed.
const LINTS: usize = 500;
/// Findings up to which the first one is unfolded.
const UNFOLDED: usize = 1;

/// The section, whose findings take at most so many bytes.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn section(
    report: &Report<'_>,
    input: &mut HtmlInput<'_>,
    bytes: usize,
) -> Result<Markup, QueryError> {
    let (cards, in_detail) = cards(report, input, bytes)?;
    let rows = report.groups.iter().take(LISTED).skip(cards.len());
    // Names have their `<` escaped: it is the template's own.
    let is_quoted = cards.iter().any(|card| card.0.contains("<mark>"));
    let has_lines = report.groups.iter().any(|group| {
        let sides = [group.finding.first.stack, group.finding.second.stack];
        sides.into_iter().any(|stack| report.source_place(stack).is_some())
    });
    let (left, listed) = (report.groups.len() - cards.len(), report.groups.len().min(LISTED));
    let counted = plural(report.groups.len() as u64, "finding", "findings");
    Ok(html! {
        section id="findings" aria-labelledby="h-findings" {
            h2 #h-findings { "Findings" }
            @if report.groups.is_empty() && report.lints.is_empty() {
                p { "None." }
            } @else if !report.groups.is_empty() {
                div.search hidden role="search" {
                    label for="search" { "Search the findings" }
                    input #search type="search" autocomplete="off"
                        placeholder="kernel, file, allocation, class, id" {}
                    output #hits for="search" aria-live="polite" { (counted) }
                }
                @if has_lines && !is_quoted {
                    p.muted { "No source is at hand: lines are quoted from below the directory in which "
                        "the page is made, or below " code { "--source-root" } "." }
                }
                div #cards { @for card in &cards { (card) } }
                (drawing::shared())
                @if in_detail < cards.len() {
                    p.muted { "Operations around a race, and the proof in detail, stand at the first "
                        (number(in_detail as u64)) " findings, as far as a page has room; "
                        code { "streamsan explain" } " tells them of each." }
                }
            }
            @if left > 0 {
                p { (plural(left as u64, "more finding", "more findings"))
                    " in a row each, since a page has room for "
                    (number(cards.len() as u64)) " in full; " code { "streamsan explain" }
                    " tells each of them in full." }
                div.scroll {
                    table {
                        thead { tr {
                            th scope="col" { "state" } th scope="col" { "class" }
                            th scope="col" { "finding" } th scope="col" { "seen" }
                            th scope="col" { "id" }
                        } }
                        tbody { @for group in rows { (row(report, group)) } }
                    }
                }
                @if report.groups.len() > listed {
                    p { (plural((report.groups.len() - listed) as u64, "finding is", "findings are"))
                        " not listed; the JSON form lists all of them." }
                }
            }
            (lints(report))
        }
    })
}

/// The findings that there is room for, and how many of them are told in detail. All get words before
/// one gets a drawing, and all a small drawing before one gets a larger one and the proof, each time in
/// the order of the report.
fn cards(
    report: &Report<'_>,
    input: &mut HtmlInput<'_>,
    bytes: usize,
) -> Result<(Vec<Markup>, usize), QueryError> {
    // The rows of those that are not told in full have their room first.
    let groups: Vec<&Group> = report.groups.iter().take(LISTED).collect();
    let mut sizes: Vec<usize> =
        groups.iter().map(|group| tighten(&row(report, group).0).len()).collect();
    let mut taken: usize = sizes.iter().sum();
    let mut cards: Vec<Markup> = Vec::new();
    let mut in_detail = 0;
    for room in [Room::Words, Room::Small, Room::Sparse, Room::Full] {
        for (position, group) in groups.iter().enumerate() {
            let card = card(report, group, input, room, position < UNFOLDED)?;
            let card = PreEscaped(tighten(&card.0));
            let after = (taken + card.0.len()).saturating_sub(sizes[position]);
            if after > bytes {
                return Ok((cards, in_detail));
            }
            in_detail += usize::from(room == Room::Sparse);
            (taken, sizes[position]) = (after, card.0.len());
            match cards.get_mut(position) {
                Some(told) => *told = card,
                None => cards.push(card),
            }
        }
    }
    Ok((cards, in_detail))
}

/// Lints by class, a line each.
fn lints(report: &Report<'_>) -> Markup {
    let told = || report.lints.iter().filter(|group| !group.is_only_counted());
    let mut classes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for group in told().take(LINTS) {
        classes.entry(group.lint.class).or_default().push(group);
    }
    html! {
        @for (class, groups) in classes {
            details.card.finding {
                summary {
                    h3 { b.open { "lint" } " " (crate::explain::lint(class)) }
                    p {
                        a href={ "#" (class_pages::anchor(class)) } { (class.description()) }
                        ", " (plural(groups.len() as u64, "call", "calls"))
                    }
                }
                ul.body {
                    @for group in groups {
                        @let (word, state) =
                            finding::state(group.fails, Severity::Lint, &group.disposition);
                        li {
                            b.(state) { (word) } " " (report.calls_of_lint(group))
                            ", id " code { (group.lint.fingerprint) }
                        }
                    }
                }
            }
        }
        @if told().count() > LINTS {
            p { (plural((told().count() - LINTS) as u64, "more lint", "more lints"))
                "; the JSON form lists all of them." }
        }
        @if let Some(counted) = report.library_lints_in_words() { p.muted { (counted) } }
    }
}
