//! The one table of keys. The keys' commands, the help and `docs/keys.md` come from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write;

/// A key with its modifiers; Shift is in the character itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Whether Ctrl is held.
    pub control: bool,
}

const fn key(code: KeyCode) -> Key {
    Key { code, control: false }
}

const fn char(c: char) -> Key {
    key(KeyCode::Char(c))
}

const fn control(c: char) -> Key {
    Key { code: KeyCode::Char(c), control: true }
}

/// Where the table is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Keys for the visible part of the trace.
    View,
    /// Which operation is selected.
    Selection,
    /// Findings and edges.
    Races,
    /// Rows.
    Rows,
    /// Panes below the timelines.
    Panes,
    /// Everything else.
    General,
}

impl Section {
    /// All sections, in the order of the help.
    pub const ALL: [Self; 6] =
        [Self::View, Self::Selection, Self::Races, Self::Rows, Self::Panes, Self::General];

    /// Its headline.
    pub const fn description(self) -> &'static str {
        match self {
            Self::View => "Zoom and move",
            Self::Selection => "Select",
            Self::Races => "Races and edges",
            Self::Rows => "Rows",
            Self::Panes => "Panes",
            Self::General => "General",
        }
    }
}

/// Keys of one command.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The command of the keys.
    pub command: Command,
    /// The section it stands in.
    pub section: Section,
    /// The keys; of a command of two keys the second ones.
    pub keys: &'static [Key],
    /// The key that comes before, for commands of two keys.
    pub prefix: Option<char>,
    /// The keys as the help shows them.
    pub shown: &'static str,
    /// Its name in the command palette.
    pub name: &'static str,
    /// The effect of the keys, in words.
    pub help: &'static str,
}

macro_rules! table {
    ($($section:ident { $($command:ident $name:literal [$($key:expr),*] $(after $prefix:literal)?
        $shown:literal $help:literal;)* })*) => {
        /// The command of a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $($(#[doc = $help] $command,)*)*
        }

        /// Every command, with its keys.
        pub const TABLE: &[Binding] = &[$($(Binding {
            command: Command::$command,
            section: Section::$section,
            keys: &[$($key),*],
            prefix: { let prefix: &[char] = &[$($prefix)?]; if prefix.is_empty() { None } else { Some(prefix[0]) } },
            shown: $shown,
            name: $name,
            help: $help,
        },)*)*];
    };
}

use KeyCode::{BackTab, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};
table! {
    View {
        ZoomIn "zoom-in" [char('w'), char('+'), char('=')] "w +" "Zoom in.";
        ZoomOut "zoom-out" [char('s'), char('-')] "s -" "Zoom out.";
        PanLeft "left" [char('a')] "a" "Move left by a quarter of the screen.";
        PanRight "right" [char('d')] "d" "Move right by a quarter of the screen.";
        PageLeft "page-left" [char('A')] "A" "Move left by a screen.";
        PageRight "page-right" [char('D')] "D" "Move right by a screen.";
        ShowAll "all" [char('0')] "0" "Show the whole trace.";
        Centre "centre" [char('f')] "f" "Centre on the selected operation; again: zoom to it.";
        SwitchAxis "axis" [char('x')] "x" "Switch the axis: issue order, host issue time, logical order.";
        Follow "follow" [char('F')] "F" "Of a program that runs: follow the end of its trace, or stop; moving away stops too.";
        ShiftLeft "shift-left" [char('{')] "{" "Of several traces: shift that of the selected row left by a column (a position, where that is wider) against the others.";
        ShiftRight "shift-right" [char('}')] "}" "Shift it right.";
        Align "align" [char('&')] "&" "Of several traces: shift that of the selected operation so that it lies under the begin of the area (v), an operation of another trace.";
    }
    Selection {
        PreviousOperation "previous" [char('h'), key(Left), char(',')] "h ← ," "Select the previous operation of the row.";
        NextOperation "next" [char('l'), key(Right), char('.')] "l → ." "Select the next operation of the row.";
        FirstOperation "first" [char('^'), key(Home)] "^ Home" "Select the first operation of the row.";
        LastOperation "last" [char('$'), key(End)] "$ End" "Select the last operation of the row.";
        RowUp "up" [char('k'), key(Up)] "k ↑" "Go to the row above.";
        RowDown "down" [char('j'), key(Down)] "j ↓" "Go to the row below.";
        HalfPageUp "half-page-up" [control('u'), key(PageUp)] "Ctrl-u PageUp" "Go up by half a screen.";
        HalfPageDown "half-page-down" [control('d'), key(PageDown)] "Ctrl-d PageDown" "Go down by half a screen.";
        FirstRow "top" [char('g')] after 'g' "gg" "Go to the first row.";
        LastRow "bottom" [char('G')] "G" "Go to the last row.";
        NextTrace "next-trace" [char('t')] "t" "Of several traces: go to the next one.";
        PreviousTrace "previous-trace" [char('T')] "T" "Go to the previous trace.";
        Search "search" [char('/')] "/" "Search kernels and entry points; #N goes to an operation.";
        SearchNext "search-next" [char('n')] "n" "Find the next operation that matches the search or the filter.";
        SearchPrevious "search-previous" [char('N')] "N" "Find the previous operation that matches the search or the filter.";
        SearchSame "search-same" [char('#')] "#" "Search for the selected operation's kernel or entry point.";
        SetMark "mark" [char('m')] "m a" "Mark the selected operation with a letter.";
        JumpMark "jump" [char('\'')] "' a" "Go to the operation marked with a letter.";
        Area "area" [char('v')] "v" "Begin an area at the selected operation; again: end it.";
    }
    Races {
        NextFinding "next-race" [char('r')] "r" "Go to the next race, framing both accesses.";
        PreviousFinding "previous-race" [char('R')] "R" "Go to the previous race.";
        NextOccurrence "next-occurrence" [char('c')] "c" "Go to the next occurrence of the race.";
        PreviousOccurrence "previous-occurrence" [char('C')] "C" "Go to the previous occurrence of the race.";
        OtherSide "other-side" [char('o')] "o" "Go to the race's other access.";
        EdgeBack "edge-back" [char('[')] "[" "Follow an edge back to what the selected operation waits for.";
        EdgeForward "edge-forward" [char(']')] "]" "Follow an edge to what waits for the selected operation.";
    }
    Rows {
        Pin "pin" [char('p')] "p" "Pin the row to the top, or unpin it.";
        Filter "filter" [char('\\')] "\\" "Filter by stream:, kernel:, file:, function:, allocation: or words of rows' names (several: a, b), and count the hits; n and N go to them. In the list of races: only races with such words.";
        ToggleIdle "idle" [char('i')] "i" "Show or hide streams that are only created.";
    }
    Panes {
        PaneDetails "details" [char('1')] "1" "Show details of the selected operation.";
        PaneRaces "races" [char('2')] "2" "Show the list of races.";
        PaneMemory "memory" [char('3')] "3" "Show memory: allocations, and who touched one.";
        PaneStatistics "statistics" [char('4')] "4" "Show statistics: calls, streams, what was not seen.";
        PaneExplanation "explain" [char('5')] "5" "Show why the race is one.";
        PaneBytes "bytes" [char('6')] "6" "Show bytes of memory over time: by allocation, or by call site (S).";
        PaneOutput "output" [char('7')] "7" "Show what the program prints, while it is viewed as it runs.";
        NextPane "next-pane" [key(Tab)] "Tab" "Show the next pane.";
        PreviousPane "previous-pane" [key(BackTab)] "Shift-Tab" "Show the previous pane.";
        Enter "open" [key(Enter)] "Enter" "Go into the pane; there: open what is selected.";
        Expand "expand" [char('z')] "z" "Give the pane the whole screen, or take it back.";
        Grow "taller" [char('>')] ">" "Make the pane taller.";
        Shrink "shorter" [char('<')] "<" "Make the pane shorter.";
        Fit "fit" [char('|')] "|" "Give the pane the lines that its content needs, as at the begin.";
        Sort "sort" [char('S')] "S" "Sort the list of races by another column; divide bytes by allocation or by call site.";
    }
    General {
        Palette "commands" [char(':')] ":" "Choose a command by its name.";
        Copy "copy" [char('y')] "y" "Copy what is selected to the clipboard (OSC 52).";
        Edit "edit" [char('e')] "e" "Open the editor ($VISUAL or $EDITOR) at the line that made the selected call.";
        ToggleMouse "mouse" [char('M')] "M" "Switch the mouse off or on; off, the terminal selects text.";
        Help "help" [char('?')] "?" "Show the keys.";
        Back "back" [key(Esc)] "Esc" "Leave the innermost thing: input, help, pane, area, filter.";
        Quit "quit" [char('q')] "q" "Quit.";
    }
}

/// The command of a key press behind `prefix`, if it has one. Ctrl-C quits, but for a program that
/// runs, which it interrupts.
pub fn command_for(event: KeyEvent, prefix: Option<char>) -> Option<Command> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    if control && event.code == KeyCode::Char('c') {
        return Some(Command::Quit);
    }
    let key = Key { code: event.code, control };
    TABLE
        .iter()
        .find(|binding| binding.prefix == prefix && binding.keys.contains(&key))
        .map(|binding| binding.command)
}

/// Whether a character begins a command of two keys.
pub(crate) fn is_prefix(c: char) -> bool {
    TABLE.iter().any(|binding| binding.prefix == Some(c))
}

/// The mouse, in words for the help.
pub const MOUSE: &[(&str, &str)] = &[
    ("wheel", "Zoom at the pointer; over a pane: scroll."),
    ("Shift-wheel", "Move left and right."),
    ("drag", "Move the timelines; on the tabs: make the pane taller or shorter."),
    ("click", "Select an operation, a row, a line of a pane, or a place in the minimap."),
];

/// The text of `docs/keys.md`.
pub fn keys_document() -> String {
    let mut text = "# Keys of `streamsan view`\n\nMade from the key table in `tui/src/keys.rs`; \
                    `BLESS=1 cargo test -p streamsan-tui` writes it\nagain. In the viewer, `?` shows the same.\n"
        .to_owned();
    for section in Section::ALL {
        let _ =
            write!(text, "\n## {}\n\n| keys | what they do |\n|---|---|\n", section.description());
        for binding in TABLE.iter().filter(|binding| binding.section == section) {
            let keys: Vec<String> = match binding.prefix {
                // A key and a letter of choice, or two keys, are one.
                Some(_) => vec![format!("`{}`", binding.shown)],
                None if matches!(binding.command, Command::SetMark | Command::JumpMark) => {
                    vec![format!("`{}`", binding.shown)]
                }
                None => binding.shown.split(' ').map(|key| format!("`{key}`")).collect(),
            };
            let _ = writeln!(text, "| {} | {} |", keys.join(" "), binding.help);
        }
    }
    text += "\n## Mouse\n\n| mouse | what it does |\n|---|---|\n";
    for (what, help) in MOUSE {
        let _ = writeln!(text, "| {what} | {help} |");
    }
    text += "\n## Commands\n\n`:` takes the name of any command, as far as it is unambiguous; the \
             list below it shrinks as you type.\n\n| name | keys |\n|---|---|\n";
    for binding in TABLE {
        let _ = writeln!(text, "| `{}` | `{}` |", binding.name, binding.shown);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn no_key_has_two_meanings() {
        let keys: Vec<_> =
            TABLE.iter().flat_map(|b| b.keys.iter().map(move |key| (b.prefix, key))).collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{key:?} is bound twice");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        for (i, binding) in TABLE.iter().enumerate() {
            assert!(TABLE[..i].iter().all(|b| b.name != binding.name), "{}", binding.name);
        }
    }
}
