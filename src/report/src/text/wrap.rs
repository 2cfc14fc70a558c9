//! Lines no wider than the terminal.

/// Columns where there is no terminal, so that a report in a file is always the same.
const COLUMNS: usize = 100;
/// A narrower terminal breaks lines by itself.
const NARROWEST: usize = 40;
/// A blank at which no line ends. No name of a program has it: printable names have it escaped.
pub(crate) const GLUE: char = '\u{a0}';

/// The width of lines on a terminal with this many columns, or on none.
pub(crate) fn columns(terminal: Option<usize>) -> usize {
    terminal.unwrap_or(COLUMNS).max(NARROWEST)
}

/// Breaks a text at blanks. The first line begins with `head`, the others with as many blanks as
/// `indent` says. A word that is longer than a line stays whole, and words with [`GLUE`] between
/// them are one.
pub(crate) fn wrapped(head: &str, indent: usize, text: &str, columns: usize) -> String {
    let mut lines = head.to_owned();
    let mut at = head.chars().count();
    let mut is_first = true;
    for word in text.split(' ') {
        let len = word.chars().count();
        if !is_first && at + 1 + len > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            at = indent;
        } else if !is_first {
            lines.push(' ');
            at += 1;
        }
        lines.extend(word.chars().map(|c| if c == GLUE { ' ' } else { c }));
        at += len;
        is_first = false;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_break_at_blanks_and_hang() {
        assert_eq!(wrapped("why ", 4, "a bc def", 80), "why a bc def\n");
        assert_eq!(wrapped("why ", 4, "a bc def", 9), "why a bc\n    def\n");
        assert_eq!(wrapped("why ", 4, "a bc def", 8), "why a bc\n    def\n");
        assert_eq!(wrapped("why ", 2, "a bc def", 7), "why a\n  bc\n  def\n");
        assert_eq!(wrapped("> ", 2, "/a/long/path x", 6), "> /a/long/path\n  x\n");
        assert_eq!(wrapped("", 2, "a id\u{a0}7", 5), "a\n  id 7\n");
        // Columns are characters, not bytes.
        assert_eq!(wrapped("", 0, "\u{e4}\u{f6} \u{fc}", 4), "\u{e4}\u{f6} \u{fc}\n");
    }
}
