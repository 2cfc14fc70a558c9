//! Every key and every point of `docs/viewer.md` is held by what stands on the screen, at four sizes.
//!
//! Keys are pressed here, and only the screen before and behind them is looked at. Points of the
//! document name the test that holds them; that test is there, and goes over the four sizes, unless the
//! point is one for which the size of the screen means nothing.

use crate::driver::Driver;
use crate::picture::SIZES;
use crate::trace::Shape;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use streamsan_tui::state::Areas;
use streamsan_tui::{Command, TABLE, Theme};

/// A screen as it is drawn.
struct Shot {
    lines: Vec<String>,
    buffer: Buffer,
    areas: Areas,
}

impl Shot {
    fn of(driver: &Driver) -> Self {
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
    fn tabs(&self) -> usize {
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

/// How a point of the document is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// By a test at four sizes.
    Seen(&'static str),
    /// By a test for which the size of the screen means nothing, or that goes over sizes of its own.
    Once(&'static str),
    /// It explains words or names other documents; nothing is to be seen.
    Words,
}

use Held::{Once, Seen as At, Words};

/// The begin of each paragraph and item of the document, and the tests that hold what it says.
const POINTS: &[(&str, &[Held])] = &[
    ("Pictures made by", &[Words]),
    (
        "`streamsan view FILE` shows a trace",
        &[
            At("picture::rows_are_as_tall_as_the_screen_allows"),
            At("picture::the_legend_is_always_on_the_screen"),
            Once("report_words::races_known_in_libraries_count_for_nothing"),
        ],
    ),
    (
        "The first line tells what the trace holds",
        &[At("points::races_are_marked_in_every_overview")],
    ),
    (
        "Rows are as tall as the screen allows",
        &[
            At("picture::rows_are_as_tall_as_the_screen_allows"),
            Once("picture::bars_tell_how_many_operations_a_column_holds"),
            Once("picture::kinds_are_told_apart_without_reading"),
            At("screens::names_where_they_fit"),
        ],
    ),
    (
        "Streams and calls have the names that the report has",
        &[
            Once("report_words::rows_of_a_race_are_named_as_in_its_explanation"),
            Once(
                "report_words::streams_without_a_name_are_told_by_their_creation_and_calls_by_the_program",
            ),
        ],
    ),
    (
        "Where the program names its phases by",
        &[
            At("ranges::ranges_stand_above_the_calls_of_their_thread"),
            At("ranges::range_filter_and_details_tell_where_a_call_is"),
        ],
    ),
    (
        "The pane takes the lines that its content needs",
        &[
            Once("picture::the_pane_takes_the_room_that_its_content_needs"),
            At("points::every_key_is_seen_on_the_screen"),
            At("points::positions_are_told_where_not_all_is_shown"),
        ],
    ),
    (
        "`x` switches the axis and keeps the zoom",
        &[At("screens::time_and_depth"), At("picture::the_zoom_stays_on_the_next_axis")],
    ),
    (
        "`\\` filters: words of rows' names",
        &[
            At("filters::filters_find_what_a_search_of_all_operations_finds"),
            At("filters::what_a_filter_leaves_out_stands_back"),
        ],
    ),
    ("`e` opens the editor", &[Once("truth::the_editor_opens_at_the_programs_own_line")]),
    (
        "`6` shows the bytes of memory",
        &[
            At("filters::bytes_over_time_are_those_that_live"),
            Once("filters::bytes_tell_who_holds_them"),
        ],
    ),
    (
        "`r` goes from race to race",
        &[
            At("picture::the_race_is_in_front_of_all_else"),
            At("picture::a_race_is_a_mark_where_there_is_no_colour"),
            At("picture::edges_cross_nothing_that_they_do_not_mean"),
            At("points::every_key_is_seen_on_the_screen"),
        ],
    ),
    ("A race that is [known in a library]", &[At("points::known_races_are_drawn_as_accepted")]),
    ("`o` goes to the other access", &[At("points::every_key_is_seen_on_the_screen")]),
    (
        "`streamsan view rank0.db rank1.db",
        &[
            At("ranks::rows_stand_below_the_names_of_their_traces"),
            At("ranks::races_of_all_traces_are_listed_with_their_trace"),
            At("ranks::filters_and_searches_go_over_all_traces"),
            At("ranks::panes_are_about_the_trace_in_focus"),
            At("ranks::minimap_is_that_of_all_traces"),
        ],
    ),
    ("The view begins with host issue time", &[At("ranks::letters_stand_where_the_clock_says")]),
    ("Traces of one machine, not booted", &[At("ranks::letters_stand_where_the_clock_says")]),
    ("Traces of several machines", &[Words]),
    ("Traces of versions that did not remember", &[Words]),
    ("Text traces have no times", &[At("ranks::text_trace_stands_among_others")]),
    (
        "The statistics say which of these it is",
        &[At("ranks::traces_are_shifted_by_columns"), At("ranks::two_operations_are_aligned")],
    ),
    (
        "Nothing is concluded between traces",
        &[
            At("ranks::what_is_selected_stands_in_its_own_column"),
            At("ranks::two_operations_are_aligned"),
        ],
    ),
    (
        "`streamsan diff A B --view` shows both traces",
        &[At("pair::both_sides_are_on_the_screen"), At("pair::races_are_new_gone_or_the_same")],
    ),
    (
        "Keys go to one side",
        &[
            At("pair::a_race_selects_the_same_one_on_the_other_side"),
            At("pair::calls_are_matched_and_scroll_in_common"),
            At("pair::panes_and_filters_are_common"),
            At("pair::the_mouse_takes_the_focus"),
            Once("pair::a_call_without_a_partner_is_told"),
        ],
    ),
    ("That two calls have one name", &[Words]),
    (
        "`streamsan run --view -- PROGRAM` shows",
        &[
            Once("live::timelines_grow_while_the_program_runs"),
            Once("live::window_follows_the_end_until_one_moves_away"),
            Once("live::selection_marks_and_rows_outlast_what_comes"),
            Once("live::races_appear_as_they_are_found_and_keep_their_place"),
        ],
    ),
    (
        "What the program prints goes to the pane",
        &[Once("live::output_of_the_program_has_a_pane_that_shows_its_end")],
    ),
    (
        "Ctrl-C interrupts the program",
        &[
            Once("live::interrupt_goes_to_the_program_while_it_runs"),
            Once("live::end_of_the_program_is_told_and_the_trace_stays"),
        ],
    ),
    ("Colours are those of Okabe", &[At("filters::what_a_filter_leaves_out_stands_back")]),
    (
        "`--ascii` draws with ASCII",
        &[At("points::plain_screens_have_neither_colours_nor_other_characters")],
    ),
    ("`--race ID` begins with the race", &[Once("reducer::trace_opens_at_a_race")]),
    (
        "A trace that is still being recorded",
        &[Once("live::timelines_grow_while_the_program_runs")],
    ),
];

/// The text of a test's function.
fn source_of(test: &str) -> Option<String> {
    let (module, name) = test.split_once("::")?;
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewer").join(format!("{module}.rs"));
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(&format!("#[test]\nfn {name}() {{\n"))?;
    Some(rest.split_once("\n}\n")?.0.to_owned())
}

/// The paragraphs and items of the document, without headings and pictures.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut in_picture, mut in_paragraph) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            in_picture = !in_picture;
            in_paragraph = false;
        } else if in_picture || line.is_empty() || line.starts_with('#') {
            in_paragraph = false;
        } else if let Some(item) = line.strip_prefix("- ") {
            found.push(item.to_owned());
            in_paragraph = true;
        } else if in_paragraph {
            let last = found.last_mut().expect("a paragraph");
            *last += " ";
            *last += line.trim_start();
        } else {
            found.push(line.to_owned());
            in_paragraph = true;
        }
    }
    found
}

#[test]
fn every_point_of_the_document_is_held() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/viewer.md");
    let paragraphs = paragraphs(&fs::read_to_string(path).expect("the document"));
    let mut used = BTreeSet::new();
    for paragraph in &paragraphs {
        let points: Vec<&str> =
            POINTS.iter().map(|(begin, _)| *begin).filter(|b| paragraph.starts_with(b)).collect();
        assert_eq!(points.len(), 1, "no test is named for: {paragraph}");
        used.extend(points);
    }
    for (begin, held) in POINTS {
        assert!(used.contains(begin), "the document does not say {begin:?}");
        assert!(!held.is_empty(), "{begin}");
        for held in *held {
            let (test, sizes) = match held {
                At(test) => (test, true),
                Once(test) => (test, false),
                Words => continue,
            };
            let source = source_of(test).unwrap_or_else(|| panic!("{begin}: there is no {test}"));
            let over_sizes = ["SIZES", "each_size("].iter().any(|word| source.contains(word));
            assert!(over_sizes || !sizes, "{begin}: {test} is not at four sizes");
        }
    }
    // Every key that the document names is one.
    let shown: BTreeSet<&str> = TABLE.iter().flat_map(|binding| binding.shown.split(' ')).collect();
    for paragraph in &paragraphs {
        for word in paragraph.split('`').skip(1).step_by(2).filter(|word| word.chars().count() == 1)
        {
            // A mark on the screen, and the sides of a pair.
            let is_mark = ["!", "·", "A", "B", "▽"].contains(&word);
            assert!(is_mark || shown.contains(word), "{word} is no key: {paragraph}");
        }
    }
}

/// Wherever one is zoomed to, the minimap and the line below the ruler tell of every race.
#[test]
fn races_are_marked_in_every_overview() {
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        for keys in ["", "www", "DD", "x", "x", "ww"] {
            driver.keys(keys);
            let shot = Shot::of(&driver);
            let minimap = &shot.lines[usize::from(shot.areas.minimap.y)];
            assert!(minimap.contains('!'), "{size:?} {keys}: {minimap}");
            let view = driver.state.view().unwrap().grid();
            let columns: BTreeSet<u32> = driver
                .state
                .race_places
                .iter()
                .filter_map(|spot| view.column(spot.place.on(view.axis)?))
                .collect();
            let marks = shot.lines[usize::from(shot.areas.races.y)].matches('▼').count();
            assert_eq!(marks, columns.len(), "{size:?} {keys}");
            assert!(shot.lines[0].contains("5 races"), "{}", shot.lines[0]);
        }
    }
}

/// `rows 4-7 of 12` and `3/8` stand where not all of a list is on the screen.
#[test]
fn positions_are_told_where_not_all_is_shown() {
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        driver.keys("2<enter>jj");
        let shot = Shot::of(&driver);
        let tabs = &shot.lines[shot.tabs()];
        assert!(tabs.ends_with(" 3/5") || size.0 < 80, "{size:?}: {tabs}");
        driver.keys("<esc>igg");
        let shot = Shot::of(&driver);
        let shown = |driver: &Driver| {
            let rows = driver.state.visible_rows();
            rows.iter().filter(|row| row.row.lane().is_some()).count()
        };
        let total = driver.state.rows.iter().filter(|row| row.lane().is_some()).count();
        let legend = &shot.lines[usize::from(shot.areas.legend.y)];
        let told = format!("rows 1-{} of {total}", shown(&driver));
        let is_told = legend.contains(&told);
        assert_eq!(is_told, shown(&driver) < total && size.0 >= 120, "{size:?}: {legend}");
    }
}

/// What is known upstream keeps its letter, underlined, and its mark is a hollow one.
#[test]
fn known_races_are_drawn_as_accepted() {
    for size in SIZES {
        let folder = tempfile::tempdir().unwrap();
        let reader = crate::trace::write(folder.path(), Shape::default());
        let mut driver = Driver::unopened(reader, size.0, size.1);
        // Every second race.
        driver.state.is_known_upstream = Some(|finding, _| finding.fingerprint.0 / 8 % 2 == 0);
        driver.settle();
        let known = driver.state.list.upstream.iter().filter(|known| **known).count();
        assert!(known > 1 && known < driver.state.list.upstream.len());
        let shot = Shot::of(&driver);
        let marks = &shot.lines[usize::from(shot.areas.races.y)];
        assert!(marks.contains('▽') && marks.contains('▼'), "{size:?}: {marks}");
        // Where rows tell the columns apart, a known side is no race.
        driver.keys("R");
        for _ in 0..2 {
            driver.keys("w");
        }
        let spots = driver.state.accepted_places.clone();
        assert_eq!(spots.len(), known * 2);
        driver.keys("<esc>0");
        let shot = Shot::of(&driver);
        let mut checked = 0;
        for spot in spots {
            let rows = driver.state.visible_rows();
            let lane = |place| driver.state.open.as_ref().unwrap().lane_ref(place);
            let row = rows.iter().find(|row| row.row.lane().map(lane) == Some(spot.lane()));
            let (Some(row), Some(column)) = (row, driver.state.column_of(&spot)) else { continue };
            let counting = driver.state.race_places.iter().any(|other| {
                !driver.state.accepted_places.contains(other)
                    && other.lane() == spot.lane()
                    && driver.state.column_of(other) == Some(column)
            });
            let at = (shot.areas.label + column as u16, shot.areas.rows.y + row.letters());
            let cell = &shot.buffer[at];
            let is_race = cell.bg == ratatui::style::Color::Rgb(213, 94, 0);
            assert_eq!(is_race, counting, "{size:?}: {cell:?}");
            assert!(counting || cell.modifier.contains(Modifier::UNDERLINED), "{size:?} {cell:?}");
            checked += usize::from(!counting);
        }
        assert!(checked > 0 || size.1 < 20, "{size:?}: {checked}");
    }
}

#[test]
fn plain_screens_have_neither_colours_nor_other_characters() {
    let theme =
        Theme { palette: streamsan_tui::Palette::Plain, glyphs: streamsan_tui::Glyphs::Ascii };
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        for keys in ["", "r", "2", "3", "4", "5", "6", "?"] {
            driver.keys(keys);
            for cell in driver.buffer(theme).content() {
                assert!(cell.symbol().is_ascii(), "{size:?} {keys}: {:?}", cell.symbol());
                let colours = (cell.fg, cell.bg);
                let reset = ratatui::style::Color::Reset;
                assert_eq!(colours, (reset, reset), "{size:?} {keys}");
            }
        }
    }
}
