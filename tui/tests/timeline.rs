//! The viewer over a small trace in memory: what is drawn, and that no key leaves the trace.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use streamsan_model::*;
use streamsan_tui::{Command, Palette, State, TABLE, render};

/// A trace held in memory.
struct Memory {
    operations: Vec<Operation>,
    findings: Vec<Finding>,
}

impl TraceQuery for Memory {
    fn span(&self) -> Result<Option<OpWindow>, QueryError> {
        let Some((first, last)) = self.operations.first().zip(self.operations.last()) else {
            return Ok(None);
        };
        Ok(Some(OpWindow { first: first.g, end: OpSeq(last.g.0 + 1) }))
    }

    fn lanes(&self) -> Result<Vec<Lane>, QueryError> {
        let mut ids: Vec<_> = self.operations.iter().map(State::lane_of).collect();
        ids.sort();
        ids.dedup();
        let count = |id| self.operations.iter().filter(|o| State::lane_of(o) == id).count() as u64;
        Ok(ids.into_iter().map(|id| Lane { id, stream: None, operations: count(id) }).collect())
    }

    fn buckets(&self, window: OpWindow, columns: u32) -> Result<Vec<Bucket>, QueryError> {
        let length = window.end.0 - window.first.0;
        let shown = self.operations.iter().filter(|o| o.g >= window.first && o.g < window.end);
        Ok(shown
            .map(|o| Bucket {
                lane: State::lane_of(o),
                column: ((o.g.0 - window.first.0) * u64::from(columns) / length) as u32,
                operations: 1,
                first: o.g,
                group: o.action.group(),
                findings: self
                    .findings
                    .iter()
                    .filter(|f| f.first.op == o.g || f.second.op == o.g)
                    .count() as u64,
            })
            .collect())
    }

    fn operation(&self, g: OpSeq) -> Result<Option<Operation>, QueryError> {
        Ok(self.operations.iter().find(|o| o.g == g).cloned())
    }

    fn neighbour(
        &self,
        lane: LaneId,
        g: OpSeq,
        forward: bool,
    ) -> Result<Option<OpSeq>, QueryError> {
        let row = self.operations.iter().filter(|o| State::lane_of(o) == lane).map(|o| o.g);
        Ok(if forward { row.filter(|&x| x > g).min() } else { row.filter(|&x| x < g).max() })
    }

    fn findings(&self) -> Result<Vec<Finding>, QueryError> {
        Ok(self.findings.clone())
    }
}

/// Two streams that write one buffer by turns, 40 operations, and one finding between #11 and #14.
fn trace() -> Memory {
    let write = Access {
        allocation: AllocationId(0),
        extent: Extent::Range(ByteRange::new(0x1000, 0x2000)),
        mode: Mode::Write,
        basis: Basis::Exact,
    };
    let operation = |g: u64| Operation {
        g: OpSeq(g),
        exit: Some(OpSeq(g)),
        process: ProcessId(0),
        thread: ThreadId(0),
        api: "cuMemsetD8Async".into(),
        time: Some(HostTime { start_ns: g * 10, end_ns: g * 10 + 7 }),
        status: Status::SUCCESS,
        action: Action::Memset {
            stream: StreamId((g % 2) as u32),
            synchronous: false,
            destination: MemoryKind::Device,
            sync_memops: false,
        },
        accesses: vec![write.clone()],
    };
    let side = |op: u64| FindingAccess {
        op: OpSeq(op),
        stream: Some(StreamId((op % 2) as u32)),
        api: "cuMemsetD8Async".into(),
        kernel: None,
        access: write.clone(),
    };
    let finding = Finding {
        fingerprint: Fingerprint::of(["memset"]),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind: ConflictKind::WriteAfterWrite,
        confidence: Confidence::Certain,
        allocation: AllocationId(0),
        overlap: ByteRange::new(0x1000, 0x2000),
        first: side(11),
        second: side(14),
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    };
    Memory { operations: (1..=40).map(operation).collect(), findings: vec![finding] }
}

fn screen(state: &mut State, query: &Memory, width: u16, height: u16) -> Vec<String> {
    state.load(query, u32::from(width.saturating_sub(22))).expect("loads");
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    render(state, Palette::Plain, area, &mut buffer);
    (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>())
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn opens_on_the_whole_trace_with_the_finding_marked_in_both_rows() {
    let query = trace();
    let mut state = State::open(&query).unwrap();
    let lines = screen(&mut state, &query, 62, 16);
    // 40 operations in 40 columns: #11 in column 10, #14 in column 13.
    assert_eq!(lines[1], format!("{:<32}!  !", "findings"));
    assert!(lines[2].starts_with("stream 0"), "{lines:#?}");
    assert!(lines[3].starts_with("stream 1"), "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("[missing-wait]")), "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("#14 cuMemsetD8Async")), "{lines:#?}");
}

#[test]
fn a_finding_stays_marked_however_narrow_the_screen() {
    let query = trace();
    let mut state = State::open(&query).unwrap();
    for width in 23..80 {
        let lines = screen(&mut state, &query, width, 16);
        assert!(lines[1].contains('!'), "width {width}");
    }
}

#[test]
fn jumping_to_a_finding_frames_both_sides() {
    let query = trace();
    let mut state = State::open(&query).unwrap();
    state.apply(Command::NextFinding, &query).unwrap();
    assert!(state.window.first <= OpSeq(11) && OpSeq(14) < state.window.end);
    assert_eq!(state.selection.as_ref().map(|o| o.g), Some(OpSeq(14)));
    state.apply(Command::OtherSide, &query).unwrap();
    assert_eq!(state.selection.as_ref().map(|o| o.g), Some(OpSeq(11)));
}

#[test]
fn stepping_stays_in_the_row() {
    let query = trace();
    let mut state = State::open(&query).unwrap();
    state.apply(Command::FirstOperation, &query).unwrap();
    assert_eq!(state.selection.as_ref().map(|o| o.g), Some(OpSeq(2)));
    state.apply(Command::NextOperation, &query).unwrap();
    assert_eq!(state.selection.as_ref().map(|o| o.g), Some(OpSeq(4)));
    state.apply(Command::RowDown, &query).unwrap();
    assert_eq!(state.selection.as_ref().map(|o| o.g), Some(OpSeq(5)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_sequence_of_keys_leaves_the_trace(
        keys in prop::collection::vec(0..TABLE.len(), 0..60),
        width in 0u16..100,
        height in 0u16..40,
        empty in any::<bool>(),
    ) {
        let query = if empty { Memory { operations: vec![], findings: vec![] } } else { trace() };
        let mut state = State::open(&query).unwrap();
        for key in keys {
            state.apply(TABLE[key].command, &query).unwrap();
            prop_assert!(state.window.first >= state.span.first);
            prop_assert!(state.window.end <= state.span.end);
            prop_assert!(state.window.first < state.window.end);
        }
        screen(&mut state, &query, width, height);
    }
}
