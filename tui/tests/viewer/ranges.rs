//! NVTX ranges on the screen: their rows, the selected call's, and the filter.

use crate::driver::Driver;
use crate::picture::SIZES;
use crate::trace;
use std::path::Path;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};
use streamsan_tui::Theme;
use streamsan_tui::state::Row;

/// The calls of a part: those of a round, and one of the first thread that is issued to no stream.
fn calls() -> Vec<(u32, &'static str, Action, Vec<Access>)> {
    let allocate = Action::Allocate { allocation: AllocationId(0), stream: None };
    let mut calls = vec![(0, "cuMemAlloc_v2", allocate, vec![])];
    calls.extend(trace::round());
    calls
}

/// The rounds of a program in ranges: `train` around all, `step N` around each, and parts of each.
fn trace_with_ranges(path: &Path, rounds: u64) -> Reader {
    let mut writer = Writer::create(path, &trace::meta()).unwrap();
    for entity in trace::entities() {
        writer.item(&TraceItem::Entity(entity)).unwrap();
    }
    let mut g = 0;
    let mut next = || {
        g += 1;
        g
    };
    let time = |g: u64| 5_000_000_000 + g * 1_000;
    let mut ranges: Vec<NvtxRange> = Vec::new();
    let begin = |ranges: &mut Vec<NvtxRange>, g: u64, depth: u32, name: String| {
        ranges.push(NvtxRange {
            begin: OpSeq(g),
            end: None,
            process: ProcessId(0),
            thread: ThreadId(0),
            kind: NvtxKind::Pushed,
            domain: None,
            name: name.into(),
            time: HostTime { start_ns: time(g), end_ns: time(g) },
            depth,
        });
        ranges.len() - 1
    };
    let end = |range: &mut NvtxRange, g: u64| {
        range.end = Some(OpSeq(g));
        range.time.end_ns = time(g);
    };
    let train = begin(&mut ranges, next(), 0, "train".to_owned());
    for round in 0..rounds {
        let step = begin(&mut ranges, next(), 1, format!("step {round}"));
        for part in ["forward", "back\u{202e}ward"] {
            let part = begin(&mut ranges, next(), 2, part.to_owned());
            for (thread, api, action, accesses) in calls() {
                let g = next();
                let operation = Operation {
                    g: OpSeq(g),
                    exit: Some(OpSeq(g)),
                    process: ProcessId(thread / 2),
                    thread: ThreadId(thread),
                    api: Arc::from(api),
                    time: Some(HostTime { start_ns: time(g), end_ns: time(g) + 100 }),
                    status: Status::SUCCESS,
                    action,
                    accesses,
                    stack: None,
                };
                writer.item(&TraceItem::Operation(operation)).unwrap();
            }
            end(&mut ranges[part], next());
        }
        end(&mut ranges[step], next());
    }
    end(&mut ranges[train], next());
    for range in ranges {
        writer.item(&TraceItem::Range(range)).unwrap();
    }
    writer.finalize().unwrap();
    Reader::open(path).unwrap()
}

fn driver(folder: &tempfile::TempDir, rounds: u64, (width, height): (u16, u16)) -> Driver {
    let reader = trace_with_ranges(&folder.path().join("trace.db"), rounds);
    Driver::over(reader, "ranges.db", width, height)
}

/// The screen's lines of the range rows, behind the names of rows.
fn drawn(driver: &Driver, theme: Theme) -> Vec<String> {
    let lines = driver.lines(theme);
    let areas = driver.state.areas();
    let label = usize::from(areas.label);
    let rows = driver.state.visible_rows();
    let rows = rows.iter().filter(|row| matches!(row.row, Row::Ranges(..)));
    rows.map(|row| {
        let line = &lines[usize::from(areas.rows.y + row.top)];
        line.chars().skip(label).collect()
    })
    .collect()
}

#[test]
fn ranges_stand_above_the_calls_of_their_thread() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = driver(&folder, 2, size);
        let screen = driver.text();
        let ranges = drawn(&driver, Theme::default());
        // A small screen shows the outermost ones only.
        assert_eq!(ranges.len(), if size.1 < 20 { 1 } else { size.1.min(40) as usize / 20 + 1 });
        assert!(ranges[0].starts_with("\u{258f}train\u{2500}"), "{size:?}\n{screen}");
        assert_eq!(ranges[0].matches('\u{258f}').count(), 1, "{size:?}\n{screen}");
        assert!(!screen.contains('\u{202e}'), "{screen}");
        if let [_, steps, ..] = &ranges[..] {
            assert!(steps.contains("\u{258f}step 0\u{2500}"), "{size:?}\n{screen}");
            assert!(steps.contains("\u{258f}step 1\u{2500}"), "{size:?}\n{screen}");
        }
        if let [_, steps, parts] = &ranges[..] {
            assert_eq!(parts.matches("\u{258f}forward").count(), 2, "{size:?}\n{screen}");
            assert_eq!(parts.matches("\u{258f}back\\u{202e}").count(), 2, "{size:?}\n{screen}");
            // Each part lies under its step.
            let column = |line: &str, word: &str| {
                let at = line.match_indices(word).last().map(|(at, _)| at);
                at.map(|at| line[..at].chars().count())
            };
            assert!(
                column(parts, "\u{258f}forward") >= column(steps, "\u{258f}step 1"),
                "{screen}"
            );
        }
        // The calls of the thread stand below its ranges.
        let rows = driver.state.visible_rows();
        let is_range = |row: &Row| matches!(row, Row::Ranges(..));
        let last = rows.iter().rposition(|row| is_range(&row.row)).unwrap();
        let Row::Ranges(lane, _) = rows[last].row else { panic!() };
        assert_eq!(rows[last + 1].row, Row::Lane(lane), "{size:?}");
        // By host time they lie over the same calls; the logical order has no place for them.
        driver.keys("x");
        assert!(drawn(&driver, Theme::default())[0].contains("\u{258f}train"), "{}", driver.text());
        driver.keys("x");
        assert!(drawn(&driver, Theme::default()).iter().all(String::is_empty), "{}", driver.text());
    }
}

/// However many ranges there are, a column that holds several says that.
#[test]
fn many_ranges_are_shaded_until_they_are_seen_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = driver(&folder, 600, (120, 40));
    let far = drawn(&driver, Theme::default());
    assert!(far[0].starts_with("\u{258f}train\u{2500}"), "{}", driver.text());
    assert!(far[2].chars().filter(|&c| c == '\u{2592}').count() > 50, "{}", driver.text());
    for _ in 0..14 {
        driver.keys("w");
    }
    let near = drawn(&driver, Theme::default());
    assert!(!near[2].contains('\u{2592}'), "{}", driver.text());
    assert!(near[1].contains("step ") && near[2].contains("forward"), "{}", driver.text());
    // The name of a range that began before the window is there, too.
    assert!(near[0].starts_with("\u{258f}train"), "{}", driver.text());
}

#[test]
fn plain_terminals_get_ranges_in_ascii() {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver(&folder, 2, (120, 40));
    let theme = Theme { glyphs: streamsan_tui::Glyphs::Ascii, ..Theme::default() };
    let rows = drawn(&driver, theme);
    assert!(rows[0].starts_with("|train-"), "{rows:?}");
    assert!(rows.iter().all(|row| row.is_ascii()), "{rows:?}");
}

#[test]
fn range_filter_and_details_tell_where_a_call_is() {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        let mut driver = driver(&folder, 3, size);
        driver.keys("\\range:step 1, range:step 2<enter>");
        let hits = driver.state.hits.clone().unwrap();
        let of_thread = calls().iter().filter(|call| call.0 == 0).count() as u64;
        assert_eq!(hits.total, 2 * 2 * of_thread, "two steps of two parts");
        let last = driver.lines(Theme::default()).pop().unwrap();
        let told = format!("filter range:step 1, range:step 2: {} hits", hits.total);
        assert!(last.starts_with(&told[..told.len().min(usize::from(size.0))]), "{last}");
        driver.keys("1");
        let (selected, _) = hits.places[0];
        assert_eq!(OpSeq(driver.selected()), selected.g);
        if size.1 > 20 {
            assert!(driver.text().contains("  in train/step 1/forward"), "{}", driver.text());
        }
        driver.keys("<esc>\\range:none of them<enter>");
        assert!(driver.text().contains("no operation matches"), "{}", driver.text());
    }
}
