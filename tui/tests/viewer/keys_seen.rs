//! Every key is held by what stands on the screen, at four sizes: keys are pressed, and only what is
//! drawn before and behind them is looked at.

use crate::driver::Driver;
use crate::picture::SIZES;
use crate::points::source_of;
use crate::trace::Shape;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use streamsan_tui::state::Areas;
use streamsan_tui::{Command, TABLE, Theme};

/// A screen as it is drawn.
pub(crate) struct Shot {
    pub(crate) lines: Vec<String>,
    pub(crate) buffer: Buffer,
    pub(crate) areas: Areas,
}

impl Shot {
    pub(crate) fn of(driver: &Driver) -> Self {
        let theme = Theme::default();
        Self {
            lines: driver.lines(theme),
            buffer: driver.buffer(theme),
            areas: driver.state.areas(),
        }
    }

    fn last(&self) -> &str {
        self.lines.last().expect("a line")
    }

    fn ruler(&self) -> &str {
        &self.lines[usize::from(self.areas.ruler.y)]
    }

    /// The first position that the ruler tells.
    fn first(&self) -> u64 {
        let number: String = self.ruler().split('#').nth(1).expect("a position").to_owned();
        let digits = number.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
        digits.filter(char::is_ascii_digit).collect::<String>().parse().expect("a number")
    }

    /// The line of the tabs.
    pub(crate) fn tabs(&self) -> usize {
        let is_it = |line: &String| line.contains("1 details") && line.contains("2 races");
        self.lines.iter().position(is_it).expect("tabs")
    }

    /// The line below the tabs.
    fn pane(&self) -> &str {
        &self.lines[self.tabs() + 1]
    }

    /// The operation that the details tell.
    fn op(&self) -> u64 {
        let line = self.pane().strip_prefix('#').expect("details");
        let digits = line.chars().take_while(|c| *c != ' ').filter(char::is_ascii_digit);
        digits.collect::<String>().parse().expect("a number")
    }

    fn cells(&self, area: Rect, is: Modifier) -> impl Iterator<Item = (u16, u16)> {
        let all =
            (area.y..area.bottom()).flat_map(move |y| (area.x..area.right()).map(move |x| (x, y)));
        all.filter(move |&at| self.buffer[at].modifier.contains(is))
    }

    fn text(&self, cells: impl Iterator<Item = (u16, u16)>) -> String {
        cells.map(|at| self.buffer[at].symbol()).collect()
    }

    /// The name of the selected row.
    fn row(&self) -> String {
        let labels = Rect { width: self.areas.label, ..self.areas.rows };
        self.text(self.cells(labels, Modifier::REVERSED)).trim_matches(['>', '^', ' ']).to_owned()
    }

    /// The tab of the pane that is shown.
    fn tab(&self) -> String {
        let tabs = Rect { y: self.tabs() as u16, height: 1, ..self.areas.pane };
        self.text(self.cells(tabs, Modifier::UNDERLINED))
    }

    /// The column of the selected operation.
    fn selected(&self) -> Option<u16> {
        let Areas { rows, label, .. } = self.areas;
        let timeline = Rect { x: rows.x + label, width: rows.width - label, ..rows };
        let is = Modifier::BOLD | Modifier::UNDERLINED;
        self.cells(timeline, is).map(|(x, _)| x).next()
    }

    fn timeline(&self) -> String {
        let rows = self.areas.rows;
        self.lines[usize::from(rows.y)..usize::from(rows.bottom())].join("\n")
    }
}

/// What must be seen of the screens at the begin, before the key, and behind it.
type Seen = fn(&Shot, &Shot, &Shot) -> bool;

/// A command, keys before it, its keys, and what is seen then.
const KEYS: &[(Command, &str, &str, Seen)] = &[
    (Command::ZoomIn, "", "w", |_, b, a| a.ruler() != b.ruler()),
    (Command::ZoomOut, "www", "s", |_, b, a| a.ruler() != b.ruler()),
    (Command::PanLeft, "wwwDD", "a", |_, b, a| a.first() < b.first()),
    (Command::PanRight, "www", "d", |_, b, a| a.first() > b.first()),
    (Command::PageLeft, "wwwDDD", "A", |_, b, a| a.first() < b.first()),
    (Command::PageRight, "www", "D", |_, b, a| a.first() > b.first()),
    (Command::ShowAll, "wwwDD", "0", |o, b, a| a.ruler() == o.ruler() && a.ruler() != b.ruler()),
    (Command::Centre, "wwwwDD", "f", |_, _, a| {
        let middle = a.areas.label + a.areas.columns() as u16 / 2;
        a.selected().is_some_and(|x| x.abs_diff(middle) <= 1)
    }),
    (Command::SwitchAxis, "", "x", |_, b, a| {
        b.ruler().starts_with("issue order") && a.ruler().starts_with("host issue time")
    }),
    (Command::SwitchAxis, "x", "x", |_, _, a| a.ruler().starts_with("logical order")),
    (Command::Follow, "", "F", |_, _, a| a.last().contains("the trace is finished")),
    (Command::ShiftLeft, "", "{", |_, _, a| a.last().contains("there is one trace")),
    (Command::ShiftRight, "", "}", |_, _, a| a.last().contains("there is one trace")),
    (Command::Align, "", "&", |_, _, a| a.last().contains("v at an operation of one trace")),
    (Command::NextTrace, "", "t", |_, _, a| a.last() == "there is one trace"),
    (Command::PreviousTrace, "", "T", |_, _, a| a.last() == "there is one trace"),
    (Command::PreviousOperation, "$", "h", |_, b, a| a.op() < b.op()),
    (Command::NextOperation, "^", "l", |_, b, a| a.op() > b.op()),
    (Command::FirstOperation, "$", "^", |_, b, a| a.op() < b.op()),
    (Command::LastOperation, "^", "$", |_, b, a| a.op() > b.op()),
    (Command::RowUp, "G", "k", |_, b, a| a.row() != b.row()),
    (Command::RowDown, "gg", "j", |_, b, a| b.row() == "thread 4242" && a.row() == "thread 4243"),
    (Command::HalfPageUp, "G", "<c-u>", |_, b, a| a.row() != b.row()),
    (Command::HalfPageDown, "gg", "<c-d>", |_, b, a| a.row() != b.row()),
    (Command::FirstRow, "G", "gg", |_, _, a| a.row() == "thread 4242"),
    (Command::LastRow, "gg", "G", |_, _, a| a.row() == "stream \"loader\""),
    (Command::Search, "gg^", "/reduce<enter>", |_, _, a| a.pane().contains("cuLaunchKernel")),
    (Command::SearchNext, "gg^/memset<enter>", "n", |_, b, a| a.op() == b.op() + 16),
    (Command::SearchPrevious, "gg^/memset<enter>nn", "N", |_, b, a| a.op() + 16 == b.op()),
    (Command::SearchSame, "gg^/memset<enter>", "#", |_, b, a| a.op() == b.op() + 16),
    (Command::SetMark, "", "ma", |_, _, a| {
        a.text(a.cells(a.areas.ruler, Modifier::REVERSED)).contains('a')
    }),
    (Command::JumpMark, "maG", "'a", |o, b, a| a.op() == o.op() && b.op() != o.op()),
    (Command::Area, "^", "vll", |_, _, a| a.last().starts_with("area #")),
    (Command::NextFinding, "", "r", |_, _, a| {
        a.last().starts_with("race 1/5") && a.timeline().contains('1') && a.timeline().contains('2')
    }),
    (Command::PreviousFinding, "", "R", |_, _, a| a.last().starts_with("race 5/5")),
    (Command::NextOccurrence, "r", "c", |_, _, a| a.last() == "the race was seen once"),
    (Command::PreviousOccurrence, "", "C", |_, _, a| a.last().starts_with("race 5/5")),
    (Command::OtherSide, "r", "o", |_, b, a| a.op() < b.op() && a.last() == b.last()),
    (Command::EdgeBack, "gg^/streamwait<enter>", "[", |_, b, a| a.op() + 2 == b.op()),
    (Command::EdgeForward, "gg^/eventrecord<enter>", "]", |_, b, a| a.op() == b.op() + 2),
    (Command::Pin, "gg", "p", |_, b, a| {
        !b.timeline().contains('^') && a.timeline().contains("^thread 4242")
    }),
    (Command::Filter, "", "\\decode<enter>", |_, b, a| {
        a.last().starts_with("filter decode: 1 row")
            && b.timeline().contains("stream \"prefetch\"")
            && !a.timeline().contains("stream \"prefetch\"")
    }),
    (Command::ToggleIdle, "", "i", |_, b, a| {
        b.last().starts_with("4 idle streams hidden") && !a.last().contains("idle streams")
    }),
    (Command::PaneDetails, "2", "1", |_, _, a| a.tab() == "1 details" && a.pane().starts_with('#')),
    (Command::PaneRaces, "", "2", |_, _, a| a.tab() == "2 races" && a.pane().contains("5 of 5")),
    (Command::PaneMemory, "", "3", |_, _, a| a.pane().starts_with("the largest 3 allocations")),
    (Command::PaneStatistics, "", "4", |_, _, a| a.pane().starts_with("Everything that orders")),
    (Command::PaneExplanation, "r", "5", |_, _, a| a.pane().starts_with("error[")),
    (Command::PaneBytes, "", "6", |_, _, a| a.pane().starts_with("bytes over the whole trace")),
    (Command::PaneOutput, "", "7", |_, _, a| a.last().contains("the output of a program is shown")),
    (Command::NextPane, "", "<tab>", |_, b, a| b.tab() == "1 details" && a.tab() == "2 races"),
    (Command::PreviousPane, "", "<backtab>", |_, _, a| a.tab() == "6 bytes"),
    (Command::Enter, "", "<enter>", |_, b, a| {
        let reversed = |shot: &Shot| {
            let tabs = Rect { y: shot.tabs() as u16, height: 1, ..shot.areas.pane };
            shot.text(shot.cells(tabs, Modifier::REVERSED))
        };
        reversed(b).is_empty() && reversed(a) == "1 details"
    }),
    (Command::Expand, "", "z", |_, b, a| a.tabs() < b.tabs() && a.tabs() <= 2),
    (Command::Grow, "<<<<", ">", |_, b, a| a.tabs() + 2 == b.tabs()),
    (Command::Shrink, "", "<", |_, b, a| a.tabs() > b.tabs()),
    (Command::Fit, "<<<", "|", |o, b, a| a.tabs() == o.tabs() && b.tabs() > o.tabs()),
    (Command::Sort, "2", "S", |_, b, a| {
        b.pane().contains("by issue order") && a.pane().contains("by severity and confidence")
    }),
    (Command::Palette, "", ":next-r", |_, b, a| {
        let lists = |shot: &Shot| shot.lines.iter().any(|line| line.starts_with("  next-race"));
        a.last().starts_with(":next-r") && lists(a) && !lists(b)
    }),
    (Command::Edit, "", "e", |_, _, a| a.last().contains("no line of the source")),
    (Command::ToggleMouse, "", "M", |_, _, a| a.last().contains("the mouse is off")),
    (Command::Help, "", "?", |_, _, a| a.lines[0].starts_with("Keys of streamsan view")),
    (Command::Back, "?", "<esc>", |o, _, a| a.lines == o.lines),
];

/// What they do is outside of the screen that the state draws.
const ELSEWHERE: [(Command, &str); 2] = [
    (Command::Copy, "reducer::copy_hands_out_what_is_selected"),
    (Command::Quit, "reducer::every_key_does_what_it_says"),
];

#[test]
fn every_key_is_seen_on_the_screen() {
    for size in SIZES {
        for (number, (command, first, keys, seen)) in KEYS.iter().enumerate() {
            let mut driver = Driver::new(Shape::default(), size.0, size.1);
            let opening = Shot::of(&driver);
            driver.keys(first);
            let before = Shot::of(&driver);
            driver.keys(keys);
            let after = Shot::of(&driver);
            assert!(
                seen(&opening, &before, &after),
                "{size:?} {number}: {command:?} by {keys:?} after {first:?}\n{}",
                driver.text()
            );
        }
    }
}

#[test]
fn every_command_is_seen_or_held_elsewhere() {
    for binding in TABLE {
        let is_seen = KEYS.iter().any(|(command, ..)| *command == binding.command);
        let elsewhere = ELSEWHERE.iter().find(|(command, _)| *command == binding.command);
        assert!(is_seen != elsewhere.is_some(), "{}", binding.name);
        if let Some((_, test)) = elsewhere {
            assert!(source_of(test).is_some(), "{test}");
        }
    }
}
