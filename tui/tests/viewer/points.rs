//! Every point of `docs/viewer.md` is held by a test.
//!
//! Each paragraph and item of the document names the tests that hold it. A test that is named is there,
//! and goes over the four sizes, unless the point is one for which the size of the screen means nothing.

use crate::driver::Driver;
use crate::keys_seen::Shot;
use crate::picture::SIZES;
use crate::trace::Shape;
use ratatui::style::Modifier;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use streamsan_tui::{TABLE, Theme};

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
            At("keys_seen::every_key_is_seen_on_the_screen"),
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
            At("keys_seen::every_key_is_seen_on_the_screen"),
        ],
    ),
    ("A race that is [known in a library]", &[At("points::known_races_are_drawn_as_accepted")]),
    ("`o` goes to the other access", &[At("keys_seen::every_key_is_seen_on_the_screen")]),
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
pub(crate) fn source_of(test: &str) -> Option<String> {
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
