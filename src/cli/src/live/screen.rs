//! The last lines of what a program prints to a terminal, as text.
//!
//! Carriage returns, backspaces and erased lines are carried out, so that a progress bar is one line;
//! colours are left out. Deliberately absent: programs that move up on the screen or draw all of it;
//! their text is there, their picture is not.

use std::collections::VecDeque;

/// Lines that are kept.
const LINES: usize = 2000;
/// Characters of a line that are kept.
const WIDTH: usize = 2000;
const TAB: usize = 8;

#[derive(Default)]
pub(super) struct Screen {
    parser: vte::Parser,
    text: Text,
}

#[derive(Default)]
struct Text {
    lines: VecDeque<String>,
    line: Vec<char>,
    column: usize,
}

impl Screen {
    /// Takes what was printed.
    pub(super) fn print(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.text, bytes);
    }

    /// The last lines, the one that is being written included.
    pub(super) fn lines(&self) -> Vec<String> {
        let current: String = self.text.line.iter().collect();
        let current = Some(current.trim_end().to_owned()).filter(|line| !line.is_empty());
        self.text.lines.iter().cloned().chain(current).collect()
    }
}

impl Text {
    fn end_line(&mut self) {
        let line: String = self.line.drain(..).collect();
        self.column = 0;
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.trim_end().to_owned());
    }
}

impl vte::Perform for Text {
    fn print(&mut self, c: char) {
        if self.column >= WIDTH {
            return;
        }
        if self.line.len() <= self.column {
            self.line.resize(self.column + 1, ' ');
        }
        self.line[self.column] = c;
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.column = 0,
            b'\t' => self.column = (self.column / TAB + 1) * TAB,
            0x08 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|p| p.first()).copied().unwrap_or(0);
        let by = usize::from(first.max(1));
        match action {
            // Erase: to the end of the line, up to here, or all of it.
            'K' if first == 0 => self.line.truncate(self.column),
            'K' if first == 1 => {
                let end = (self.column + 1).min(self.line.len());
                self.line[..end].fill(' ');
            }
            'K' => self.line.clear(),
            'C' => self.column = (self.column + by).min(WIDTH),
            'D' => self.column = self.column.saturating_sub(by),
            'G' => self.column = (by - 1).min(WIDTH),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES, Screen, WIDTH};

    fn lines(printed: &[&[u8]]) -> Vec<String> {
        let mut screen = Screen::default();
        printed.iter().for_each(|bytes| screen.print(bytes));
        screen.lines()
    }

    #[test]
    fn what_a_terminal_would_show_is_kept() {
        for (printed, shown) in [
            (&b"one\ntwo\n"[..], &["one", "two"][..]),
            (b"one\r\ntwo", &["one", "two"]),
            (b" 10%\r 20%\r100%\ndone", &["100%", "done"]),
            (b"long text\rshort\x1b[K\n", &["short"]),
            (b"gone\x1b[2K\rnew", &["new"]),
            (b"\x1b[1;31mred\x1b[0m plain", &["red plain"]),
            (b"\x1b]0;title\x07text", &["text"]),
            (b"a\tb", &["a       b"]),
            (b"ab\x08c", &["ac"]),
            ("µ → ✓".as_bytes(), &["µ → ✓"]),
            (b"\xff\xfe ok", &["\u{fffd}\u{fffd} ok"]),
            (b"", &[]),
            (b"\n\n", &["", ""]),
        ] {
            assert_eq!(lines(&[printed]), shown, "{}", printed.escape_ascii());
        }
    }

    #[test]
    fn pieces_make_a_whole() {
        let text = "µ\x1b[31mred\x1b[0m\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]]), ["µred"], "{cut}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut screen = Screen::default();
        for n in 0..LINES * 2 {
            screen.print(format!("{n}\n").as_bytes());
        }
        let lines = screen.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, format!("{LINES}").as_str()));
        screen.print(&vec![b'x'; WIDTH * 3]);
        screen.print(b"\x1b[65535Cy\x1b[65535Gz\ty");
        assert_eq!(screen.lines().last().map(String::len), Some(WIDTH));
    }
}
