//! Two traces beside each other: both halves of the screen, what is new, gone and the same, and how
//! one side follows the other.

use crate::corpus;
use crate::driver::parse;
use crate::picture::SIZES;
use crate::screens::compare_buffer;
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::path::Path;
use streamsan_model::{Axis, Finding, Fingerprint, OpSeq, Severity};
use streamsan_tui::query::{Source, answer};
use streamsan_tui::state::{Change, Changes, Label, Pane};
use streamsan_tui::{Pair, Theme, render_pair};

/// The same program before and after a fix, which orders one pair and loses the order of another.
const BEFORE: &str = "stream copy nonblocking\nstream work nonblocking\nevent E\nalloc A 64\n\
     alloc B 64\nalloc C 64\nlaunch copy fill w:A\nlaunch work eat r:A\nlaunch copy pour w:B\n\
     record E copy\nwait work E\nlaunch work drink r:B\nlaunch copy paint w:C\nlaunch work look r:C\n\
     launch work rest\n";
const AFTER: &str = "stream copy nonblocking\nstream work nonblocking\nevent E\nalloc A 64\n\
     alloc B 64\nalloc C 64\nlaunch copy fill w:A\nrecord E copy\nwait work E\nlaunch work eat r:A\n\
     launch copy pour w:B\nlaunch work drink r:B\nlaunch copy paint w:C\nlaunch work look r:C\n\
     launch work rest\n";

pub(crate) struct Both {
    pub(crate) pair: Pair,
    sources: [Vec<Source>; 2],
    size: (u16, u16),
}

impl Both {
    fn open(folder: &Path, texts: [&str; 2], size: (u16, u16)) -> Self {
        let sources = ["a", "b"].map(|name| {
            let text = texts[usize::from(name == "b")];
            let folder = folder.join(format!("{name}-{}-{}", size.0, size.1));
            std::fs::create_dir_all(&folder).unwrap();
            let (reader, explain) = corpus::open(text, &folder);
            vec![Source { query: Box::new(reader), explain }]
        });
        let findings = sources.each_ref().map(|of| of[0].query.findings().unwrap());
        let labels = ["before.trace", "after.trace"]
            .map(|title| Label { title: title.to_owned(), ..Label::default() });
        let pair = Pair::new(labels, changes(&findings), size);
        let mut both = Self { pair, sources, size };
        both.settle();
        both
    }

    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let mut asked = false;
            for side in [0, 1] {
                for request in self.pair.take_requests(side) {
                    asked = true;
                    let value = answer(&mut self.sources[side], &request.value);
                    let answer = streamsan_tui::query::Numbered {
                        number: request.number,
                        slot: request.slot,
                        value,
                    };
                    self.pair.receive(side, answer);
                }
            }
            if !asked {
                return;
            }
        }
        panic!("the sides ask for ever");
    }

    fn keys(&mut self, keys: &str) -> &mut Self {
        for key in parse(keys) {
            self.pair.key(key);
            self.settle();
        }
        self
    }

    fn buffer(&self) -> Buffer {
        self.drawn(Theme::default())
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.pair.resize(size.0, size.1);
        self.settle();
    }

    pub(crate) fn drawn(&self, theme: Theme) -> Buffer {
        let area = Rect { x: 0, y: 0, width: self.size.0, height: self.size.1 };
        let mut buffer = Buffer::empty(area);
        render_pair(&self.pair, theme, area, &mut buffer);
        buffer
    }

    /// The lines of the whole screen.
    fn lines_of_all(&self, theme: Theme) -> Vec<String> {
        let buffer = self.drawn(theme);
        let line = |y| (0..self.size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..self.size.1).map(|y| line(y).trim_end().to_owned()).collect()
    }

    /// The lines of a side.
    fn lines(&self, side: usize) -> Vec<String> {
        let (buffer, area) = (self.buffer(), self.pair.areas()[side]);
        let line = |y| (area.x..area.right()).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (area.y..area.bottom()).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn text(&self, side: usize) -> String {
        self.lines(side).join("\n")
    }

    /// The column on a side in which the selected operation stands.
    fn column(&self, side: usize) -> Option<u32> {
        let state = &self.pair.sides[side];
        state.column_of(&state.selected_point()?.spot())
    }

    /// The kernel that a side's selected operation launches.
    fn kernel(&self, side: usize) -> String {
        let state = &self.pair.sides[side];
        let detail = state.selection.as_ref().expect("something is selected");
        let streamsan_model::Action::Launch { kernel, .. } = detail.operation.action else {
            return detail.operation.api.to_string();
        };
        let open = state.open.as_ref().unwrap().of(0);
        open.overview.entities.kernel(kernel).unwrap().name.clone()
    }

    fn finding(&self, side: usize) -> Option<&Finding> {
        self.pair.sides[side].current_finding()
    }
}

/// The picture of the documentation.
pub(crate) fn picture_of_both() -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut both = Both::open(folder.path(), [BEFORE, AFTER], (120, 26));
    both.keys("2rr");
    corpus::picture_of(&both.lines_of_all(corpus::WITHOUT_COLOURS))
}

/// As `diff` compares them.
fn changes(findings: &[Vec<Finding>; 2]) -> Changes {
    let mut sides: BTreeMap<(Fingerprint, Severity), [bool; 2]> = BTreeMap::new();
    for (side, findings) in findings.iter().enumerate() {
        for finding in findings {
            sides.entry((finding.fingerprint, finding.severity)).or_default()[side] = true;
        }
    }
    let change = |(key, is_in): ((Fingerprint, Severity), [bool; 2])| match is_in {
        [true, true] => (key, Change::Same),
        [true, false] => (key, Change::Gone),
        _ => (key, Change::New),
    };
    sides.into_iter().map(change).collect()
}

fn both(folder: &tempfile::TempDir, size: (u16, u16)) -> Both {
    two_sides(folder, size, false)
}

/// Before and after the fix; or after it, and a trace of something else.
pub(crate) fn two_sides(folder: &tempfile::TempDir, size: (u16, u16), other: bool) -> Both {
    let texts = if other { [AFTER, "launch s1 lone w:A\n"] } else { [BEFORE, AFTER] };
    Both::open(folder.path(), texts, size)
}

#[test]
fn both_sides_are_on_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let both = both(&folder, size);
        let [a, b] = both.pair.areas();
        // Beside each other where the screen is wide, else above each other; nothing is lost.
        assert_eq!(a.width, b.width);
        match size.0 >= 100 {
            true => assert!(a.y == b.y && a.right() < b.x && b.right() == size.0, "{a:?} {b:?}"),
            false => {
                assert!(a.x == b.x && a.bottom() == b.y && b.bottom() == size.1, "{a:?} {b:?}")
            }
        }
        for (side, title) in [(0, " A  before.trace"), (1, " B  after.trace")] {
            let lines = both.lines(side);
            assert!(lines[0].starts_with(title), "{size:?}: {}", lines[0]);
            for row in ["stream \"copy\"", "stream \"work\""] {
                assert!(
                    lines.iter().any(|line| line.contains(row)),
                    "{size:?}\n{}",
                    both.text(side)
                );
            }
        }
        let changes = "1 new, 1 gone, 1 same";
        assert!(size.0 == 60 || both.lines(1)[0].contains(changes), "{}", both.lines(1)[0]);
    }
}

#[test]
fn races_are_new_gone_or_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        both.keys("2z");
        let (a, b) = (both.text(0), both.text(1));
        assert!(
            a.contains("- gone") && a.contains("= same") && !a.contains("+ new"),
            "{size:?}\n{a}"
        );
        assert!(
            b.contains("+ new") && b.contains("= same") && !b.contains("- gone"),
            "{size:?}\n{b}"
        );
        both.keys("z<esc>");
        // The marks below the ruler are the signs of `diff`.
        for (side, signs) in [(0, "--=="), (1, "++==")] {
            let area = both.pair.sides[side].areas();
            let line = &both.lines(side)[usize::from(area.races.y)];
            let marks: String = line.chars().skip(usize::from(area.label)).collect();
            let marks: String = marks.chars().filter(|c| *c != ' ').collect();
            assert_eq!(marks, signs, "{size:?} {side}");
        }
    }
}

/// A race selects its partner; without one, the other side says so.
#[test]
fn a_race_selects_the_same_one_on_the_other_side() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        let mut seen = Vec::new();
        for _ in 0..2 {
            both.keys("r");
            let here = both.finding(1).unwrap().clone();
            let last = both.lines(1).pop().unwrap();
            if both.kernel(1) == "drink" {
                assert!(both.finding(0).is_none());
                assert!(both.lines(0).pop().unwrap().contains("new in B: no such race here"));
                assert!(last.contains(" new "), "{last}");
            } else {
                let there = both.finding(0).expect("the partner");
                assert_eq!(there.fingerprint, here.fingerprint);
                assert_eq!(
                    (both.kernel(0), both.kernel(1)),
                    ("look".to_owned(), "look".to_owned())
                );
                assert!(last.contains(" same "), "{last}");
                assert_eq!(both.column(0), both.column(1), "{size:?}");
                // The other access leads to the other access.
                both.keys("o");
                assert_eq!(
                    (both.kernel(0), both.kernel(1)),
                    ("paint".to_owned(), "paint".to_owned())
                );
            }
            seen.push(both.kernel(1));
        }
        seen.sort();
        assert_eq!(seen, ["drink", "paint"]);
        // From the other side as well.
        both.keys("t");
        assert_eq!(both.pair.focus, 0);
        both.keys("<esc>r");
        assert_eq!(both.kernel(0), "eat");
        assert!(both.lines(1).pop().unwrap().contains("gone in A: no such race here"));
        assert!(both.finding(1).is_none());
    }
}

/// An operation selects the call of the same name and number in the same row, below or beside it in
/// the same column; both sides move in common from there.
#[test]
fn calls_are_matched_and_scroll_in_common() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        for name in ["fill", "eat", "pour", "drink", "look", "rest"] {
            both.keys(&format!("/{name}<enter>"));
            assert_eq!((both.kernel(0), both.kernel(1)), (name.to_owned(), name.to_owned()));
            for keys in ["", "w", "d", "a", "s", "0"] {
                both.keys(keys);
                let [a, b] = [0, 1].map(|side| *both.pair.sides[side].view().unwrap());
                assert_eq!(a, b, "{size:?} {name} {keys}");
                assert!(b.is_inside(), "{b:?}");
                assert_eq!(both.column(0), both.column(1), "{size:?} {name} {keys}");
                if let Some(column) = both.column(0) {
                    // It is drawn there.
                    for side in [0, 1] {
                        let state = &both.pair.sides[side];
                        let lane = state.selected_point().unwrap().spot().lane();
                        let cells = &state.strips.cells[&lane];
                        let is_there = cells.iter().any(|cell| cell.column == column);
                        assert!(is_there, "{size:?} {name} {keys}\n{}", both.text(side));
                    }
                }
            }
        }
        // The record that the fix has added.
        both.keys("t/rest<enter>t");
        let open = both.pair.sides[1].open.as_ref().unwrap().of(0).overview.operations;
        assert!(open > 0);
        both.keys("/cuEventRecord<enter>");
        assert_eq!(both.kernel(0), "cuEventRecord");
        for (keys, axis) in [("x", Axis::Logical), ("x", Axis::Issue)] {
            both.keys(keys);
            assert_eq!([0, 1].map(|side| both.pair.sides[side].axis), [Some(axis); 2]);
        }
    }
}

#[test]
fn a_call_without_a_partner_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let after = format!("{AFTER}launch work again r:A\n");
    let mut both = Both::open(folder.path(), [BEFORE, &after], (120, 40));
    let before = both.pair.sides[0].selected_op();
    both.keys("/again<enter>");
    assert_eq!(both.kernel(1), "again");
    assert!(both.lines(0).pop().unwrap().contains("no such call here"), "{}", both.text(0));
    assert_eq!(both.pair.sides[0].selected_op(), before, "it stays where it was");
}

#[test]
fn panes_and_filters_are_common() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        for (keys, pane) in [("3", Pane::Memory), ("6", Pane::Bytes), ("4", Pane::Statistics)] {
            both.keys(keys).keys("z");
            for side in [0, 1] {
                assert_eq!(both.pair.sides[side].pane, pane);
                let word = match pane {
                    Pane::Memory => "the largest 3 allocations",
                    Pane::Bytes => "bytes over the whole trace",
                    _ => "call of the driver",
                };
                assert!(both.text(side).contains(word), "{size:?}\n{}", both.text(side));
            }
            both.keys("z<esc>");
        }
        both.keys("\\kernel:eat<enter>");
        for side in [0, 1] {
            let last = both.lines(side).pop().unwrap();
            assert!(last.contains("filter kernel:eat: 1 hit in 1 row"), "{size:?}: {last}");
        }
        both.keys("<esc><esc>");
        for side in [0, 1] {
            assert!(both.pair.sides[side].filter.is_empty());
        }
    }
}

/// A click goes to the side that it is in.
#[test]
fn the_mouse_takes_the_focus() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        assert_eq!(both.pair.focus, 1);
        let area = both.pair.areas()[0];
        let rows = both.pair.sides[0].areas().rows;
        let at = |kind| MouseEvent {
            kind,
            column: area.x + 2,
            row: area.y + rows.y + 1,
            modifiers: KeyModifiers::NONE,
        };
        both.pair.mouse(at(MouseEventKind::Down(MouseButton::Left)));
        both.pair.mouse(at(MouseEventKind::Up(MouseButton::Left)));
        both.settle();
        assert_eq!(both.pair.focus, 0, "{size:?}");
        let buffer = both.buffer();
        let [a, b] = both.pair.areas();
        let is_reversed = |area: Rect| {
            buffer[(area.x + 1, area.y)].modifier.contains(ratatui::style::Modifier::REVERSED)
        };
        assert!(is_reversed(a) && !is_reversed(b), "the title tells where keys go");
    }
}

#[test]
fn long_traces_stay_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let step = "launch copy fill w:A\nrecord E copy\nwait work E\nlaunch work eat r:A\n";
    let head = "stream copy nonblocking\nstream work nonblocking\nevent E\nalloc A 64\n";
    let before = format!("{head}{}", step.repeat(300));
    let after = format!("{head}{}{}", "launch work warm\n".repeat(40), step.repeat(300));
    for size in SIZES {
        let mut both = Both::open(folder.path(), [&before, &after], size);
        both.keys("wwwwww").keys("/#700<enter>");
        for keys in ["", "d", "w", "l", "aa", "ssss", "lll", "ww", "j"] {
            both.keys(keys);
            assert_eq!(both.kernel(0), both.kernel(1), "{size:?} {keys}");
            let [a, b] = [0, 1].map(|side| both.pair.sides[side].selected_op().unwrap().g);
            assert!(b >= OpSeq(a.0 + 40), "{a} {b}");
            let [a, b] = [0, 1].map(|side| both.column(side));
            let apart = a.zip(b).map_or(0, |(a, b)| a.abs_diff(b));
            assert!(a.is_some() == b.is_some() || apart < 2, "{size:?} {keys} {a:?} {b:?}");
            assert!(apart < 2, "{size:?} {keys}: {apart} columns apart");
        }
    }
}

#[test]
fn sides_as_they_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut both = both(&folder, size);
        both.keys("2rr");
        compare_buffer("pair", &both.buffer());
    }
}
