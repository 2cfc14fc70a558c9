//! Streams and calls stand on the screen by the names that the report has for them, and races that
//! are known in libraries count for nothing, as there.

use crate::corpus::{open, open_items};
use crate::driver::Driver;
use crate::picture::row_of;
use std::fs;
use std::path::Path;
use streamsan_model::{Entity, LaneId, TraceItem};
use streamsan_report::KnownUpstream;
use streamsan_testing::corpus::traces;
use streamsan_tui::Theme;

/// The lines of a row's label, as far as there are any.
fn label(driver: &Driver, lane: LaneId) -> Vec<String> {
    let row = row_of(driver, lane);
    let areas = driver.state.areas();
    let lines = driver.lines(Theme::default());
    let first = row.gap().map_or(row.top, |gap| gap + 1);
    let part = |line: u16| -> String {
        let line = &lines[usize::from(areas.rows.y + line)];
        line.chars().take(usize::from(areas.label)).skip(1).collect::<String>().trim().to_owned()
    };
    (first..row.top + row.height).map(part).collect()
}

/// The report may add to the name where the stream was created, or its device.
#[test]
fn rows_of_a_race_are_named_as_in_its_explanation() {
    let mut sides = 0;
    for path in traces("fail").iter().step_by(4) {
        let folder = tempfile::tempdir().unwrap();
        let (reader, explain) = open(&fs::read_to_string(path).unwrap(), folder.path());
        let mut driver = Driver::unopened(reader, 200, 60);
        driver.sources[0].explain = explain;
        driver.settle();
        let findings = driver.state.open.as_ref().unwrap().of(0).findings.clone();
        for finding in &findings {
            driver.next_finding();
            let words = (driver.sources[0].explain)(finding);
            let current = driver.state.current_finding().unwrap().clone();
            assert_eq!(&current, finding, "{}", path.display());
            for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
                let Some(stream) = side.stream else { continue };
                let line = words.lines().find(|line| line.trim_start().starts_with(number));
                let line = line.unwrap_or_else(|| panic!("{number}: {words}"));
                // A node of a graph runs in the stream that launches the graph.
                let place = driver.reader().place(side.op).unwrap().unwrap();
                if place.lane != LaneId::Stream(stream) {
                    continue;
                }
                let names = label(&driver, place.lane);
                let (whole, cut) = match names[0].strip_suffix('…') {
                    Some(begin) => (begin, true),
                    None => (names[0].as_str(), false),
                };
                let at = line.rfind(&format!(" {whole}"));
                let at = at.unwrap_or_else(|| panic!("{}: {names:?}: {words}", path.display()));
                let rest = &line[at + 1 + whole.len()..];
                assert!(cut || rest.is_empty() || rest.starts_with(", "), "{names:?}: {words}");
                sides += 1;
            }
        }
    }
    assert!(sides > 100, "{sides}");
}

const TRACE: &str = "\
stack make1 /v/libcudart.so.13+64:cudaStreamCreate py:main@/proj/train.py:12
stack make2 /v/libcudart.so.13+64:cudaStreamCreate py:main@/proj/train.py:20
stack alloc /v/libcudart.so.13+64:cudaMalloc py:main@/proj/train.py:2
stack copy /v/libcudart.so.13+96:cudaMemcpyAsync py:main@/proj/train.py:31
stack add /v/libcudart.so.13+64:cudaLaunchKernel py:main@/proj/train.py:30
alloc D 1024 stack=alloc
alloc_pinned H 1024
stream a nonblocking stack=make1
stream b stack=make1
stream c nonblocking stack=make2
launch a add w:D[0..1024] stack=add
launch c idle w:X stack=add
copy b dst:H src:D[0..1024] stack=copy
";

/// What a program on the CUDA runtime wrote, and which of its streams a row is.
#[test]
fn streams_without_a_name_are_told_by_their_creation_and_calls_by_the_program() {
    let mut items = streamsan_text::parse(TRACE).unwrap().items;
    for item in &mut items {
        if let TraceItem::Entity(Entity::Stream(stream)) = item {
            stream.name = None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (reader, explain) = open_items(items, folder.path());
    let mut driver = Driver::unopened(reader, 200, 60);
    driver.sources[0].explain = explain;
    driver.settle();
    driver.keys("r");
    let finding = driver.state.current_finding().unwrap().clone();
    let words = (driver.sources[0].explain)(&finding);
    for (side, kind, created) in [
        (&finding.first, "non-blocking", "the 1st created at train.py:12"),
        (&finding.second, "blocking", "the 2nd created at train.py:12"),
    ] {
        let names = label(&driver, LaneId::Stream(side.stream.unwrap()));
        assert_eq!(names[1..3], [created, kind], "{names:?}");
        let place = created.replace("train.py", "/proj/train.py");
        assert!(words.contains(&format!("{}, {place}", names[0])), "{names:?}: {words}");
    }
    assert!(driver.text().contains("created at train.py:20"), "{}", driver.text());
    let copy = format!("#{} cudaMemcpyAsync in stream 0x", finding.second.op);
    // The name that is shown can be searched for.
    driver.keys("/cudaStreamCreate<enter>N");
    let found = driver.state.selection.as_ref().unwrap();
    assert_eq!(&*found.operation.api, "cuStreamCreate");
    driver.keys("n/cudamemcpy<enter>");
    // The selected operation, the list of races, the last line.
    driver.keys("1");
    assert!(driver.text().contains(&copy), "{}", driver.text());
    assert!(driver.text().contains("made by cudaMalloc"), "{}", driver.text());
    driver.keys("2");
    assert!(driver.text().contains(&copy), "{}", driver.text());
    assert!(driver.text().contains(": add then cudaMemcpyAsync"), "{}", driver.text());
    // Memory and its uses.
    driver.keys("3");
    assert!(driver.text().contains(" device memory cudaMalloc"), "{}", driver.text());
    driver.keys("<enter><enter>");
    assert!(driver.text().contains("cudaMemcpyAsync  stream 0x"), "{}", driver.text());
    // Blocks of lone operations.
    assert!(driver.text().contains("dcudaMemcpyAsync"), "{}", driver.text());
    assert!(!driver.text().contains("cuMemcpy"), "{}", driver.text());
}

/// The trace has a race of cuFFT's own and one of the program's.
#[test]
fn races_known_in_libraries_count_for_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../src/report/tests/stacks/libraries.trace");
    let whole = fs::read_to_string(path).unwrap();
    let is_library = |line: &&str| !line.contains("stack=own");
    let of_libraries: Vec<&str> = whole.lines().filter(is_library).collect();
    let folder = tempfile::tempdir().unwrap();
    for (text, counted, known) in [
        (of_libraries.join("\n") + "\n", " 0 races, 1 known upstream", true),
        (whole.clone(), " 1 race, 1 known upstream", true),
        (whole, " 2 races", false),
    ] {
        let (reader, explain) = open(&text, folder.path());
        let mut driver = Driver::unopened(reader, 120, 40);
        driver.sources[0].explain = explain;
        let list = |finding: &_, entities: &_| {
            KnownUpstream::shipped().entry_of(finding, entities).is_some()
        };
        driver.state.is_known_upstream = known.then_some(list);
        driver.settle();
        driver.keys("2");
        let text = driver.text();
        assert!(text.contains(counted), "{text}");
        assert_eq!(text.contains(" known    likely "), known, "{text}");
        // Which of the two comes first is the trace's matter.
        let mut told = String::new();
        for _ in 0..2 {
            told += driver.keys("r").text().lines().last().unwrap_or_default();
        }
        assert_eq!(told.contains(" known upstream RAW "), known, "{told}");
    }
}
