//! The pages on the classes of findings: what a class means, how it comes about and how to mend it.
//!
//! The pages lie in `docs/findings`, which is `findings` in this package by a link, so that they are
//! part of the package too. The corpus tests hold that they are complete and that their examples are
//! right.

mod terminal;

use streamsan_model::RaceClass;

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../findings/", $name, ".md"))
    };
}

/// The page on a class.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// In Markdown, with links to other documents of this project.
    text: &'static str,
}

impl Page {
    /// The page on `class`.
    pub const fn of(class: RaceClass) -> Self {
        let text = match class {
            RaceClass::MissingWait => page!("missing-wait"),
            RaceClass::StaleWait => page!("stale-wait"),
            RaceClass::WrongStreamWait => page!("wrong-stream-wait"),
            RaceClass::EventRerecorded => page!("event-rerecorded"),
            RaceClass::WaitBeforeRecord => page!("wait-before-record"),
            RaceClass::LegacyVsNonblocking => page!("legacy-vs-nonblocking"),
            RaceClass::HostReadEarly => page!("host-read-early"),
            RaceClass::HostBufferReuse => page!("host-buffer-reuse"),
            RaceClass::UseBeforeAlloc => page!("use-before-alloc"),
            RaceClass::UseAfterFree => page!("use-after-free"),
            RaceClass::FreeInFlight => page!("free-in-flight"),
            RaceClass::AllocatorReuse => page!("allocator-reuse"),
            RaceClass::GraphUnordered => page!("graph-unordered"),
            RaceClass::PeerUnordered => page!("peer-unordered"),
            RaceClass::MemopOnlyOrder => page!("memop-only-order"),
            RaceClass::LegacyBesideNonblocking => page!("legacy-beside-nonblocking"),
            RaceClass::PooledStreamAlias => page!("pooled-stream-alias"),
            RaceClass::PageableCopyTail => page!("pageable-copy-tail"),
        };
        Self { text }
    }

    /// The page for a terminal of `width` columns: no Markdown, code indented. Code is never broken.
    pub fn render(&self, width: usize, color: bool) -> String {
        terminal::render(self.text, width, color)
    }

    /// The page in Markdown where the other documents of the project are out of reach: links to them
    /// are their texts alone.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let mut in_code = false;
        for line in self.text.lines() {
            in_code ^= line.starts_with("```");
            out += &if in_code { line.to_owned() } else { without_links(line) };
            out.push('\n');
        }
        out
    }

    /// The first paragraph as plain text: what the class means.
    pub(crate) fn summary(&self) -> String {
        let paragraph = self.text.split("\n\n").nth(1).unwrap_or_default();
        without_links(paragraph).replace('`', "")
    }

    /// The first sentence of the summary.
    pub(crate) fn sentence(&self) -> String {
        let summary = self.summary();
        let end = summary.find(". ").map_or(summary.len(), |end| end + 1);
        summary[..end].to_owned()
    }
}

/// A line with the text of a link in place of the link. The pages link to documents of this project
/// only.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, text, after)) = link(rest) {
        out += before;
        out += text;
        rest = after;
    }
    out + rest
}

/// The text before the first link `[TEXT](TARGET)`, the link's text, and the text behind it.
fn link(line: &str) -> Option<(&str, &str, &str)> {
    let middle = line.find("](")?;
    let start = line[..middle].rfind('[')?;
    let end = middle + line[middle..].find(')')?;
    Some((&line[..start], &line[start + 1..middle], &line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_texts() {
        assert_eq!(without_links("see [a b](../c.md), [d](e.md)."), "see a b, d.");
        assert_eq!(without_links("a [0..8] and f(x)"), "a [0..8] and f(x)");
    }

    #[test]
    fn pages_tell_their_class_first() {
        for &class in RaceClass::ALL {
            let page = Page::of(class);
            let title = format!("# {}\n", class.description());
            assert!(page.text.starts_with(&title), "{title}");
            // GitHub takes 1,024 characters of either.
            assert!((40..1024).contains(&page.summary().len()), "{title}");
            assert!(page.sentence().len() < page.summary().len(), "{title}");
            assert!(page.sentence().ends_with('.'), "{title}");
        }
    }

    #[test]
    fn markdown_for_other_tools_has_no_relative_links() {
        for &class in RaceClass::ALL {
            let markdown = Page::of(class).markdown();
            assert!(!markdown.contains(".md)"), "{class:?}");
            assert!(markdown.contains("docs/semantics.md"), "{class:?}");
            assert_eq!(markdown.lines().count(), Page::of(class).text.lines().count());
        }
    }
}
