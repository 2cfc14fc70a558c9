//! Screens show the contents of the trace: rows that stand twice, traces of other schemas, memory
//! without an end, names of any kind, races that another analysis finds again.

use crate::driver::Driver;
use crate::trace::{self, Shape};
use std::path::Path;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};
use streamsan_tui::Theme;
use streamsan_tui::state::{Effect, Pane};

/// The letters of the rows of this name.
fn rows(driver: &Driver, name: &str) -> Vec<String> {
    let areas = driver.state.areas();
    let lines = driver.lines(Theme::default());
    let line = |line: u16| lines[usize::from(areas.rows.y + line)].clone();
    let shown = driver.state.visible_rows();
    let named = shown.iter().filter(|row| {
        let first = row.gap().map_or(row.top, |gap| gap + 1);
        line(first).get(1..).is_some_and(|line| line.starts_with(name))
    });
    let label = usize::from(areas.label);
    named.map(|row| line(row.letters()).chars().skip(label).collect()).collect()
}

#[test]
fn a_pinned_row_stands_twice_with_all_of_its_operations() {
    let mut driver = Driver::new(Shape::default(), 100, 30);
    let before = rows(&driver, "stream \"decode\"");
    assert_eq!(before.len(), 1);
    assert!(before[0].contains('K'), "{before:?}");
    driver.keys("gg");
    for _ in 0..20 {
        if driver.state.selected_lane_ref().map(|lane| lane.id) == Some(LaneId::Stream(StreamId(0)))
        {
            break;
        }
        driver.keys("j");
    }
    assert_eq!(
        driver.state.selected_lane_ref().map(|lane| lane.id),
        Some(LaneId::Stream(StreamId(0)))
    );
    driver.keys("p");
    let pinned = rows(&driver, "stream \"decode\"");
    assert_eq!(pinned, [before[0].clone(), before[0].clone()], "{}", driver.text());
    // In another window, which is read anew.
    driver.keys("ww");
    let pinned = rows(&driver, "stream \"decode\"");
    assert!(pinned.len() == 2 && pinned[0] == pinned[1], "{}", driver.text());
    assert!(pinned[0].contains(['k', 'K']), "{}", driver.text());
    driver.keys("p");
    assert_eq!(rows(&driver, "stream \"decode\"").len(), 1);
}

#[test]
fn memory_of_a_trace_of_an_earlier_schema_is_shown() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/store/tests/golden");
    for schema in 1..streamsan_store::SCHEMA_VERSION {
        let name = format!("schema-{schema}.db");
        let reader = Reader::open(&golden.join(&name)).unwrap();
        let mut driver = Driver::over(reader, &name, 120, 40);
        driver.keys("3<enter>");
        let count = driver.state.memory.allocations.as_ref().unwrap().len();
        assert!(count > 0, "{name}");
        let mut uses = 0;
        for _ in 0..count {
            driver.keys("<enter>");
            let text = driver.text();
            assert!(text.contains("Enter goes to one, Esc lists"), "{name}:\n{text}");
            assert!(!text.contains("no such table"), "{name}:\n{text}");
            uses += driver.state.memory.history.as_ref().unwrap().uses.len();
            driver.keys("<esc>j");
        }
        assert!(uses > 0, "{name}");
    }
}

/// Writes the trace of one round, with these entities beside its own.
fn write(folder: &Path, change: impl Fn(TraceItem) -> TraceItem, more: Vec<Entity>) -> Reader {
    let path = folder.join("trace.db");
    let mut writer = Writer::create(&path, &trace::meta()).unwrap();
    for entity in trace::entities().into_iter().chain(more) {
        writer.item(&change(TraceItem::Entity(entity))).unwrap();
    }
    let mut operations = Vec::new();
    for (place, (thread, api, action, accesses)) in (1..).zip(trace::round()) {
        let operation = change(TraceItem::Operation(Operation {
            g: OpSeq(place),
            exit: Some(OpSeq(place)),
            process: ProcessId(thread / 2),
            thread: ThreadId(thread),
            api: Arc::from(api),
            time: None,
            status: Status::SUCCESS,
            action,
            accesses,
            stack: None,
        }));
        writer.item(&operation).unwrap();
        if let TraceItem::Operation(operation) = operation {
            operations.push(operation);
        }
    }
    let mut finding = trace::finding(&operations[4], &operations[5], 2, 7);
    if let TraceItem::Entity(Entity::Kernel(kernel)) =
        change(TraceItem::Entity(Entity::Kernel(Kernel {
            id: KernelId(0),
            name: "scale".to_owned(),
            params: vec![],
        })))
    {
        finding.first.kernel = Some(kernel.name);
    }
    writer.finding(&finding).unwrap();
    writer.finalize().unwrap();
    Reader::open(&path).unwrap()
}

#[test]
fn memory_without_an_end_has_no_size() {
    let folder = tempfile::tempdir().unwrap();
    let host = |kind, start, len| Allocation {
        id: AllocationId(if kind == MemoryKind::Pageable { 8 } else { 9 }),
        process: ProcessId(0),
        context: None,
        kind,
        range: ByteRange::with_len(start, len),
        api: String::new(),
        backing: None,
        name: None,
        stack: None,
    };
    let more = vec![
        Entity::Allocation(host(MemoryKind::Pageable, 0, u64::MAX)),
        Entity::Allocation(host(MemoryKind::Pinned, 0xfedc_ba98_7654_3210, 0x100)),
    ];
    let reader = write(folder.path(), |item| item, more);
    let mut driver = Driver::over(reader, "trace.db", 120, 40);
    driver.keys("3<enter>");
    let text = driver.text();
    assert!(!text.contains("EiB"), "{text}");
    assert!(text.contains(" unbounded 0x0000000000000000 pageable host memory"), "{text}");
    // All addresses have the same width, whatever their digits.
    let lines = driver.lines(Theme::default());
    let pane = usize::from(driver.state.areas().pane.y);
    let columns: Vec<usize> = lines[pane..]
        .iter()
        .filter_map(|line| {
            let at = line.find(" 0x")?;
            let address = line[at + 1..].split(' ').next()?;
            assert_eq!(address.len(), 18, "{line}");
            Some(line[..at].chars().count())
        })
        .collect();
    assert_eq!(columns.len(), 5, "{text}");
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    driver.keys("G<enter>");
    let text = driver.text();
    assert!(text.contains("allocation 8: pageable host memory without a known end"), "{text}");
    assert!(!text.contains("EiB"), "{text}");
}

#[test]
fn no_name_moves_the_cursor_or_hides() {
    let hostile = |name: &str| {
        format!(
            "{name}\u{1b}[2J\u{7}\0\n\r\t\u{9b}1m\u{202e}\u{2066}\u{200b}\u{2028}\u{85}::error::x"
        )
    };
    let change = |item| match item {
        TraceItem::Operation(operation) => {
            TraceItem::Operation(Operation { api: hostile(&operation.api).into(), ..operation })
        }
        TraceItem::Entity(entity) => TraceItem::Entity(match entity {
            Entity::Process(process) => Entity::Process(Process {
                executable: hostile("exe"),
                arguments: vec![hostile("one"), hostile("two")],
                ..process
            }),
            Entity::Stream(stream) => {
                Entity::Stream(Stream { name: Some(hostile("stream")), ..stream })
            }
            Entity::Event(event) => Entity::Event(Event { name: Some(hostile("event")), ..event }),
            Entity::Allocation(allocation) => Entity::Allocation(Allocation {
                api: hostile("api"),
                name: Some(hostile("allocation")),
                ..allocation
            }),
            Entity::Kernel(kernel) => Entity::Kernel(Kernel { name: hostile("kernel"), ..kernel }),
            other => other,
        }),
        other => other,
    };
    let folder = tempfile::tempdir().unwrap();
    let reader = write(folder.path(), change, Vec::new());
    let mut driver = Driver::over(reader, &hostile("title"), 200, 50);
    let mut seen = String::new();
    for keys in [
        "gg",
        "r",
        "1",
        "2<enter>",
        "<esc>3<enter>",
        "<enter>",
        "<esc><esc>4",
        "5",
        "r5",
        "1wwwhh",
        "#",
        "/EventRecord<enter>",
    ] {
        driver.keys(keys);
        let buffer = driver.buffer(Theme::default());
        for cell in buffer.content() {
            let harmful = |c: char| {
                c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            assert!(!cell.symbol().chars().any(harmful), "{:?} after {keys}", cell.symbol());
        }
        seen += &driver.text();
    }
    for name in ["title", "stream", "allocation", "kernel", "api", "event", "cuLaunchKernel"] {
        assert!(seen.contains(&format!("{name}\\x1b[2J\\x07")), "{name}:\n{seen}");
    }
}

/// At the end of a run names of functions are known, so that ids change, and the occurrence that is
/// kept of a mistake may be another one.
#[test]
fn a_selected_race_stays_when_it_is_found_again() {
    for way in ["the same", "another id", "other memory", "another occurrence", "gone"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.db");
        let mut writer = Writer::create(&path, &trace::meta()).unwrap();
        trace::entities().into_iter().for_each(|entity| {
            writer.item(&TraceItem::Entity(entity)).unwrap();
        });
        let mut operations: Vec<Operation> = Vec::new();
        for _ in 0..6 {
            for (thread, api, action, accesses) in trace::round() {
                let g = OpSeq(operations.len() as u64 + 1);
                let operation = Operation {
                    g,
                    exit: Some(g),
                    process: ProcessId(thread / 2),
                    thread: ThreadId(thread),
                    api: Arc::from(api),
                    time: None,
                    status: Status::SUCCESS,
                    action,
                    accesses,
                    stack: None,
                };
                writer.item(&TraceItem::Operation(operation.clone())).unwrap();
                operations.push(operation);
            }
        }
        let race = |round: usize, allocation, id| {
            trace::finding(&operations[round * 8 + 4], &operations[round * 8 + 5], allocation, id)
        };
        writer.finding(&race(1, 2, 7)).unwrap();
        writer.finding(&race(3, 2, 8)).unwrap();
        writer.commit().unwrap();
        let mut driver = Driver::unopened(Reader::follow(&path).unwrap(), 100, 30);
        driver.state.begin_live();
        driver.settle();
        driver.keys("rr5");
        assert_eq!(driver.state.current_finding().map(|f| f.fingerprint), Some(Fingerprint(8)));
        assert_eq!(driver.state.pane, Pane::Explanation);
        let (again, expected) = match way {
            "the same" => (race(3, 2, 8), Some(8)),
            "another id" => (race(3, 2, 99), Some(99)),
            "other memory" => (race(3, 1, 98), Some(98)),
            "another occurrence" => (race(4, 2, 8), Some(8)),
            _ => (race(4, 2, 50), None),
        };
        // The analysis of the whole puts another one before it.
        let all = [race(0, 2, 30), again.clone(), race(5, 2, 31)];
        writer.replace_analysis(&[], &all).unwrap();
        writer.finalize().unwrap();
        driver.state.look(
            streamsan_tui::live::Standing {
                phase: streamsan_tui::live::Phase::Ended("RACY, exit code 66".to_owned()),
                ..Default::default()
            },
            Vec::new,
        );
        driver.settle();
        let current = driver.state.current_finding().map(|finding| finding.fingerprint);
        assert_eq!(current, expected.map(Fingerprint), "{way}");
        let text = driver.text();
        match expected {
            Some(_) => {
                let told = format!("#{} then #{}", again.first.op, again.second.op);
                assert!(text.contains(&told), "{way}:\n{text}");
            }
            None => assert!(text.contains("the race that was selected is none any more"), "{text}"),
        }
    }
}

/// The innermost line of the program, not one of the library that it calls.
#[test]
fn the_editor_opens_at_the_programs_own_line() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/recorded/racy/torch_unordered.db");
    let mut driver = Driver::over(Reader::open(&path).unwrap(), "torch.db", 120, 40);
    // As fast as hands are: the operation is still being selected.
    for key in crate::driver::parse("re") {
        driver.state.key(key);
    }
    assert!(driver.state.take_effects().is_empty());
    driver.settle();
    let effects = driver.state.take_effects();
    let [Effect::Edit(place)] = &effects[..] else {
        panic!("an editor");
    };
    assert!(place.file.ends_with("tests/gpu/programs/torch_unordered.py"), "{place:?}");
    driver.resize((120, 200));
    assert!(driver.text().contains(&format!("torch_unordered.py:{} in consume", place.line)));
    assert!(driver.text().contains("\n  in aten::add_Tensor"), "the operator of PyTorch");
}
