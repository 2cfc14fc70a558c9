//! Filters and bytes over time, by what stands on the screen: the count of hits against the
//! operations of the trace, the cells that stay in front, the bars of bytes.

use crate::driver::Driver;
use crate::picture::{PALETTES, SIZES, column, recorded, row_of};
use ratatui::style::Color;
use std::collections::BTreeSet;
use std::path::Path;
use streamsan_model::*;
use streamsan_store::Reader;
use streamsan_tui::{Palette, Theme};

/// The operations of a trace that a question is true of, one by one.
fn counted(driver: &Driver, is_hit: impl Fn(&Detail) -> bool) -> Vec<OpSeq> {
    let mut found = Vec::new();
    let overview = driver.state.open.as_ref().unwrap().of(0).overview.clone();
    for lane in &overview.lanes {
        let mut at = OpSeq(0);
        let first = driver.reader().detail(at).unwrap().filter(|d| d.place.lane == lane.id);
        found.extend(first.filter(&is_hit).map(|detail| detail.operation.g));
        while let Some(next) = driver.reader().neighbour(lane.id, at, true).unwrap() {
            at = next;
            let detail = driver.reader().detail(at).unwrap().unwrap();
            found.extend(is_hit(&detail).then_some(at));
        }
    }
    found.sort_unstable();
    found
}

fn frames(detail: &Detail, text: impl Fn(&SourceFrame) -> Option<&str>, word: &str) -> bool {
    detail.stack.iter().flat_map(|frame| &frame.source).any(|source| {
        text(source).is_some_and(|text| text.to_lowercase().contains(&word.to_lowercase()))
    })
}

#[test]
fn filters_find_what_a_search_of_all_operations_finds() {
    let driver = recorded("racy/torch_unordered.db");
    let entities = driver.state.open.as_ref().unwrap().of(0).overview.entities.clone();
    let is_mul = |detail: &Detail| match detail.operation.action {
        Action::Launch { kernel, .. } => {
            entities.kernel(kernel).is_some_and(|kernel| kernel.name.contains("MulFunctor"))
        }
        _ => false,
    };
    let touches = |detail: &Detail| {
        let of = AllocationId(0);
        let own = matches!(detail.operation.action,
            Action::Allocate { allocation, .. } | Action::Free { allocation, .. } if allocation == of);
        own || detail.operation.accesses.iter().any(|access| access.allocation == of)
    };
    let file = |word: &'static str| {
        move |detail: &Detail| frames(detail, |source| source.file.as_deref(), word)
    };
    let function = |word: &'static str| {
        move |detail: &Detail| frames(detail, |source| source.function.as_deref(), word)
    };
    let cases: [(&str, Vec<OpSeq>); 6] = [
        ("kernel:mulfunctor", counted(&driver, is_mul)),
        ("file:torch_unordered.py", counted(&driver, file("torch_unordered.py"))),
        ("function:consume", counted(&driver, function("consume"))),
        (
            "function:produce, kernel:MulFunctor",
            counted(&driver, |detail| is_mul(detail) && function("produce")(detail)),
        ),
        ("allocation:0", counted(&driver, touches)),
        ("file:no such file", Vec::new()),
    ];
    for (filter, expected) in cases {
        for size in SIZES {
            let mut driver = recorded("racy/torch_unordered.db");
            driver.resize(size).keys(&format!("\\{filter}<enter>"));
            let hits = driver.state.hits.clone().unwrap();
            let found: Vec<OpSeq> = hits.places.iter().map(|(op, _)| op.g).collect();
            assert_eq!(found, expected, "{filter}");
            let last = driver.lines(Theme::default()).pop().unwrap();
            if expected.is_empty() {
                assert!(last.contains("no operation matches"), "{size:?}: {last}");
                continue;
            }
            let word = if expected.len() == 1 { "hit" } else { "hits" };
            let told = format!("filter {filter}: {} {word} in ", expected.len());
            let told = &told[..told.len().min(usize::from(size.0))];
            assert!(last.starts_with(told), "{size:?}: {last}\n{told}");
            // The selected operation is a hit, and n goes through all of them.
            let mut seen = BTreeSet::new();
            for _ in &expected {
                seen.insert(OpSeq(driver.selected()));
                driver.keys("n");
            }
            assert_eq!(seen, expected.iter().copied().collect(), "{filter}");
        }
    }
}

/// Only cells with hits are in front; without colours the others are no letters.
#[test]
fn what_a_filter_leaves_out_stands_back() {
    for size in SIZES {
        for palette in PALETTES {
            let theme = Theme { palette, ..Theme::default() };
            let mut driver = recorded("pytorch.db");
            driver.resize(size).keys("\\kernel:FillFunctor<enter>");
            let hits = driver.state.hits.clone().unwrap();
            assert!(hits.total > 0);
            let grid = driver.state.view().unwrap().grid();
            let columns: BTreeSet<(LaneId, u32)> = hits
                .places
                .iter()
                .map(|(_, spot)| (spot.place.lane, driver.state.column_of(spot).unwrap()))
                .collect();
            let buffer = driver.buffer(theme);
            let (mut front, mut back) = (0, 0);
            for (&lane, cells) in &driver.state.strips.cells {
                let selected = driver.state.selected_point().unwrap().place;
                let selected = grid.column(selected.on(grid.axis).unwrap());
                let row = row_of(&driver, lane.id);
                for cell in cells.iter().filter(|cell| Some(cell.column) != selected) {
                    let letter = column(&driver, &buffer, &row, cell.column)[0].clone();
                    let is_hit = columns.contains(&(lane.id, cell.column));
                    let is_front = match palette {
                        Palette::Plain => letter.symbol() != "·",
                        // Letters that are no block stay without one.
                        _ if cell.group != OpGroup::Kernel => continue,
                        Palette::TrueColour => letter.bg == Color::Rgb(86, 180, 233),
                        Palette::Colours256 => letter.bg == Color::Indexed(74),
                        Palette::Colours16 => letter.bg == Color::Cyan,
                    };
                    assert_eq!(is_front, is_hit, "{size:?} {palette:?}: {cell:?} {letter:?}");
                    front += usize::from(is_hit);
                    back += usize::from(!is_hit);
                }
            }
            assert!(front + back > 3 && back > 0, "{front} {back}");
            // Rows without a hit are gone; the number of hits stands at the others.
            let lanes = driver.state.visible_rows().len();
            assert_eq!(lanes, hits.lanes.len(), "{size:?}");
            if size.1 > 20 {
                assert!(driver.text().contains(&format!("{} of 320 hit", hits.total)));
            }
        }
    }
}

#[test]
fn filters_work_on_traces_of_every_schema() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/store/tests/golden");
    for schema in 1..streamsan_store::SCHEMA_VERSION {
        let name = format!("schema-{schema}.db");
        let reader = Reader::open(&golden.join(&name)).unwrap();
        let mut driver = Driver::over(reader, &name, 120, 40);
        for filter in ["kernel:a", "file:a", "function:a", "allocation:0", "range:a", "stream:s"] {
            driver.keys(&format!("<esc>\\{filter}<enter>"));
            let failed = driver.state.message.as_ref().is_some_and(|message| message.error);
            assert!(!failed, "{name} {filter}: {:?}", driver.state.message);
            driver.keys("<esc>");
        }
        driver.keys("6S");
        assert!(driver.state.message.as_ref().is_none_or(|message| !message.error), "{name}");
        assert!(driver.text().contains("by call site"), "{name}\n{}", driver.text());
    }
}

/// The bytes that live after each call, added up from the allocations one by one.
fn most_at_once(driver: &Driver) -> u64 {
    let lives = driver.reader().allocations(u32::MAX).unwrap();
    let lives: Vec<&Lifetime> = lives
        .iter()
        .filter(|life| life.allocation.kind != MemoryKind::Pageable)
        .filter(|life| life.allocation.range.len() < 1 << 56)
        .collect();
    let begins = lives.iter().map(|life| life.allocated.map_or(0, |g| g.0));
    let alive = |at: u64| {
        let lives = lives.iter().filter(|life| {
            life.allocated.is_none_or(|g| g.0 <= at) && life.freed.is_none_or(|g| g.0 > at)
        });
        lives.map(|life| life.allocation.range.len()).sum::<u64>()
    };
    begins.map(alive).max().unwrap_or(0)
}

#[test]
fn bytes_over_time_are_those_that_live() {
    for name in ["pytorch.db", "jax.db", "cupy.db", "racy/torch_unordered.db"] {
        for size in SIZES {
            let mut driver = recorded(name);
            driver.resize(size).keys("6");
            let most = most_at_once(&driver);
            let (_, footprint) = driver.state.footprint.known.clone().unwrap();
            assert!(most > 0 && footprint.total.iter().max() == Some(&most), "{name}");
            // The same bytes, divided in two ways.
            driver.keys("S");
            let (by, sites) = driver.state.footprint.known.clone().unwrap();
            assert_eq!((by, &sites.total), (FootprintBy::Site, &footprint.total), "{name}");
            let allocations = |footprint: &Footprint| -> u64 {
                footprint.series.iter().map(|series| series.allocations).sum()
            };
            assert!(
                footprint.series.len() == Footprint::SERIES
                    || allocations(&sites) == allocations(&footprint)
            );
            // On the screen: the peak in words, and a bar where all bytes live that reaches the top.
            let text = driver.text();
            assert!(text.contains("by call site") || size.0 < 80, "{name} {size:?}\n{text}");
            let areas = driver.state.areas();
            let chart = areas.pane.y + 2;
            let buffer = driver.buffer(Theme::default());
            let peak = footprint.total.iter().position(|&bytes| bytes == most).unwrap();
            let x = areas.label + u16::try_from(peak).unwrap();
            assert_eq!(buffer[(x, chart)].symbol(), "█", "{name} {size:?}\n{text}");
        }
    }
}

/// Sites are told by the lines of the program; an allocation leads to its uses.
#[test]
fn bytes_tell_who_holds_them() {
    for size in [(120, 40), (200, 60)] {
        let mut driver = recorded("racy/torch_unordered.db");
        driver.resize(size).keys("6S");
        let text = driver.text();
        assert!(
            text.contains("torch_unordered.py:5") || text.contains(".py:5 in <module>"),
            "{text}"
        );
        driver.keys("S<enter>");
        let (_, footprint) = driver.state.footprint.known.clone().unwrap();
        let Holder::Allocation(largest) = &footprint.series[0].holder else {
            panic!("one of many")
        };
        driver.keys("<enter>");
        assert!(driver.text().contains(&format!("allocation {}", largest.id)), "{}", driver.text());
        assert_eq!(driver.state.memory.history.as_ref().unwrap().allocation.id, largest.id);
    }
}
