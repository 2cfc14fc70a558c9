//! Screens as they are drawn, kept in `tests/golden`: the text, and below it the styles.
//! `BLESS=1` writes them again.

use crate::driver::Driver;
use crate::picture::SIZES;
use crate::trace::Shape;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use streamsan_store::Reader;
use streamsan_testing::golden;
use streamsan_tui::traces::Spot;
use streamsan_tui::{Glyphs, Palette, Theme};

/// Text, then for each line which styles it has where.
fn picture(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut text = String::new();
    let mut styles = String::new();
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    for y in 0..area.height {
        let symbols: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
        let _ = writeln!(text, "{}", symbols.trim_end());
        let line: String = (0..area.width)
            .map(|x| {
                let cell = &buffer[(x, y)];
                let (fg, bg, modifier) = (cell.fg, cell.bg, cell.modifier);
                if (fg, bg, modifier) == (Color::Reset, Color::Reset, Modifier::empty()) {
                    return ' ';
                }
                let style = format!("{fg} on {bg} {modifier:?}");
                let next = char::from(b'a' + (letters.len() % 26) as u8);
                *letters.entry(style).or_insert(next)
            })
            .collect();
        let _ = writeln!(styles, "{}", line.trim_end());
    }
    let _ = write!(text, "-- styles\n{styles}-- where\n");
    for (style, letter) in letters {
        let _ = writeln!(text, "{letter}: {style}");
    }
    text
}

#[track_caller]
pub(crate) fn compare(name: &str, driver: &Driver, theme: Theme) {
    compare_buffer(name, &driver.buffer(theme));
}

#[track_caller]
pub(crate) fn compare_buffer(name: &str, buffer: &Buffer) {
    let name = format!("{name}_{}x{}.txt", buffer.area.width, buffer.area.height);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(&name);
    golden::check(&path, &picture(buffer));
}

fn each_size(name: &str, shape: Shape, keys: &str) {
    for (width, height) in SIZES {
        let mut driver = Driver::new(shape, width, height);
        driver.keys(keys);
        compare(name, &driver, Theme::default());
    }
}

#[test]
fn opening() {
    each_size("open", Shape::default(), "");
}

#[test]
fn a_race_framed() {
    each_size("race", Shape::default(), "rr");
}

#[test]
fn names_where_they_fit() {
    each_size("names", Shape::default(), "rwww");
}

#[test]
fn the_list_of_races() {
    each_size("races", Shape::default(), "2<enter>j");
}

#[test]
fn time_and_depth() {
    each_size("time", Shape::default(), "rx");
    each_size("logical", Shape::default(), "rxx");
}

#[test]
fn the_other_panes() {
    for (name, keys) in [
        ("memory", "3"),
        ("history", "r3<enter>jj<enter>"),
        ("statistics", "4"),
        ("explanation", "r5"),
        ("help", "?"),
        ("palette", ":ra"),
        ("area", "rvllllv"),
        ("filter", "\\decode<enter>"),
    ] {
        let mut driver = Driver::new(Shape::default(), 80, 24);
        driver.keys(keys);
        compare(name, &driver, Theme::default());
    }
}

#[test]
fn clean_trace() {
    each_size("clean", Shape { races: false, ..Shape::default() }, "");
}

#[test]
fn without_colour_and_in_ascii() {
    let theme = Theme { palette: Palette::Plain, glyphs: Glyphs::Ascii };
    let mut driver = Driver::new(Shape::default(), 80, 24);
    for keys in ["", "r", "x", "x", "3", "<enter><enter>", "4", "5", ":", "<esc>?"] {
        driver.keys(keys);
        let buffer = driver.buffer(theme);
        for cell in buffer.content() {
            assert!(cell.symbol().is_ascii(), "{:?} after {keys}", cell.symbol());
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        }
    }
    driver.keys("<esc><esc>r");
    compare("plain", &driver, theme);
}

/// Races are seen on the screen that shows the whole trace, however long it is.
#[test]
fn no_race_is_hidden_by_zooming_out() {
    let driver = Driver::new(Shape { rounds: 2000, ..Shape::default() }, 80, 24);
    let lines = driver.lines(Theme::default());
    let races = driver.state.open.as_ref().unwrap().of(0).findings.len();
    assert_eq!(races, 250);
    let columns = driver.state.view().unwrap().grid();
    for Spot { place, .. } in &driver.state.race_places {
        let column = columns.column(place.at[0].unwrap()).expect("on the screen") as usize;
        let at = usize::from(driver.state.areas().label) + column;
        let marks: Vec<char> = lines[3].chars().collect();
        assert_eq!(marks[at], '▼', "{place:?}");
    }
    assert!(lines[1].contains('!'));
}

#[test]
fn recorded_traces_look_like_themselves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/recorded");
    let mut traces: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .collect();
    traces.sort();
    assert!(traces.len() >= 6);
    for path in traces {
        let reader = Reader::open(&path).unwrap();
        let title = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut driver = Driver::over(reader, &title, 120, 40);
        let operations = driver.state.open.as_ref().unwrap().of(0).overview.operations;
        assert!(operations > 50, "{title}");
        compare(&format!("recorded_{}", title.trim_end_matches(".db")), &driver, Theme::default());
        for keys in ["wwww", "jjll", "xx", "4", "3<enter>", "<esc><esc>1"] {
            driver.keys(keys);
            driver.buffer(Theme::default());
        }
    }
}
