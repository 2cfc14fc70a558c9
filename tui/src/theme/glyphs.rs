//! Characters: lines, bars, and the shapes of operations.

use streamsan_model::OpGroup;

/// Which characters are used for lines and bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing and blocks.
    #[default]
    Unicode,
    /// ASCII only.
    Ascii,
}

/// Characters of a connection between rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) along: &'static str,
    pub(crate) across: &'static str,
    /// From the left to downwards and to upwards.
    pub(crate) left_down: &'static str,
    pub(crate) left_up: &'static str,
    /// From the right to downwards and to upwards.
    pub(crate) right_down: &'static str,
    pub(crate) right_up: &'static str,
}

impl Line {
    /// An edge.
    pub(crate) const fn edge(glyphs: Glyphs) -> Self {
        match glyphs {
            Glyphs::Unicode => Self {
                along: "─",
                across: "│",
                left_down: "┐",
                left_up: "┘",
                right_down: "┌",
                right_up: "└",
            },
            Glyphs::Ascii => Self {
                along: "-",
                across: "|",
                left_down: "+",
                left_up: "+",
                right_down: "+",
                right_up: "+",
            },
        }
    }

    /// The edge that is missing.
    pub(crate) const fn missing(glyphs: Glyphs) -> Self {
        match glyphs {
            Glyphs::Unicode => Self {
                along: "╍",
                across: "╏",
                left_down: "┓",
                left_up: "┛",
                right_down: "┏",
                right_up: "┗",
            },
            Glyphs::Ascii => Self {
                along: "~",
                across: "!",
                left_down: "~",
                left_up: "~",
                right_down: "~",
                right_up: "~",
            },
        }
    }
}

/// Bars from nothing to everything.
pub(crate) const fn bars(glyphs: Glyphs) -> [&'static str; 9] {
    match glyphs {
        Glyphs::Unicode => [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        Glyphs::Ascii => [" ", ".", ":", "-", "=", "+", "*", "%", "#"],
    }
}

/// The shape of a group above its letter, so that kinds are told apart without colour: the device's
/// work is filled, its copies are dotted, waits are a line.
pub(crate) const fn shape(glyphs: Glyphs, group: OpGroup) -> &'static str {
    match (glyphs, group) {
        (Glyphs::Unicode, OpGroup::Kernel) => "█",
        (Glyphs::Unicode, OpGroup::Copy | OpGroup::Upload | OpGroup::Download) => "▒",
        (Glyphs::Unicode, OpGroup::Memset) => "░",
        (Glyphs::Unicode, OpGroup::Host) => "▌",
        (Glyphs::Unicode, OpGroup::Synchronisation) => "┃",
        (Glyphs::Unicode, OpGroup::Memory) => "┋",
        (Glyphs::Unicode, OpGroup::Other) => "┊",
        (Glyphs::Ascii, OpGroup::Kernel) => "#",
        (Glyphs::Ascii, OpGroup::Copy | OpGroup::Upload | OpGroup::Download) => "=",
        (Glyphs::Ascii, OpGroup::Memset) => "-",
        (Glyphs::Ascii, OpGroup::Host) => "%",
        (Glyphs::Ascii, OpGroup::Synchronisation) => "|",
        (Glyphs::Ascii, OpGroup::Memory) => "\"",
        (Glyphs::Ascii, OpGroup::Other) => "'",
    }
}

/// The letter of a group; a capital stands for several operations.
pub(crate) const fn letter(group: OpGroup, several: bool) -> &'static str {
    match (group, several) {
        (OpGroup::Kernel, false) => "k",
        (OpGroup::Kernel, true) => "K",
        (OpGroup::Copy, false) => "c",
        (OpGroup::Copy, true) => "C",
        (OpGroup::Upload, false) => "u",
        (OpGroup::Upload, true) => "U",
        (OpGroup::Download, false) => "d",
        (OpGroup::Download, true) => "D",
        (OpGroup::Memset, false) => "m",
        (OpGroup::Memset, true) => "M",
        (OpGroup::Host, false) => "h",
        (OpGroup::Host, true) => "H",
        (OpGroup::Synchronisation, false) => "s",
        (OpGroup::Synchronisation, true) => "S",
        (OpGroup::Memory, false) => "a",
        (OpGroup::Memory, true) => "A",
        (OpGroup::Other, false) => ".",
        (OpGroup::Other, true) => ":",
    }
}

/// The word of a group in the legend, where there is room and where there is little.
pub(crate) const fn word(group: OpGroup, is_short: bool) -> &'static str {
    match (group, is_short) {
        (OpGroup::Kernel, _) => "kernel",
        (OpGroup::Copy, _) => "copy",
        (OpGroup::Upload, false) => "to device",
        (OpGroup::Upload, true) => "up",
        (OpGroup::Download, false) => "to host",
        (OpGroup::Download, true) => "down",
        (OpGroup::Memset, _) => "memset",
        (OpGroup::Host, false) => "host function",
        (OpGroup::Host, true) => "host",
        (OpGroup::Synchronisation, false) => "event, wait",
        (OpGroup::Synchronisation, true) => "wait",
        (OpGroup::Memory, false) => "allocation",
        (OpGroup::Memory, true) => "alloc",
        (OpGroup::Other, false) => "other call",
        (OpGroup::Other, true) => "other",
    }
}

/// A text without characters that are not ASCII.
pub(crate) fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '…' => '.',
            '·' => '|',
            '←' => '<',
            '→' => '>',
            '↑' => '^',
            '↓' => 'v',
            c if c.is_ascii() => c,
            _ => '?',
        })
        .collect()
}
