//! What stands on the screen: rows as tall as it allows, kinds told apart without reading, races in
//! front of all else, edges that cross nothing, the legend, panes with the room that they need. At
//! four sizes, in every palette.

use crate::corpus::open;
use crate::driver::Driver;
use crate::trace::Shape;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use streamsan_model::{Axis, LaneId};
use streamsan_store::Reader;
use streamsan_testing::corpus::traces;
use streamsan_tui::state::RowOnScreen;
use streamsan_tui::traces::LaneRef;
use streamsan_tui::{Glyphs, Palette, Theme};

pub(crate) const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 60)];
pub(crate) const PALETTES: [Palette; 4] =
    [Palette::TrueColour, Palette::Colours256, Palette::Colours16, Palette::Plain];

fn themes() -> impl Iterator<Item = Theme> {
    let glyphs = [Glyphs::Unicode, Glyphs::Ascii];
    PALETTES.into_iter().flat_map(move |palette| glyphs.map(|glyphs| Theme { palette, glyphs }))
}

pub(crate) fn recorded(name: &str) -> Driver {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/recorded");
    let title = name.rsplit('/').next().unwrap_or(name);
    Driver::over(Reader::open(&folder.join(name)).unwrap(), title, 80, 24)
}

/// The cells of a column of a row, from the letter upwards to below the gap.
pub(crate) fn column(
    driver: &Driver,
    buffer: &Buffer,
    row: &RowOnScreen,
    column: u32,
) -> Vec<Cell> {
    let areas = driver.state.areas();
    let x = areas.label + u16::try_from(column).unwrap();
    let first = row.gap().map_or(row.top, |gap| gap + 1);
    (first..=row.letters()).rev().map(|line| buffer[(x, areas.rows.y + line)].clone()).collect()
}

pub(crate) fn row_of(driver: &Driver, lane: LaneId) -> RowOnScreen {
    let overview = &driver.state.open.as_ref().unwrap().of(0).overview;
    let is_it = |row: &&RowOnScreen| row.row.lane().is_some_and(|l| overview.lanes[l].id == lane);
    *driver.state.visible_rows().iter().find(is_it).expect("the row is on the screen")
}

#[test]
fn rows_are_as_tall_as_the_screen_allows() {
    for name in ["pytorch.db", "jax.db", "triton.db"] {
        let mut driver = recorded(name);
        for size in SIZES {
            driver.resize(size);
            let rows = driver.state.visible_rows();
            let used: u16 = rows.iter().map(|row| row.height).sum();
            let lines = driver.state.areas().rows.height;
            let has_tallest = rows.iter().any(|row| row.height == 18);
            assert!(used == lines || has_tallest, "{name} {size:?}: {used} of {lines}");
            // Each row's name stands in it, at every size.
            let text = driver.lines(Theme::default());
            for row in rows.iter().filter(|row| row.row.lane().is_some()) {
                let line = driver.state.areas().rows.y + row.gap().map_or(row.top, |gap| gap + 1);
                let line = &text[usize::from(line)];
                let names = ["thread ", "stream ", "default stream"];
                assert!(names.iter().any(|name| line[1..].starts_with(name)), "{line}");
                assert!(row.height < 4 || text.iter().any(|line| line.contains(" operation")));
            }
        }
    }
}

/// The column with the most operations reaches the top, and one with more is never lower.
#[test]
fn bars_tell_how_many_operations_a_column_holds() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let mut driver = recorded("pytorch.db");
        driver.resize(size);
        let buffer = driver.buffer(Theme::default());
        let cells = &driver.state.strips.cells;
        let most = cells.values().flatten().map(|cell| cell.operations).max().unwrap();
        let mut heights: Vec<(u64, usize)> = Vec::new();
        let lane = LaneId::Stream(streamsan_model::StreamId(0));
        let row = row_of(&driver, lane);
        assert!(row.height > 2, "{size:?}");
        for cell in &cells[&LaneRef { trace: 0, id: lane }] {
            let bar = column(&driver, &buffer, &row, cell.column);
            let height = bar.iter().take_while(|cell| cell.symbol() != " ").count();
            if cell.operations == most {
                assert_eq!(height, usize::from(row.height) - 1, "{size:?}");
            }
            heights.push((cell.operations, height));
        }
        heights.sort_unstable();
        let highest = |n: u64| heights.iter().filter(move |(m, _)| *m == n).map(|(_, h)| *h);
        for pair in heights.windows(2).filter(|pair| pair[0].0 < pair[1].0) {
            let (low, high) = (highest(pair[0].0).min(), highest(pair[1].0).max());
            assert!(low <= high, "{size:?}: {pair:?}");
        }
        let distinct: BTreeSet<usize> = heights.iter().map(|(_, height)| *height).collect();
        assert!(distinct.len() > 1, "{size:?}: {distinct:?}");
    }
}

/// Kernels, copies, waits and host calls, by the style of the letter and the shape of the bar.
#[test]
fn kinds_are_told_apart_without_reading() {
    for theme in themes() {
        let mut driver = recorded("pytorch.db");
        driver.resize((200, 60));
        let buffer = driver.buffer(theme);
        let mut styles = BTreeSet::new();
        let mut shapes = BTreeSet::new();
        for letter in ["K", "U", "S", "A"] {
            let found = driver.state.strips.cells.iter().find_map(|(&lane, cells)| {
                let row = row_of(&driver, lane.id);
                cells.iter().find_map(|cell| {
                    let bar = column(&driver, &buffer, &row, cell.column);
                    (bar[0].symbol() == letter && bar.len() > 1 && bar[1].symbol() != " ")
                        .then_some(bar)
                })
            });
            let bar = found.unwrap_or_else(|| panic!("{letter} in {theme:?}"));
            styles.insert(format!("{:?} on {:?}", bar[0].fg, bar[0].bg));
            // The shape is not told by a part of a block, which only ends a bar.
            shapes.insert(bar[1].symbol().to_owned());
        }
        let coloured = theme.palette != Palette::Plain;
        assert_eq!(styles.len(), if coloured { 4 } else { 1 }, "{theme:?}: {styles:?}");
        assert_eq!(shapes.len(), 4, "{theme:?}: {shapes:?}");
    }
}

/// The colours of a cell as light, from 0 to 1; colours of the terminal's user have none.
fn light(colour: Color) -> f64 {
    match colour {
        Color::Rgb(r, g, b) => {
            (0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)) / 255.0
        }
        _ => 0.0,
    }
}

#[test]
fn the_race_is_in_front_of_all_else() {
    for size in SIZES {
        for theme in themes().filter(|theme| theme.palette != Palette::Plain) {
            let mut driver = Driver::new(Shape::default(), size.0, size.1);
            driver.keys("r5");
            let buffer = driver.buffer(theme);
            let areas = driver.state.areas();
            let finding = driver.state.current_finding().unwrap().clone();
            let mut sides = Vec::new();
            for side in [&finding.first, &finding.second] {
                let place = driver.place_of(side.op).unwrap();
                let grid = driver.state.view().unwrap().grid();
                let at = grid.column(place.on(Axis::Issue).unwrap()).unwrap();
                let row = row_of(&driver, place.lane);
                let letter = column(&driver, &buffer, &row, at)[0].clone();
                // The letter stays, on the colour of races.
                assert!("kKcCuUdD".contains(letter.symbol()), "{size:?} {theme:?}: {letter:?}");
                sides.push((areas.label + at as u16, areas.rows.y + row.letters(), letter));
            }
            let bright = sides[0].2.bg;
            assert_ne!(bright, Color::Reset);
            for y in areas.rows.y..areas.rows.bottom() {
                for x in areas.label..areas.rows.right() {
                    let cell = &buffer[(x, y)];
                    let is_side = sides.iter().any(|(a, b, _)| (*a, *b) == (x, y));
                    let is_number = ["1", "2"].contains(&cell.symbol());
                    assert!(
                        (cell.bg == bright) == is_side || is_number,
                        "{size:?} {theme:?} at {x}, {y}: {cell:?}"
                    );
                    if theme.palette == Palette::TrueColour && cell.bg != bright {
                        assert!(light(cell.bg) < 0.35, "{size:?} at {x}, {y}: {cell:?}");
                    }
                }
            }
            // The edge that is missing.
            let dashes = if theme.glyphs == Glyphs::Ascii { "~!" } else { "╍╏┓┛┏┗" };
            let missing = buffer.content().iter().filter(|cell| dashes.contains(cell.symbol()));
            assert!(missing.clone().count() > 1, "{size:?} {theme:?}\n{}", driver.text());
        }
    }
}

/// Without colours `!` stands for the letter.
#[test]
fn a_race_is_a_mark_where_there_is_no_colour() {
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        driver.keys("r");
        let theme = Theme { palette: Palette::Plain, ..Theme::default() };
        let buffer = driver.buffer(theme);
        let finding = driver.state.current_finding().unwrap();
        for side in [&finding.first, &finding.second] {
            let place = driver.place_of(side.op).unwrap();
            let at = driver.state.view().unwrap().grid().column(place.on(Axis::Issue).unwrap());
            let row = row_of(&driver, place.lane);
            let letter = column(&driver, &buffer, &row, at.unwrap())[0].clone();
            assert_eq!(letter.symbol(), "!", "{size:?}");
            assert!(letter.modifier.contains(Modifier::REVERSED));
        }
    }
}

/// Edges of races and of selected operations, over the corpus: no letter, bar or name goes, and
/// where the way is free the sides are connected without a break.
#[test]
fn edges_cross_nothing_that_they_do_not_mean() {
    let mut drawn = 0;
    for path in traces("fail").iter().step_by(11) {
        let folder = tempfile::tempdir().unwrap();
        let (reader, explain) = open(&fs::read_to_string(path).unwrap(), folder.path());
        let mut driver = Driver::unopened(reader, 80, 24);
        driver.sources[0].explain = explain;
        driver.settle();
        for size in SIZES {
            driver.resize(size).keys("r");
            if driver.state.current_finding().is_none() {
                continue;
            }
            let theme = Theme::default();
            let with = driver.buffer(theme);
            let areas = driver.state.areas();
            let mut bare = driver.state.clone();
            (bare.selection, bare.finding) = (None, None);
            let mut without = Buffer::empty(*with.area());
            streamsan_tui::render(&bare, theme, *with.area(), &mut without);
            for y in areas.rows.y..areas.rows.bottom() {
                for x in areas.label..areas.rows.right() {
                    let (before, after) = (without[(x, y)].symbol(), with[(x, y)].symbol());
                    if before != " " {
                        assert_eq!(before, after, "{} {size:?} at {x}, {y}", path.display());
                    } else if after != " " {
                        drawn += 1;
                    }
                }
            }
        }
    }
    assert!(drawn > 500, "{drawn}");
}

#[test]
fn the_legend_is_always_on_the_screen() {
    for size in SIZES {
        for theme in themes() {
            let mut driver = Driver::new(Shape::default(), size.0, size.1);
            for keys in ["", "r5", "2", "<enter>", "<esc>z"] {
                driver.keys(keys);
                let area = driver.state.areas().legend;
                let legend = driver.lines_of(area, theme).join("");
                for word in ["race", "kernel", "copy", "wait", "host", "other"] {
                    assert!(legend.contains(word), "{word} at {size:?} after {keys}: {legend}");
                }
                let buffer = driver.buffer(theme);
                let styles: BTreeSet<String> = (0..area.width)
                    .map(|x| &buffer[(x, area.y)])
                    .map(|cell| format!("{:?} {:?}", cell.fg, cell.bg))
                    .collect();
                let several = theme.palette != Palette::Plain;
                assert!(!several || styles.len() > 5, "{size:?} {theme:?}: {styles:?}");
            }
        }
    }
}

/// The words about a race are on the screen whole, where the rows leave the room.
#[test]
fn the_pane_takes_the_room_that_its_content_needs() {
    let path = traces("fail")
        .into_iter()
        .find(|path| path.to_string_lossy().contains("wild_04_unstashed_on_another_stream"));
    let folder = tempfile::tempdir().unwrap();
    let (reader, explain) = open(&fs::read_to_string(path.unwrap()).unwrap(), folder.path());
    let mut driver = Driver::unopened(reader, 80, 24);
    driver.sources[0].explain = explain;
    driver.settle();
    driver.keys("r5");
    let words = driver.state.explanation.clone().unwrap().1;
    for size in [(120, 40), (200, 60)] {
        driver.resize(size);
        let pane = driver.lines_of(driver.state.areas().pane, Theme::default()).join("\n");
        let (first, last) = (words.lines().next().unwrap(), words.lines().last().unwrap());
        assert!(pane.contains(last), "{size:?}\n{pane}");
        assert!(pane.contains(first.get(..40).unwrap()), "{size:?}\n{pane}");
        // The rest is the rows'.
        let blank = pane.lines().filter(|line| line.is_empty()).count();
        assert!(blank < 4, "{size:?}\n{pane}");
    }
    // A pane with little to say gives its room back, and moving about does not make rows jump.
    let tall = driver.state.areas().pane.height;
    driver.keys("1");
    let details = driver.state.areas().pane.height;
    assert!(details < tall);
    let mut last = details;
    for keys in ["h", "h", "l", "l", "j", "k"] {
        driver.keys(keys);
        let now = driver.state.areas().pane.height;
        assert!(now >= last, "{keys}");
        last = now;
    }
}

#[test]
fn the_mouse_and_keys_resize_the_pane() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind as Kind};
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        driver.keys("4");
        let tabs = |driver: &Driver| {
            let lines = driver.lines(Theme::default());
            lines.iter().position(|line| line.contains("1 details")).expect("the tabs")
        };
        let before = tabs(&driver);
        driver.keys("<");
        assert!(tabs(&driver) > before, "{size:?}");
        driver.keys("|");
        assert_eq!(tabs(&driver), before, "{size:?}");
        let event = |kind, row| MouseEvent { kind, column: 50, row, modifiers: KeyModifiers::NONE };
        let row = u16::try_from(before).unwrap();
        driver.state.mouse(event(Kind::Down(MouseButton::Left), row));
        driver.state.mouse(event(Kind::Drag(MouseButton::Left), row + 1));
        driver.state.mouse(event(Kind::Drag(MouseButton::Left), row + 2));
        driver.state.mouse(event(Kind::Up(MouseButton::Left), row + 2));
        driver.settle();
        assert_eq!(tabs(&driver), before + 2, "{size:?}");
    }
}

#[test]
fn the_reports_colours_stay_in_the_pane() {
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        driver.sources[0].explain = Box::new(|_| "\x1b[1;31merror\x1b[0m: plain".to_owned());
        driver.keys("r5");
        let areas = driver.state.areas();
        let line = areas.pane.y + 1;
        for palette in PALETTES {
            let buffer = driver.buffer(Theme { palette, ..Theme::default() });
            let text: String = (0..12).map(|x| buffer[(x, line)].symbol()).collect();
            assert_eq!(text, "error: plain", "{size:?}");
            let red = if palette == Palette::Plain { Color::Reset } else { Color::Red };
            assert_eq!((buffer[(0, line)].fg, buffer[(7, line)].fg), (red, Color::Reset));
            assert!(buffer[(0, line)].modifier.contains(Modifier::BOLD));
        }
    }
}

/// The first `x` shows as much of the other axis as was shown of the one before.
#[test]
fn the_zoom_stays_on_the_next_axis() {
    for size in SIZES {
        let mut driver = recorded("pytorch.db");
        driver.resize(size).keys("jjwwwwf");
        let bracket = |driver: &Driver| {
            let area = driver.state.areas().minimap;
            let buffer = driver.buffer(Theme::default());
            let shown = (0..area.width).filter(|&x| buffer[(x, area.y)].bg != Color::Reset);
            (shown.count(), usize::from(area.width - driver.state.areas().label))
        };
        let (before, _) = bracket(&driver);
        assert!(before > 0, "{size:?}");
        for axis in ["host issue time", "logical order"] {
            driver.keys("x");
            assert!(driver.lines(Theme::default())[0].contains(axis) || size.0 < 80);
            let (after, all) = bracket(&driver);
            assert!(after > 0 && after < all / 2, "{size:?} {axis}: {after} of {all}");
            // The operation that was selected is on the screen.
            let row = row_of(&driver, driver.state.selection.as_ref().unwrap().place.lane);
            let y = driver.state.areas().rows.y + row.letters();
            let buffer = driver.buffer(Theme::default());
            let is_selected = |x: u16| buffer[(x, y)].modifier.contains(Modifier::UNDERLINED);
            let label = driver.state.areas().label;
            assert!((label..size.0).any(is_selected), "{size:?} {axis}");
        }
    }
}

#[test]
fn a_framed_race_is_framed_on_the_next_axis() {
    for size in SIZES {
        let mut driver = Driver::new(Shape::default(), size.0, size.1);
        driver.keys("r");
        for axis in [Axis::Time, Axis::Logical] {
            driver.keys("x");
            let grid = driver.state.view().unwrap().grid();
            assert_eq!(grid.axis, axis);
            assert!(!driver.state.view().unwrap().is_whole(), "{size:?}");
            let finding = driver.state.current_finding().unwrap();
            let buffer = driver.buffer(Theme::default());
            for side in [&finding.first, &finding.second] {
                let place = driver.place_of(side.op).unwrap();
                let at = grid.column(place.on(axis).unwrap()).expect("on the screen");
                let bar = column(&driver, &buffer, &row_of(&driver, place.lane), at);
                assert_eq!(bar[0].bg, Color::Indexed(166), "{size:?} {axis:?}");
            }
        }
    }
}
