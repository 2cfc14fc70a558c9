//! A page on a terminal: headings, paragraphs, lists and code without the signs of Markdown.
//!
//! Understood is what the pages have: headings with `#`, paragraphs of one line, items that begin
//! with `- `, fenced code, code in backticks, and links. Colour only repeats the words.

use super::without_links;
use crate::text::{Color, Style};

const TEXT_INDENT: usize = 2;
const CODE_INDENT: usize = 6;

pub(super) fn render(page: &str, width: usize, color: bool) -> String {
    let style = Style { color };
    let mut out = String::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if line.is_empty() {
            out.push('\n');
        } else if in_code {
            out += &format!("{:CODE_INDENT$}{line}\n", "");
        } else if let Some(heading) = line.strip_prefix("# ").or(line.strip_prefix("## ")) {
            out += &style.paint(Color::Strong, heading);
            out.push('\n');
        } else if let Some(item) = line.strip_prefix("- ") {
            paragraph(&mut out, "- ", item, width, style);
        } else {
            paragraph(&mut out, "", line, width, style);
        }
    }
    out
}

/// Breaks a paragraph into lines of at most `width` columns. A longer word has a line of its own.
fn paragraph(out: &mut String, mark: &str, text: &str, width: usize, style: Style) {
    let color = match text {
        "Wrong:" => Color::Error,
        "Right:" => Color::Good,
        _ => Color::Plain,
    };
    let hanging = TEXT_INDENT + mark.len();
    *out += &format!("{:TEXT_INDENT$}{mark}", "");
    let mut column = hanging;
    let text = without_links(text);
    // Whether the word begins inside backticks.
    let mut in_code = false;
    for (index, word) in text.split(' ').enumerate() {
        let pieces: Vec<&str> = word.split('`').collect();
        let columns: usize = pieces.iter().map(|piece| piece.chars().count()).sum();
        if index > 0 && column + 1 + columns > width {
            *out += &format!("\n{:hanging$}", "");
            column = hanging;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        for (place, piece) in pieces.iter().enumerate() {
            in_code ^= place > 0;
            let color = if in_code && !piece.is_empty() { Color::Strong } else { color };
            *out += &style.paint(color, piece);
        }
        column += columns;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Page;
    use streamsan_model::RaceClass;

    #[test]
    fn signs_of_markdown_are_gone() {
        let page = "# a-class\n\nTwo `long names` and a [docs/b.md](../b.md), which is `c`.\n\n\
                    ## Code\n\nWrong:\n\n```cpp\nf(`[x](y)`);\n\n  g();\n```\n\n- one `item`\n- two\n";
        let expected = "a-class\n\n  Two long names and\n  a docs/b.md, which\n  is c.\n\nCode\n\n  \
                        Wrong:\n\n      f(`[x](y)`);\n\n        g();\n\n  - one item\n  - two\n";
        assert_eq!(render(page, 20, false), expected);
        let colored = render(page, 20, true);
        assert!(colored.contains("\u{1b}[1mnames\u{1b}[0m"), "{colored}");
        assert!(colored.contains("\u{1b}[1;31mWrong:\u{1b}[0m"), "{colored}");
        assert_eq!(without_colors(&colored), expected);
    }

    #[test]
    fn pages_fit_and_are_the_same_in_colour() {
        for &class in RaceClass::ALL {
            for width in [60, 80, 100] {
                let plain = Page::of(class).render(width, false);
                let lines = plain.lines().filter(|line| !line.starts_with("      "));
                for line in lines {
                    assert!(line.len() <= width, "{class:?}: {line}");
                    assert!(
                        !line.contains(['`', '#']) && !line.contains("]("),
                        "{class:?}: {line}"
                    );
                }
                let colored = Page::of(class).render(width, true);
                assert_ne!(colored, plain);
                assert_eq!(without_colors(&colored), plain);
            }
        }
    }

    fn without_colors(text: &str) -> String {
        let mut pieces = text.split("\u{1b}[");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |out, piece| out + piece.split_once('m').map_or("", |(_, text)| text))
    }
}
