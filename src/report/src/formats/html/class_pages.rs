//! The pages on the classes of the findings that a page tells of, as `streamsan explain CLASS` prints
//! them.

use crate::{Page, Report};
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use streamsan_model::RaceClass;

/// Where a class is explained.
pub(super) fn anchor(class: RaceClass) -> String {
    format!("class-{}", class.description())
}

/// The classes of all findings and lints.
fn classes(report: &Report<'_>) -> BTreeSet<RaceClass> {
    let findings = report.groups.iter().map(|group| group.finding.class);
    findings.chain(report.lints.iter().map(|group| group.lint.class)).collect()
}

/// The section; nothing where there are no findings.
pub(super) fn section(report: &Report<'_>) -> Markup {
    let classes = classes(report);
    if classes.is_empty() {
        return html! {};
    }
    html! {
        section id="classes" aria-labelledby="h-classes" {
            h2 #h-classes { "What the classes mean" }
            @for class in classes {
                details.card id=(anchor(class)) {
                    summary {
                        h3 { (class.description()) }
                        p { (Page::of(class).sentence()) }
                    }
                    div.page { (PreEscaped(body(class))) }
                }
            }
        }
    }
}

/// The page's text behind its title, with its headings below those of this page. The text is the
/// project's own: nothing of a trace is in it.
fn body(class: RaceClass) -> String {
    let markdown = Page::of(class).markdown();
    let text = markdown.split_once('\n').map_or("", |(_, text)| text);
    let events = Parser::new(text).map(|event| match event {
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: below(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        other => other,
    });
    let mut body = String::new();
    pulldown_cmark::html::push_html(&mut body, events);
    body
}

fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::body;
    use streamsan_model::RaceClass;

    #[test]
    fn pages_have_headings_code_and_no_links() {
        for &class in RaceClass::ALL {
            let body = body(class);
            assert!(body.contains("<h4>") && body.contains("<pre><code"), "{class:?}");
            assert!(!body.contains("<a ") && !body.contains("<h1") && !body.contains("<img"));
        }
    }
}
