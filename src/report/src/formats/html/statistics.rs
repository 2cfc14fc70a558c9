//! Counts of the findings, the same as those of the text form, and of the calls.

use super::HtmlInput;
use crate::Report;
use crate::names::{number, plural};
use crate::text::{Row, tables};
use maud::{Markup, html};
use streamsan_model::QueryError;
use streamsan_names::printable;

/// Rows of a table.
const ROWS: usize = 20;

/// The section; nothing where there is nothing to count.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn section(report: &Report<'_>, input: &HtmlInput<'_>) -> Result<Markup, QueryError> {
    let calls = input.trace.calls()?;
    let tables = tables(report);
    if calls.is_empty() && tables.is_empty() {
        return Ok(html! {});
    }
    let is_timed = calls.iter().any(|call| call.driver_ns > 0);
    let left = calls.len().saturating_sub(ROWS);
    Ok(html! {
        section id="statistics" aria-labelledby="h-statistics" {
            h2 #h-statistics { "Statistics" }
            div.tables {
                @for (title, rows) in &tables { (counts(title, rows)) }
                @if !calls.is_empty() {
                    div.scroll {
                        table {
                            caption { "Calls by entry point" }
                            thead { tr {
                                th scope="col" { "entry point" } th.n scope="col" { "calls" }
                                th.n scope="col" { "not successful" }
                                @if is_timed { th.n scope="col" { "host time" } }
                            } }
                            tbody {
                                @for call in calls.iter().take(ROWS) {
                                    tr {
                                        th.life scope="row" { (printable(&call.api)) }
                                        td.n { (number(call.calls)) }
                                        td.n { (number(call.failures)) }
                                        @if is_timed { td.n { (milliseconds(call.driver_ns)) } }
                                    }
                                }
                            }
                        }
                        @if left > 0 {
                            p.muted { (plural(left as u64, "more entry point", "more entry points")) "." }
                        }
                    }
                }
            }
        }
    })
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03} ms", number(ns / 1_000_000), ns / 1_000 % 1_000)
}

/// A table of findings that count.
fn counts(title: &str, rows: &[Row]) -> Markup {
    let left = rows.len().saturating_sub(ROWS);
    html! {
        div.scroll {
            table {
                caption { "Findings " (title) }
                thead { tr {
                    th scope="col" { (title.trim_start_matches("by ")) }
                    th.n scope="col" { "findings" } th.n scope="col" { "seen" }
                } }
                tbody {
                    @for (row, (findings, seen)) in rows.iter().take(ROWS) {
                        tr {
                            th scope="row" { (row) }
                            td.n { (number(*findings)) }
                            td.n { (number(*seen)) }
                        }
                    }
                }
            }
            @if left > 0 { p.muted { (plural(left as u64, "more row", "more rows")) "." } }
        }
    }
}
