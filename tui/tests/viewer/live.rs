//! A run that is viewed while it goes on: a real writer writes, the state reads.

use crate::driver::Driver;
use crate::trace;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};
use streamsan_tui::live::{Phase, Standing};
use streamsan_tui::state::Pane;

/// A trace that is being written, and its viewer.
struct Live {
    writer: Option<Writer>,
    operations: Vec<Operation>,
    driver: Driver,
    standing: Standing,
    output: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Live {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.db");
        let mut writer = Writer::create(&path, &trace::meta()).unwrap();
        for entity in trace::entities() {
            writer.item(&TraceItem::Entity(entity)).unwrap();
        }
        writer.commit().unwrap();
        let mut driver = Driver::unopened(Reader::follow(&path).unwrap(), 100, 30);
        driver.state.begin_live();
        driver.settle();
        Self {
            writer: Some(writer),
            operations: Vec::new(),
            driver,
            standing: Standing::default(),
            output: Vec::new(),
            _folder: folder,
        }
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().unwrap()
    }

    /// The program goes on.
    fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for (thread, api, action, accesses) in trace::round() {
                let g = 2 * self.operations.len() as u64 + 1;
                let start_ns = 5_000_000_000 + g * 1_500;
                let operation = Operation {
                    g: OpSeq(g),
                    exit: Some(OpSeq(g + 1)),
                    process: ProcessId(thread / 2),
                    thread: ThreadId(thread),
                    api: Arc::from(api),
                    time: Some(HostTime { start_ns, end_ns: start_ns + 900 }),
                    status: Status::SUCCESS,
                    action,
                    accesses,
                    stack: None,
                };
                self.writer().item(&TraceItem::Operation(operation.clone())).unwrap();
                self.operations.push(operation);
            }
        }
        self.writer().commit().unwrap();
    }

    fn race(&mut self, round: usize, id: u64) {
        let (first, second) = (&self.operations[round * 8 + 4], &self.operations[round * 8 + 5]);
        let finding = trace::finding(first, second, 2, id);
        self.writer().finding(&finding).unwrap();
        self.writer().commit().unwrap();
    }

    /// The viewer looks.
    fn look(&mut self) {
        let output = self.output.clone();
        self.driver.state.look(self.standing.clone(), || output);
        self.driver.settle();
    }

    fn end(&mut self, words: &str) {
        self.writer.take().unwrap().finalize().unwrap();
        self.standing.phase = Phase::Ended(words.to_owned());
        self.look();
    }

    fn view(&self) -> streamsan_tui::state::Viewport {
        *self.driver.state.view().unwrap()
    }
}

#[test]
fn timelines_grow_while_the_program_runs() {
    let mut live = Live::new();
    live.look();
    assert!(live.driver.text().contains("no driver calls yet"), "{}", live.driver.text());
    for rounds in [1, 3, 40] {
        live.rounds(rounds);
        live.look();
        let count = live.operations.len();
        let text = live.driver.text();
        assert!(text.contains(&format!("{count} operations")), "{text}");
        assert!(text.contains("running, following (F)"), "{text}");
        assert!(live.view().shows_end() && live.view().is_inside());
    }
    assert!(live.driver.state.selection.is_some());
}

#[test]
fn window_follows_the_end_until_one_moves_away() {
    let mut live = Live::new();
    live.rounds(100);
    live.look();
    live.driver.keys("www");
    let scale = live.view().scale;
    for _ in 0..3 {
        live.rounds(20);
        live.look();
        assert!(live.view().shows_end());
        assert_eq!(live.view().scale, scale);
    }
    live.driver.keys("A");
    assert!(live.driver.text().contains("no longer following"), "{}", live.driver.text());
    let before = live.view();
    live.rounds(50);
    live.look();
    assert_eq!((live.view().start, live.view().scale), (before.start, before.scale));
    assert!(live.driver.text().contains("running (F follows)"));
    live.driver.keys("F");
    assert!(live.view().shows_end());
    live.rounds(50);
    live.look();
    assert!(live.view().shows_end());
    live.driver.keys("F");
    let before = live.view();
    live.rounds(50);
    live.look();
    assert_eq!(live.view().start, before.start);
}

#[test]
fn selection_marks_and_rows_outlast_what_comes() {
    let mut live = Live::new();
    // Rows that come later stand before and between these: streams 1 and 3 are there at first.
    live.rounds(1);
    live.look();
    live.driver.keys("jjkmap^");
    let selected = live.driver.selected();
    let (lane, rows) =
        (live.driver.state.selected_lane_ref().map(|lane| lane.id), live.driver.state.rows.len());
    let pinned = live.driver.state.filter.pinned.len();
    let g = 2 * live.operations.len() as u64 + 1;
    let other = Operation {
        g: OpSeq(g),
        exit: Some(OpSeq(g + 1)),
        action: Action::HostFunction { stream: StreamId(0) },
        thread: ThreadId(2),
        ..live.operations[0].clone()
    };
    for thread in 0..3 {
        for stream in 0..8 {
            let g = OpSeq(g + u64::from(thread * 16 + stream * 2));
            let action = match stream {
                0 => Action::HostAccess,
                stream => Action::HostFunction { stream: StreamId(stream) },
            };
            let op =
                Operation { g, thread: ThreadId(thread), exit: Some(g), action, ..other.clone() };
            live.writer().item(&TraceItem::Operation(op)).unwrap();
        }
    }
    live.writer().commit().unwrap();
    live.look();
    assert!(live.driver.state.rows.len() > rows, "rows have come");
    assert_eq!(live.driver.selected(), selected);
    assert_eq!(live.driver.state.selected_lane_ref().map(|lane| lane.id), lane);
    assert_eq!(live.driver.state.filter.pinned.len(), pinned);
    assert!(live.driver.state.marks.contains_key(&'a'));
}

#[test]
fn races_appear_as_they_are_found_and_keep_their_place() {
    let mut live = Live::new();
    live.rounds(30);
    live.look();
    assert!(live.driver.text().contains("0 races"));
    live.race(20, 7);
    live.look();
    let text = live.driver.text();
    assert!(text.contains("1 race") && text.contains("1 race so far"), "{text}");
    live.driver.keys("r5");
    assert_eq!(live.driver.state.finding, Some(0));
    let explained = live.driver.state.explanation.clone().unwrap();
    let selected = live.driver.selected();
    // One that comes before it in the list.
    live.race(3, 8);
    live.look();
    assert_eq!(live.driver.state.open.as_ref().unwrap().of(0).findings.len(), 2);
    assert_eq!(live.driver.state.finding, Some(1));
    assert_eq!(live.driver.state.explanation, Some((1, explained.1)));
    assert_eq!(live.driver.selected(), selected);
    // A race is seen however far one is away.
    live.driver.keys("0");
    let marks = live.driver.lines(Default::default())[3].clone();
    assert!(marks.contains('▼'), "{marks}");
}

#[test]
fn end_of_the_program_is_told_and_the_trace_stays() {
    let mut live = Live::new();
    live.rounds(30);
    live.look();
    live.driver.keys("wh");
    let (selected, scale) = (live.driver.selected(), live.view().scale);
    live.race(10, 7);
    live.end("RACY, exit code 66");
    live.look();
    let text = live.driver.text();
    assert!(text.contains("the program has ended: RACY, exit code 66"), "{text}");
    assert_eq!(live.driver.selected(), selected);
    assert_eq!(live.view().scale, scale);
    // Depths are known now.
    let axes = &live.driver.state.open.as_ref().unwrap().of(0).overview.axes;
    assert_eq!(axes.len(), 3);
    live.driver.keys("xx");
    let text = live.driver.text();
    assert!(text.contains("axis: logical order"), "{text}");
    assert!(!text.contains("the program has ended") && text.contains("RACY, exit code 66"));
    // Nothing is asked any more.
    live.driver.state.look(live.standing.clone(), Vec::new);
    assert!(live.driver.state.take_requests().is_empty());
    live.driver.keys("<c-c>");
    assert!(live.driver.state.quit);
}

#[test]
fn interrupt_goes_to_the_program_while_it_runs() {
    let mut live = Live::new();
    live.rounds(1);
    live.look();
    live.driver.keys("<c-c>");
    assert!(!live.driver.state.quit);
    assert_eq!(live.driver.state.take_effects(), [streamsan_tui::state::Effect::Interrupt]);
    live.driver.keys("q");
    assert!(live.driver.state.quit);
}

#[test]
fn output_of_the_program_has_a_pane_that_shows_its_end() {
    let mut live = Live::new();
    live.rounds(1);
    let print = |live: &mut Live, lines: std::ops::Range<u32>| {
        live.output.extend(lines.map(|n| format!("line {n}")));
        live.standing.printed = live.output.len() as u64;
        live.look();
    };
    print(&mut live, 0..50);
    live.driver.keys("7");
    assert_eq!(live.driver.state.pane, Pane::Output);
    assert!(live.driver.text().contains("line 49"));
    print(&mut live, 50..60);
    assert!(live.driver.text().contains("line 59"));
    // Who has scrolled up stays there.
    live.driver.keys("<enter>kkkkk");
    assert!(!live.driver.text().contains("line 59"), "{}", live.driver.text());
    assert!(live.driver.text().contains("line 54"), "{}", live.driver.text());
    print(&mut live, 60..70);
    assert!(live.driver.text().contains("line 54"), "{}", live.driver.text());
    live.driver.keys("G");
    print(&mut live, 70..71);
    assert!(live.driver.text().contains("line 70"));
    live.driver.keys("<tab>");
    assert_eq!(live.driver.state.pane, Pane::Details);
    live.driver.keys("<backtab>");
    assert_eq!(live.driver.state.pane, Pane::Output);
}

#[test]
fn trace_of_the_past_has_no_output_and_follows_nothing() {
    let mut driver = Driver::new(Default::default(), 100, 30);
    driver.keys("7");
    assert_eq!(driver.state.pane, Pane::Details);
    assert!(!driver.text().contains("7 output"));
    driver.keys("F");
    assert!(driver.text().contains("the trace is finished"), "{}", driver.text());
}

/// Memory and statistics are brought up to date, with the selected allocation staying so.
#[test]
fn panes_keep_up() {
    let mut live = Live::new();
    live.rounds(1);
    live.look();
    live.driver.keys("4");
    assert!(live.driver.text().contains("cuLaunchKernel"), "{}", live.driver.text());
    assert!(live.driver.text().contains("The program runs"));
    let calls = |live: &Live| {
        let calls = live.driver.state.calls.as_ref().unwrap();
        calls.1.iter().find(|c| &*c.api == "cuLaunchKernel").unwrap().calls
    };
    assert_eq!(calls(&live), 2);
    live.rounds(4);
    live.look();
    assert_eq!(calls(&live), 10);
    live.driver.keys("3<enter>j");
    let id = |live: &Live| {
        let memory = &live.driver.state.memory;
        memory.allocations.as_ref().unwrap()[memory.cursor].allocation.id
    };
    let selected = id(&live);
    let large = Allocation {
        id: AllocationId(9),
        process: ProcessId(0),
        context: None,
        kind: MemoryKind::Device,
        range: ByteRange::with_len(0x1_0000, 1 << 40),
        api: "cuMemAlloc_v2".to_owned(),
        backing: None,
        name: None,
        stack: None,
    };
    live.writer().item(&TraceItem::Entity(Entity::Allocation(large))).unwrap();
    for _ in 0..30 {
        live.rounds(1);
        live.look();
    }
    assert_eq!(live.driver.state.memory.allocations.as_ref().unwrap().len(), 4);
    assert_eq!(id(&live), selected);
}
