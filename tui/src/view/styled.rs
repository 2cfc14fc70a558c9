//! Lines of text with styles, and the report's colours turned into styles.

use ratatui::style::{Color, Modifier, Style};
use streamsan_names::printable_line;

/// A line of a pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    /// Parts of the line, each in its style.
    pub(super) parts: Vec<(String, Style)>,
}

impl Text {
    /// The line without styles.
    pub(super) fn unstyled(&self) -> String {
        self.parts.iter().map(|(part, _)| printable_line(part)).collect()
    }

    fn of_characters(characters: &[(char, Style)]) -> Self {
        let mut parts: Vec<(String, Style)> = Vec::new();
        for &(character, style) in characters {
            match parts.last_mut() {
                Some((text, last)) if *last == style => text.push(character),
                _ => parts.push((character.to_string(), style)),
            }
        }
        Self { parts }
    }
}

pub(super) fn plain(text: impl Into<String>) -> Text {
    styled(text, Style::new())
}

pub(super) fn bold(text: impl Into<String>) -> Text {
    styled(text, Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn styled(text: impl Into<String>, style: Style) -> Text {
    Text { parts: vec![(text.into(), style)] }
}

/// A text of the report as lines that fit. Select-graphic-rendition sequences become styles; any
/// other control character stays in the text and is made printable where it is drawn.
pub(super) fn report(text: &str, width: usize) -> Vec<Text> {
    let mut style = Style::new();
    let lines = text.lines().map(|line| characters(line, &mut style));
    lines.flat_map(|line| wrap(&line, width)).map(|line| Text::of_characters(&line)).collect()
}

/// A text of the report without its colours.
pub(super) fn without_colours(text: &str) -> String {
    let mut style = Style::new();
    let mut plain = String::new();
    for line in text.lines() {
        plain.extend(characters(line, &mut style).into_iter().map(|(character, _)| character));
        plain.push('\n');
    }
    plain
}

fn characters(line: &str, style: &mut Style) -> Vec<(char, Style)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let sequence = rest.strip_prefix("\x1b[").and_then(|after| {
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            after[end..].strip_prefix('m').map(|behind| (&after[..end], behind))
        });
        match sequence {
            Some((codes, behind)) => {
                codes.split(';').for_each(|code| select(style, code.parse().unwrap_or(0)));
                rest = behind;
            }
            None => {
                found.push((character, *style));
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    found
}

/// Applies a code of select-graphic-rendition, as the report uses them.
fn select(style: &mut Style, code: u8) {
    const NAMED: [Color; 8] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
    ];
    const LIGHT: [Color; 8] = [
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    *style = match code {
        0 => Style::new(),
        1 => style.add_modifier(Modifier::BOLD),
        2 => style.add_modifier(Modifier::DIM),
        3 => style.add_modifier(Modifier::ITALIC),
        4 => style.add_modifier(Modifier::UNDERLINED),
        30..=37 => style.fg(NAMED[usize::from(code - 30)]),
        90..=97 => style.fg(LIGHT[usize::from(code - 90)]),
        39 => Style { fg: None, ..*style },
        _ => *style,
    };
}

/// The most columns of a line's first word: `(1) later`.
const FIRST_WORD: usize = 10;

/// The first of so many spaces in a row, from a column on.
fn gap(line: &[(char, Style)], spaces: usize, from: usize) -> Option<usize> {
    let is_space = |window: &[(char, Style)]| window.iter().all(|(c, _)| *c == ' ');
    let after = line.get(from..)?;
    Some(from + after.windows(spaces).position(is_space)?)
}

/// A line cut at spaces so that it fits. Its continuations stand below what follows its first word,
/// where more than one space follows that (`why   no path`), else behind its begin.
fn wrap(line: &[(char, Style)], width: usize) -> Vec<Vec<(char, Style)>> {
    let indent = line.iter().take_while(|(character, _)| *character == ' ').count();
    let hang = gap(line, 2, indent)
        .filter(|&end| end <= indent + FIRST_WORD && indent > 0)
        .and_then(|end| Some(end + line[end..].iter().position(|(c, _)| *c != ' ')?))
        .unwrap_or(indent + 2);
    let room = width.saturating_sub(1).max(hang + 20);
    let mut lines = Vec::new();
    let mut rest = line.to_vec();
    while rest.len() > room {
        let space = rest[..room].iter().rposition(|(character, _)| *character == ' ');
        // Three spaces divide what stands on one line only where it fits.
        let divided = gap(&rest, 3, hang).filter(|&cut| cut <= room && rest.len() - cut <= room);
        let cut = divided.or(space.filter(|&cut| cut > hang)).unwrap_or(room);
        let mut tail = vec![(' ', Style::new()); hang];
        tail.extend(rest[cut..].iter().skip_while(|(character, _)| *character == ' '));
        rest.truncate(cut);
        lines.push(std::mem::replace(&mut rest, tail));
        if lines.len() > 2000 {
            break;
        }
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::{Text, report, without_colours};
    use ratatui::style::{Color, Modifier, Style};

    #[test]
    fn lines_fit_and_lose_nothing() {
        let text = "    one two three four five six seven eight nine ten eleven twelve thirteen";
        for width in [10, 30, 40, 200] {
            let lines: Vec<String> = report(text, width).iter().map(Text::unstyled).collect();
            assert!(lines.iter().all(|line| line.len() <= width.max(26)), "{lines:?}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(lines.iter().flat_map(|line| words(line)).collect::<Vec<_>>(), words(text));
        }
    }

    #[test]
    fn lines_are_cut_as_the_report_cuts_them() {
        let text = "error[missing-wait]: race on `block`   race 1 of 1, seen once\n  \
                    (1) first  WRITE  a_kernel_with_a_name, #30, stream \"copy\"\n  \
                    why   no path leads from (1) to the other side\n    at a/long/path/x.py:1 in f";
        let lines: Vec<String> = report(text, 45).iter().map(Text::unstyled).collect();
        assert_eq!(
            lines,
            [
                "error[missing-wait]: race on `block`",
                "  race 1 of 1, seen once",
                "  (1) first  WRITE  a_kernel_with_a_name,",
                "             #30, stream \"copy\"",
                "  why   no path leads from (1) to the other",
                "        side",
                "    at a/long/path/x.py:1 in f",
            ]
        );
    }

    #[test]
    fn the_reports_colours_are_styles() {
        let text = "\x1b[1;31merror\x1b[0m: two words\x1b[31m on\nthis line\x1b[0m";
        let red = Style::new().fg(Color::Red);
        let lines = report(text, 80);
        assert_eq!(
            lines[0].parts,
            [
                ("error".to_owned(), red.add_modifier(Modifier::BOLD)),
                (": two words".to_owned(), Style::new()),
                (" on".to_owned(), red),
            ]
        );
        assert_eq!(lines[1].parts, [("this line".to_owned(), red)]);
        assert_eq!(without_colours(text), "error: two words on\nthis line\n");
        // What is no colour stays, to be made printable.
        assert_eq!(report("a\x1b[2Jb", 80)[0].unstyled(), "a\\x1b[2Jb");
    }
}
