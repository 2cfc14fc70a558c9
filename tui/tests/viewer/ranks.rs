//! Several traces in one view: rows grouped by trace, one axis for all, findings of all, and what is
//! drawn where.

use crate::corpus;
use crate::driver::Driver;
use crate::picture::SIZES;
use crate::screens::compare;
use crate::trace::{self, Shape};
use std::path::Path;
use streamsan_model::{Axis, Cell, LaneId, OpSeq, TraceQuery};
use streamsan_store::Reader;
use streamsan_tui::Theme;
use streamsan_tui::state::{Label, Pane, Row, RowOnScreen};
use streamsan_tui::traces::{LaneRef, OpRef};

/// Where the ranks begin on their clock, in ns.
const BEGINS: [i64; 3] = [0, 700_001, -1_300_017];

fn label(rank: usize) -> Label {
    Label {
        title: format!("rank{rank}.db"),
        about: format!("rank {rank} on node{}", rank / 2),
        begins_ns: Some(BEGINS[rank]),
    }
}

fn shape(rank: usize) -> Shape {
    Shape { rounds: [40, 16, 24][rank], races: rank != 1, ..Shape::default() }
}

fn write(folder: &Path, rank: usize) -> Reader {
    let folder = folder.join(format!("rank{rank}"));
    std::fs::create_dir_all(&folder).unwrap();
    trace::write(&folder, shape(rank))
}

pub(crate) fn ranks(folder: &Path, size: (u16, u16)) -> Driver {
    let traces = (0..3).map(|rank| (write(folder, rank), label(rank))).collect();
    Driver::over_several(traces, size)
}

/// With a text trace, which has no times.
fn with_a_text_trace(folder: &Path, size: (u16, u16)) -> Driver {
    let text = "stream s1 nonblocking\nstream s2 nonblocking\nalloc A 64\n\
                launch s1 store w:A\nlaunch s2 load r:A\n";
    let (reader, _) = corpus::open(text, folder);
    let label_of_text = Label { title: "racy.trace".to_owned(), ..Label::default() };
    let traces = vec![(write(folder, 0), label(0)), (reader, label_of_text)];
    Driver::over_several(traces, size)
}

/// The picture of the documentation.
pub(crate) fn picture_of_ranks() -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = ranks(folder.path(), (100, 30));
    driver.keys("2");
    corpus::picture_of(&driver.lines(corpus::WITHOUT_COLOURS))
}

fn lane_of(driver: &Driver, row: &RowOnScreen) -> Option<LaneRef> {
    Some(driver.state.open.as_ref().unwrap().lane_ref(row.row.lane()?))
}

/// What a row has on the screen, from the timelines' first column.
fn letters(driver: &Driver, row: &RowOnScreen) -> Vec<char> {
    let areas = driver.state.areas();
    let lines = driver.lines(Theme::default());
    let line = &lines[usize::from(areas.rows.y + row.letters())];
    line.chars().skip(usize::from(areas.label)).collect()
}

fn headlines(driver: &Driver) -> Vec<usize> {
    let headline = |row: &Row| match row {
        Row::Trace(trace) => Some(*trace),
        _ => None,
    };
    driver.state.rows.iter().filter_map(headline).collect()
}

#[test]
fn rows_stand_below_the_names_of_their_traces() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        assert_eq!(headlines(&driver), [0, 1, 2]);
        assert!(driver.text().starts_with("3 traces  "), "{}", driver.text());
        let mut seen = [false; 3];
        driver.keys("gg");
        for _ in 0..driver.state.rows.len() {
            let lines = driver.lines(Theme::default());
            let areas = driver.state.areas();
            let mut trace = None;
            for row in driver.state.visible_rows() {
                let line = &lines[usize::from(areas.rows.y + row.top)];
                if let Row::Trace(of) = row.row {
                    trace = Some(of);
                    seen[of] = true;
                    let name = format!("rank{of}.db  rank {of} on node{}", of / 2);
                    assert!(line.starts_with(&name), "{size:?}: {line}");
                    if size.0 >= 80 {
                        let races = ["5 races", "0 races", "3 races"][of];
                        assert!(line.contains(races), "{size:?}: {line}");
                    }
                }
                // The rows of a trace stand behind its headline.
                if let (Some(lane), Some(trace)) = (lane_of(&driver, &row), trace) {
                    assert_eq!(lane.trace, trace, "{size:?}");
                }
            }
            driver.keys("j");
        }
        assert_eq!(seen, [true; 3], "{size:?}");
    }
}

/// Each letter stands where its call lies on the common clock, at every zoom, however the ranks
/// begin: less than a column beside it.
#[test]
fn letters_stand_where_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let readers: Vec<Reader> = (0..3).map(|rank| write(folder.path(), rank)).collect();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        assert_eq!(driver.state.axis, Some(Axis::Time), "the clock is what the traces share");
        let mut checked = 0;
        for keys in ["", "w", "ww", "wwww", "dd", "ssssjjjj", "ww", "0", "G", "www", "0gg"] {
            driver.keys(keys);
            let grid = driver.state.view().unwrap().grid();
            let wide = i128::from(1_u64 << grid.scale.max(0));
            for row in driver.state.visible_rows() {
                let Some(lane) = lane_of(&driver, &row) else { continue };
                let letters = letters(&driver, &row);
                // A rank may lie beside the screen.
                let cells = driver.state.strips.cells.get(&lane);
                let cells: &[Cell] = cells.map_or(&[], Vec::as_slice);
                for cell in cells {
                    let place = readers[lane.trace].place(cell.first).unwrap().unwrap();
                    let at = i128::from(place.on(Axis::Time).unwrap());
                    // The earliest rank begins at 0.
                    let at = at + i128::from(BEGINS[lane.trace] - BEGINS[2]);
                    let drawn = i128::from(grid.position(cell.column));
                    let beside = at - drawn;
                    assert!((-1..2 * wide).contains(&beside), "{size:?} {keys}: {cell:?} {beside}");
                    let letter = letters.get(cell.column as usize).copied().unwrap_or(' ');
                    assert_ne!(letter, ' ', "{size:?} {keys}: {cell:?}\n{}", driver.text());
                    checked += 1;
                }
            }
        }
        assert!(checked > 200, "{size:?}: {checked}");
    }
}

/// The selected operation, the sides of a race and their cells are drawn in one column, in every
/// trace.
#[test]
fn what_is_selected_stands_in_its_own_column() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        let findings = driver.state.open.as_ref().unwrap().findings().count();
        assert_eq!(findings, 8);
        for turn in 0..findings {
            driver.next_finding();
            for keys in ["", "w", "ww", "s", "o"] {
                driver.keys(keys);
                let point = driver.state.selected_point().unwrap();
                let column = driver.state.column_of(&point.spot());
                let column = column.unwrap_or_else(|| panic!("{turn} {keys}\n{}", driver.text()));
                let cells = &driver.state.strips.cells[&point.spot().lane()];
                let cell = cells.iter().find(|cell| cell.column == column);
                let cell = cell.unwrap_or_else(|| panic!("{turn} {keys}\n{}", driver.text()));
                assert!(cell.findings > 0, "{size:?} {turn} {keys}: {cell:?}");
            }
        }
    }
}

#[test]
fn races_of_all_traces_are_listed_with_their_trace() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        driver.keys("2z");
        let text = driver.text();
        for rank in [0, 2] {
            assert!(text.contains(&format!("rank{rank}.db  race")), "{size:?}\n{text}");
        }
        assert!(!text.contains("rank1.db  race"), "{text}");
        driver.keys("z<esc>");
        // A mistake of several ranks is one mistake; each time both sides are of one trace, and on the
        // screen.
        let mut traces = Vec::new();
        for _ in 0..8 {
            driver.next_finding();
            let last = driver.lines(Theme::default()).pop().unwrap();
            let trace = driver.state.selected_trace;
            traces.push(trace);
            assert!(last.contains(&format!("in rank{trace}.db")), "{size:?}: {last}");
            let finding = driver.state.current_finding().unwrap().clone();
            let shown: Vec<LaneRef> = driver
                .state
                .visible_rows()
                .iter()
                .filter_map(|row| lane_of(&driver, row))
                .collect();
            for side in [&finding.first, &finding.second] {
                let spot = driver.state.place_of(OpRef { trace, g: side.op }).unwrap();
                assert!(shown.contains(&spot.lane()), "{size:?}\n{}", driver.text());
            }
        }
        assert_eq!(traces, [0, 2, 0, 2, 0, 2, 0, 0]);
        // Words of a trace's name are words of its races.
        driver.keys("2<enter>\\rank2<enter>");
        assert_eq!(driver.state.list.shown.len(), 3);
    }
}

#[test]
fn filters_and_searches_go_over_all_traces() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        driver.keys("\\kernel:reduce<enter>");
        let last = driver.lines(Theme::default()).pop().unwrap();
        assert!(last.contains("80 hits in 3 rows"), "{size:?}: {last}");
        assert_eq!(headlines(&driver), [0, 1, 2]);
        let mut traces = vec![driver.state.selected_trace];
        for _ in 0..79 {
            driver.keys("n");
            traces.push(driver.state.selected_trace);
        }
        let of = |trace| traces.iter().filter(|of| **of == trace).count();
        assert_eq!([of(0), of(1), of(2)], [40, 16, 24], "{size:?}");
        driver.keys("<esc><esc>gg/memset<enter>");
        let begin = driver.state.selected_op();
        let mut traces = Vec::new();
        for _ in 0..80 {
            driver.keys("n");
            traces.push(driver.state.selected_trace);
        }
        assert_eq!(driver.state.selected_op(), begin, "around all traces");
        traces.dedup();
        assert_eq!(traces, [0, 1, 2, 0]);
        driver.keys("N");
        assert_eq!(driver.state.selected_trace, 2, "backwards over the border");
    }
}

#[test]
fn panes_are_about_the_trace_in_focus() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        driver.keys("gg");
        for (rank, operations) in [(0, 332), (1, 140), (2, 204)] {
            assert_eq!(driver.state.trace_in_focus(), rank);
            let expect = |driver: &mut Driver, keys: &str, words: &str| {
                let text = driver.keys(keys).keys("z").text();
                assert!(text.contains(words), "{size:?} {keys} {rank}: {words}\n{text}");
                driver.keys("z<esc>");
            };
            expect(&mut driver, "3", &format!("the largest 3 allocations of rank{rank}.db"));
            expect(&mut driver, "6", &format!("issue order of rank{rank}.db"));
            expect(&mut driver, "4", &format!("rank{rank}.db  rank {rank} on node{}", rank / 2));
            expect(&mut driver, "1", &format!("of rank{rank}.db"));
            driver.keys("4");
            let (_, calls) = driver.state.calls.clone().unwrap();
            assert_eq!(calls.iter().map(|call| call.calls).sum::<u64>(), operations, "{rank}");
            driver.keys("1t");
        }
        assert_eq!(driver.state.trace_in_focus(), 0, "t goes around");
        driver.keys("T");
        assert_eq!(driver.state.trace_in_focus(), 2);
        // The uses of an allocation lead to operations of its trace.
        driver.keys("3<enter><enter>j<enter>");
        assert_eq!(driver.state.pane, Pane::Memory);
        assert_eq!(driver.state.selected_trace, 2);
    }
}

/// Shifting moves one trace by columns, in the direction of the key, and says so.
#[test]
fn traces_are_shifted_by_columns() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        for (axis, word) in [("", "ms"), ("x", "deep"), ("xx", "calls")] {
            let mut driver = ranks(folder.path(), size);
            driver.keys(axis).keys("www0ggww");
            driver.keys("t");
            let op = driver.state.selected_op().unwrap();
            let column = |driver: &Driver, op: OpRef| {
                driver.state.column_of(&driver.state.place_of(op).unwrap()).map(i64::from)
            };
            let axis = driver.state.axis.unwrap();
            let before = column(&driver, op).unwrap();
            // Where a position is wider than a column, by a position.
            let wide = 1_i64 << driver.state.view().unwrap().scale.min(0).unsigned_abs();
            let shift = |driver: &Driver| driver.state.alignment.shift(1, axis);
            let began = shift(&driver);
            driver.keys("}}}");
            assert_eq!(column(&driver, op), Some(before + 3 * wide), "{size:?} {axis:?}");
            let last = driver.lines(Theme::default()).pop().unwrap();
            assert!(last.starts_with("rank1.db: +") && last.contains("axis"), "{last}");
            assert!(word == "ms" || last.contains(word), "{last}");
            driver.keys("{");
            assert_eq!(column(&driver, op), Some(before + 2 * wide), "{size:?} {axis:?}");
            let lines = driver.lines(Theme::default());
            let headline = lines.iter().find(|line| line.starts_with("rank1.db")).unwrap();
            assert!(size.0 < 80 || headline.contains("shifted by +"), "{headline}");
            driver.keys("{{");
            assert_eq!(shift(&driver), began, "{size:?} {axis:?}");
            // Before the first trace: the others move on the axis, not on the screen.
            let first = OpRef { trace: 0, g: OpSeq(1) };
            driver.keys("gg^");
            assert_eq!(driver.state.selected_op(), Some(first));
            let before = column(&driver, first);
            driver.keys("t{{{{");
            driver.keys("gg^");
            let moved = column(&driver, first).unwrap() - before.unwrap();
            assert!((-1..=4 * wide).contains(&moved), "{size:?} {axis:?}: {moved}");
        }
    }
}

/// `&` puts two operations of different traces under each other.
#[test]
fn two_operations_are_aligned() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        driver.keys("&");
        assert!(driver.text().contains("v at an operation of one trace"), "{}", driver.text());
        driver.keys("gg/#51<enter>vll");
        assert_eq!(driver.state.selected_trace, 0);
        driver.keys("&");
        assert!(driver.text().contains("both operations are of one trace"), "{}", driver.text());
        let from = driver.state.area.unwrap().from;
        driver.keys("t/#51<enter>");
        let here = driver.state.selected_point().unwrap();
        assert_eq!((here.trace, here.op), (1, OpSeq(51)));
        driver.keys("&wwwwwwww");
        let columns = [from, here].map(|point| driver.state.column_of(&point.spot()));
        assert_eq!(columns[0], columns[1], "{size:?}\n{}", driver.text());
        assert!(columns[0].is_some());
        // Between traces an area is a time, and no number of calls.
        driver.keys("v").keys("T/#51<enter>");
        let last = driver.lines(Theme::default()).pop().unwrap();
        assert!(last.contains("area") && !last.contains("calls apart"), "{size:?}: {last}");
    }
}

#[test]
fn text_trace_stands_among_others() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = with_a_text_trace(folder.path(), size);
        assert_eq!(headlines(&driver), [0, 1]);
        driver.keys("G");
        let lines = driver.lines(Theme::default());
        let headline = lines.iter().find(|line| line.starts_with("racy.trace")).unwrap();
        assert!(headline.contains("no host times"), "{size:?}: {headline}");
        driver.keys("R");
        assert!(driver.text().contains("in racy.trace"), "{}", driver.text());
        // Its operations have a place in issue order.
        driver.keys("xx");
        assert_eq!(driver.state.axis, Some(Axis::Issue));
        let point = driver.state.selected_point().unwrap();
        assert_eq!(point.trace, 1);
        assert!(driver.state.column_of(&point.spot()).is_some(), "{size:?}\n{}", driver.text());
        let row = driver.state.visible_rows();
        let row = row.iter().find(|row| lane_of(&driver, row) == Some(point.spot().lane()));
        let drawn: String = letters(&driver, row.unwrap()).into_iter().collect();
        assert!(drawn.contains(['k', 'K']), "{size:?}: {drawn}");
    }
}

/// The minimap holds the operations of all traces, and the sides of races of each.
#[test]
fn minimap_is_that_of_all_traces() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        for keys in ["", "x", "x"] {
            driver.keys(keys);
            let (axis, columns, cells) = driver.state.minimap.clone().unwrap();
            assert_eq!(cells.iter().map(|cell| cell.operations).sum::<u64>(), 332 + 140 + 204);
            let span = driver.state.view().unwrap().span;
            for spot in &driver.state.race_places {
                let at =
                    spot.place.on(axis).unwrap() + driver.state.alignment.shift(spot.trace, axis);
                let column = u128::from(at - span.start) * u128::from(columns);
                let column = (column / u128::from(span.len())) as u32;
                let near = |cell: &&Cell| cell.column.abs_diff(column) < 3 && cell.findings > 0;
                assert!(cells.iter().any(|cell| near(&cell)), "{size:?} {axis:?} {column}");
            }
            assert!(driver.lines(Theme::default())[1].contains('!'));
        }
    }
}

#[test]
fn ranks_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = ranks(folder.path(), size);
        compare("ranks", &driver, Theme::default());
        driver.keys("Rt");
        compare("ranks_race", &driver, Theme::default());
    }
}

/// Keys that come in any order leave the traces where they are found again.
#[test]
fn nothing_is_lost_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = ranks(folder.path(), (100, 30));
    for keys in [
        "wwwdd",
        "}}}}}",
        "xaa",
        "{{{{",
        "xDD",
        "tpt",
        "R}o{",
        "i",
        "\\decode<enter>",
        "<esc>",
        "0T",
    ] {
        driver.keys(keys);
        let view = driver.state.view().unwrap();
        assert!(view.is_inside(), "{keys}: {view:?}");
        let rows = driver.state.visible_rows();
        assert!(rows.iter().any(|row| row.row.lane().is_some()), "{keys}\n{}", driver.text());
        assert!(!driver.state.message.as_ref().is_some_and(|m| m.error), "{keys}");
    }
    let stream = LaneRef { trace: 2, id: LaneId::Stream(streamsan_model::StreamId(0)) };
    assert!(driver.state.open.as_ref().unwrap().lane_place(stream).is_some());
}
