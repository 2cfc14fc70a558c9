//! The one table of keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Shows half as much, around the cursor.
    ZoomIn,
    /// Shows twice as much, around the cursor.
    ZoomOut,
    /// Moves the window left by a quarter.
    PanLeft,
    /// Moves the window right by a quarter.
    PanRight,
    /// Shows the whole trace.
    ShowAll,
    /// Centres the window on the selected operation.
    Centre,
    /// Selects the row above.
    RowUp,
    /// Selects the row below.
    RowDown,
    /// Selects the previous operation of the row.
    PreviousOperation,
    /// Selects the next operation of the row.
    NextOperation,
    /// Selects the first operation of the row.
    FirstOperation,
    /// Selects the last operation of the row.
    LastOperation,
    /// Jumps to the next finding and frames both of its operations.
    NextFinding,
    /// Jumps to the previous finding.
    PreviousFinding,
    /// Jumps between the two operations of the finding.
    OtherSide,
    /// Shows or hides the key list.
    ToggleHelp,
    /// Leaves the help, or the viewer.
    Back,
    /// Leaves the viewer.
    Quit,
}

/// Keys of one command.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What they do.
    pub command: Command,
    /// The keys.
    pub keys: &'static [KeyCode],
    /// The keys as the help shows them.
    pub shown: &'static str,
    /// What they do, in words.
    pub help: &'static str,
}

macro_rules! table {
    ($($command:ident [$($key:expr),*] $shown:literal $help:literal;)*) => {
        /// Every key the viewer knows.
        pub const TABLE: &[Binding] = &[$(Binding {
            command: Command::$command, keys: &[$($key),*], shown: $shown, help: $help,
        }),*];
    };
}

use KeyCode::{Char, Down, End, Esc, Home, Left, Right, Tab, Up};
table! {
    ZoomIn [Char('w'), Char('+'), Char('=')] "w +" "zoom in";
    ZoomOut [Char('s'), Char('-')] "s -" "zoom out";
    PanLeft [Char('a')] "a" "move left";
    PanRight [Char('d')] "d" "move right";
    ShowAll [Char('0')] "0" "show the whole trace";
    Centre [Char('f')] "f" "centre on the selected operation";
    RowUp [Char('k'), Up] "k ↑" "row above";
    RowDown [Char('j'), Down] "j ↓" "row below";
    PreviousOperation [Char('h'), Left] "h ←" "previous operation of the row";
    NextOperation [Char('l'), Right] "l →" "next operation of the row";
    FirstOperation [Char('g'), Home] "g" "first operation of the row";
    LastOperation [Char('G'), End] "G" "last operation of the row";
    NextFinding [Char('r')] "r" "next finding, framing both operations";
    PreviousFinding [Char('R')] "R" "previous finding";
    OtherSide [Tab] "Tab" "the finding's other operation";
    ToggleHelp [Char('?')] "?" "this list";
    Back [Esc] "Esc" "leave the list, or the viewer";
    Quit [Char('q')] "q" "quit";
}

/// The command of a key press, if it has one. Ctrl-C quits.
pub fn command_for(key: KeyEvent) -> Option<Command> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == Char('c')).then_some(Command::Quit);
    }
    TABLE.iter().find(|binding| binding.keys.contains(&key.code)).map(|binding| binding.command)
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn no_key_has_two_meanings() {
        let keys: Vec<_> = TABLE.iter().flat_map(|b| b.keys).collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{key:?} is bound twice");
        }
    }
}
