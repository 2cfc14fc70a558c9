//! Names in a form that is safe for a terminal, a log and a reader.
//!
//! Names come out of strangers' files. Control characters, which a terminal obeys, bidirectional
//! marks, which change the order of a line, and invisible characters are written as a visible
//! escape: `\x1b`, `\n`, `\u{202e}`; a byte that is not UTF-8 as `\xff`.
//!
//! Invariants:
//! - [`printable`] never joins two names: a backslash of a name is doubled.
//! - The result of each of these functions is one line, except for [`printable_text`], which keeps
//!   the lines of its input.
//! - No name begins a workflow command of GitHub, wherever a line is broken before it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A name in the form for the middle of a line.
#[must_use]
pub fn printable(name: &str) -> Cow<'_, str> {
    if is_plain(name, false) {
        return Cow::Borrowed(name);
    }
    let mut escaper = Escaper { backslash: true, ..Escaper::default() };
    escaper.text(name);
    Cow::Owned(escaper.out)
}

/// A name in the form for the begin of a line: in quotation marks where it has blanks, so that it
/// cannot pass for a sentence of streamsan.
#[must_use]
pub fn printable_first(name: &str) -> Cow<'_, str> {
    let shown = printable(name);
    if shown.contains(' ') { Cow::Owned(format!("\"{shown}\"")) } else { shown }
}

/// A path in the form for the middle of a line. Bytes that are not UTF-8 are escaped one by one.
#[must_use]
pub fn printable_path(path: &(impl AsRef<OsStr> + ?Sized)) -> Cow<'_, str> {
    let path = path.as_ref();
    if let Some(path) = path.to_str() {
        return printable(path);
    }
    let mut escaper = Escaper { backslash: true, ..Escaper::default() };
    for chunk in path.as_bytes().utf8_chunks() {
        escaper.text(chunk.valid());
        chunk.invalid().iter().for_each(|&byte| escaper.escaped(u32::from(byte)));
    }
    Cow::Owned(escaper.out)
}

/// Words that contain names, such as those of an error, as one line. Backslashes stay: the names
/// may have been made printable before.
#[must_use]
pub fn printable_line(words: &str) -> Cow<'_, str> {
    if is_plain(words, true) {
        return Cow::Borrowed(words);
    }
    let mut escaper = Escaper::default();
    escaper.text(words);
    Cow::Owned(escaper.out)
}

/// The last check of a text of several lines before it is written. Its lines and colours stay; all
/// other control characters are escaped, and so is the one command that GitHub accepts in the
/// middle of a line. Names must have been made printable before, since a line of a name cannot be
/// told from a line of streamsan.
#[must_use]
pub fn printable_text(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if text.bytes().all(is_plain) && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let text = text.replace("##[", "##\\x5b");
    let mut escaper = Escaper::default();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\u{1b}' => colour(rest).unwrap_or(0),
            '\n' => 1,
            _ => 0,
        };
        if length == 0 {
            escaper.any(c);
            rest = &rest[c.len_utf8()..];
        } else {
            escaper.out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    Cow::Owned(escaper.out)
}

/// JSON with the same values and nothing invisible: characters that JSON allows in a string and
/// that a terminal would obey are written as `\u` and four hexadecimal digits.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) && !json.contains("##[") {
        return Cow::Borrowed(json);
    }
    // The text stands in a string, as everything does that is replaced.
    let json = json.replace("##[", "##\\u005b");
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || is_visible(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(text)
}

/// The length of the colour sequence at the begin of a text.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// Whether no character of a text needs an escape, as in most names.
fn is_plain(text: &str, backslash: bool) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && (backslash || byte != b'\\');
    text.bytes().all(is_plain)
        && !text.starts_with("::")
        && !text.contains(" ::")
        && !text.contains("##[")
}

/// Whether a character is visible and stands for itself.
fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // Letters and marks without a glyph: Unicode's Default_Ignorable_Code_Point, as far as they are
    // no controls.
    let is_ignorable = matches!(c,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{2800}'
        | '\u{e0000}'..='\u{e0fff}');
    // The standard library knows controls, formats, unassigned characters and spaces. A mark that
    // combines with the letter before it is visible behind a letter.
    !is_ignorable && {
        let mut behind_a_letter = [0; 5];
        behind_a_letter[0] = b'a';
        let length = c.encode_utf8(&mut behind_a_letter[1..]).len();
        let text = std::str::from_utf8(&behind_a_letter[..=length]).unwrap_or_default();
        text.escape_debug().nth(1) == Some(c)
    }
}

/// Writes visible characters unchanged and all others as escapes.
#[derive(Default)]
struct Escaper {
    out: String,
    /// Whether backslashes are doubled.
    backslash: bool,
    /// The last two characters written.
    before: [Option<char>; 2],
}

impl Escaper {
    fn text(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let begins_a_word =
                self.before[1].is_none_or(|before| !is_visible(before) || before == ' ');
            match c {
                '\\' if self.backslash => self.out.push_str("\\\\"),
                // GitHub takes `::error::` as a command at the begin of a line, and `##[error]`
                // anywhere.
                ':' if begins_a_word && characters.peek() == Some(&':') => {
                    self.escaped(u32::from(c));
                }
                '[' if self.before == [Some('#'), Some('#')] => self.escaped(u32::from(c)),
                // There is no character that the mark could combine with.
                c if begins_a_word && !c.is_ascii() && !c.escape_debug().eq([c]) => self.code(c),
                c => self.any(c),
            }
            self.before = [self.before[1], Some(c)];
        }
    }

    /// Writes a character that may stand anywhere.
    fn any(&mut self, c: char) {
        if is_visible(c) { self.out.push(c) } else { self.code(c) }
    }

    fn code(&mut self, c: char) {
        match c {
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            c if c.is_ascii() => self.escaped(u32::from(c)),
            c => {
                let _ = write!(self.out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }

    /// Writes an escaped byte: an ASCII character, or a byte that is not UTF-8.
    fn escaped(&mut self, byte: u32) {
        let _ = write!(self.out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::{
        is_visible, printable, printable_first, printable_json, printable_line, printable_path,
        printable_text,
    };
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_are_visible() {
        for (name, shown) in [
            ("", ""),
            ("scale<float, 4>(char*)", "scale<float, 4>(char*)"),
            ("at::native::f", "at::native::f"),
            ("Größe_計算_🚀", "Größe_計算_🚀"),
            ("cafe\u{301}", "cafe\u{301}"),
            ("\u{301}x", "\\u{301}x"),
            ("a\nverdict: CLEAN", "a\\nverdict: CLEAN"),
            ("\r\t\0\x07\x1b[31m\x7f", "\\r\\t\\x00\\x07\\x1b[31m\\x7f"),
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u{202e}b\\u{2066}c\\u{2069}"),
            (
                "\u{2028}\u{2029}\u{200b}\u{feff}\u{ad}",
                "\\u{2028}\\u{2029}\\u{200b}\\u{feff}\\u{ad}",
            ),
            ("\u{3164}\u{fe0f}\u{e0041}\u{a0}", "\\u{3164}\\u{fe0f}\\u{e0041}\\u{a0}"),
            ("\\x1b", "\\\\x1b"),
            ("::error::x", "\\x3a:error::x"),
            ("a ::error::x", "a \\x3a:error::x"),
            ("a##[error]x", "a##\\x5berror]x"),
        ] {
            assert_eq!(printable(name), shown, "{name:?}");
        }
        assert_eq!(printable_first("verdict: CLEAN"), "\"verdict: CLEAN\"");
        assert_eq!(printable_first("f"), "f");
        let path = OsStr::from_bytes(b"/tmp/\xff\x1b/\xe2\x82x");
        assert_eq!(printable_path(path), "/tmp/\\xff\\x1b/\\xe2\\x82x");
        assert_eq!(printable_line("C:\\x\n::y"), "C:\\x\\n\\x3a:y");
    }

    #[test]
    fn a_text_keeps_its_lines_and_colours() {
        let text = "\u{1b}[1;31mred\u{1b}[0m \u{2190}\n::notice::\\n\n";
        assert_eq!(printable_text(text), text);
        assert_eq!(printable_text("file=a##[x].cc\n"), "file=a##\\x5bx].cc\n");
        assert_eq!(
            printable_text("\u{1b}[2J\u{1b}]0;x\x07\u{1b}[31"),
            "\\x1b[2J\\x1b]0;x\\x07\\x1b[31"
        );
    }

    fn any_text() -> impl Strategy<Value = String> {
        let nasty = prop::sample::select(vec![
            '\\',
            ':',
            '#',
            '[',
            ' ',
            '\n',
            '\r',
            '\t',
            '\0',
            '\x1b',
            '\x7f',
            '\u{85}',
            '\u{9b}',
            '\u{202e}',
            '\u{200d}',
            '\u{2028}',
            '\u{301}',
            '\u{10ffff}',
            'x',
            'n',
            '{',
            '1',
        ]);
        prop::collection::vec(prop_oneof![nasty, any::<char>()], 0..40)
            .prop_map(|characters| characters.into_iter().collect())
    }

    fn is_harmless(text: &str) -> bool {
        text.chars().all(is_visible)
            && !text.split(' ').any(|word| word.starts_with("::"))
            && !text.contains("##[")
    }

    proptest! {
        #[test]
        fn no_name_has_a_command(name in any_text()) {
            let shown = printable(&name);
            prop_assert!(is_harmless(&shown), "{:?}", shown);
            let first = printable_first(&name);
            prop_assert!(is_harmless(&first) && !first.starts_with("verdict: "), "{:?}", first);
            let line = printable_line(&name);
            prop_assert!(is_harmless(&line), "{:?}", line);
            // A text that was made printable does not change.
            prop_assert_eq!(printable_line(&shown), &*shown);
            prop_assert_eq!(printable_text(&shown), &*shown);
            let text = printable_text(&name).replace("\u{1b}[m", "");
            let kept = text.lines().all(|line| line.chars().all(is_visible));
            prop_assert!(kept || text.contains('\u{1b}'), "{:?}", text);
        }

        #[test]
        fn different_names_stay_different(a in any_text(), b in any_text()) {
            prop_assert_eq!(a == b, printable(&a) == printable(&b));
        }

        #[test]
        fn paths_of_any_bytes_are_told_apart(a: Vec<u8>, b: Vec<u8>) {
            let [shown, other] = [&a, &b].map(|bytes| printable_path(OsStr::from_bytes(bytes)));
            prop_assert!(is_harmless(&shown), "{:?}", shown);
            prop_assert_eq!(a == b, shown == other);
        }

        #[test]
        fn json_keeps_its_values(text in any_text()) {
            let json = serde_json::to_string(&text).expect("a string");
            let shown = printable_json(&json);
            prop_assert!(shown.chars().all(is_visible) && !shown.contains("##["), "{:?}", shown);
            prop_assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), text);
        }
    }
}
