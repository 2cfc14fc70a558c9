//! Streams are called as their users call them, and no two of them alike.

use crate::fixture;
use streamsan_model::{
    Entities, Entity, Finding, Frame, FrameId, FramePlace, OpSeq, SourceFrame, Stack, StackId,
    Stream, StreamId, StreamKind, Threshold,
};
use streamsan_report::{Input, Report, TextOptions};

const HANDLE: u64 = 0x55d0_c3a0;

/// A line of a script, and the stack of a call there.
fn declare_line(entities: &mut Entities, id: u32, line: u32) {
    let source = SourceFrame {
        function: Some("main".into()),
        file: Some("/proj/train.py".into()),
        line: Some(line),
        inlined: false,
    };
    let frame = Frame { id: FrameId(id), place: FramePlace::Python, source: vec![source] };
    entities.declare(Entity::Frame(frame.into()));
    let stack = Stack { id: StackId(id), frames: vec![FrameId(id)], truncated: false };
    entities.declare(Entity::Stack(stack.into()));
}

/// A stream of this handle and name beside those of the fixture.
fn declare_stream(entities: &mut Entities, id: u32, handle: u64, name: Option<&str>) {
    let like = entities.stream(StreamId(7)).expect("declared").clone();
    let (id, name) = (StreamId(id), name.map(str::to_owned));
    entities.declare(Entity::Stream(Stream { id, handle, name, ..like }));
}

/// The lines of the two accesses, where they ran in these streams.
fn accesses(entities: &Entities, first: u32, second: u32) -> [String; 2] {
    let mut finding: Finding = fixture::stale_wait(0);
    finding.first.stream = Some(StreamId(first));
    finding.second.stream = Some(StreamId(second));
    let input = Input {
        findings: [finding].into_iter().collect(),
        entities,
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: None,
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |_| None).relative_to(Some("/proj".to_owned()));
    let unbroken = TextOptions { columns: Some(usize::MAX), ..TextOptions::default() };
    let text = report.render_text(&unbroken);
    ["  (1) ", "  (2) "].map(|number| {
        let line = text.lines().find(|line| line.starts_with(number));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    })
}

#[track_caller]
fn assert_called(entities: &Entities, [first, second]: [u32; 2], expected: [&str; 2]) {
    let lines = accesses(entities, first, second);
    for (line, name) in lines.iter().zip(expected) {
        assert!(line.ends_with(&format!("  {name}")), "{name}: {line}");
    }
}

#[test]
fn streams_without_a_name_are_told_by_their_creation() {
    let mut entities = fixture::entities();
    declare_line(&mut entities, 0, 12);
    declare_line(&mut entities, 1, 20);
    for (id, line) in [(20, 0), (21, 0), (22, 1)] {
        declare_stream(&mut entities, id, HANDLE + 0x10 * u64::from(id - 20), None);
        entities.note_creation(StreamId(id), OpSeq(u64::from(id)), Some(StackId(line)));
    }
    assert_called(
        &entities,
        [20, 21],
        [
            "stream 0x55d0c3a0, the 1st created at train.py:12",
            "stream 0x55d0c3b0, the 2nd created at train.py:12",
        ],
    );
    let alone = "stream 0x55d0c3c0, created at train.py:20";
    assert_called(&entities, [22, 7], [alone, "stream \"decode\""]);
    // Whoever reads no operations knows no creation.
    declare_stream(&mut entities, 23, 0xabc, None);
    assert_called(&entities, [23, 7], ["stream 0xabc", "stream \"decode\""]);
}

#[test]
fn no_two_streams_have_one_name() {
    let mut entities = fixture::entities();
    // A handle and a name that are used again.
    for (id, name) in [(20, None), (21, None), (22, Some("copy")), (23, Some("copy"))] {
        declare_stream(&mut entities, id, HANDLE + u64::from(id / 23), name);
    }
    entities.note_creation(StreamId(20), OpSeq(1234), None);
    assert_called(
        &entities,
        [20, 21],
        ["stream 0x55d0c3a0 (created at #1,234)", "stream 0x55d0c3a0 (the trace's number 21)"],
    );
    let named = ["stream \"copy\" (0x55d0c3a0)", "stream \"copy\" (0x55d0c3a1)"];
    assert_called(&entities, [22, 23], named);
}

#[test]
fn default_streams_are_told_apart_where_there_are_several() {
    let mut entities = fixture::entities();
    assert_called(&entities, [0, 4], ["default stream", "per-thread default stream"]);
    let other = entities.stream(StreamId(5)).unwrap().clone();
    for (id, kind) in [(20, StreamKind::Legacy), (21, StreamKind::PerThread)] {
        entities.declare(Entity::Stream(Stream { id: StreamId(id), kind, ..other.clone() }));
    }
    assert_called(&entities, [0, 20], ["default stream of device 0", "default stream of device 1"]);
    assert_called(
        &entities,
        [4, 21],
        [
            "per-thread default stream of context 0 (device 0)",
            "per-thread default stream of context 1 (device 1)",
        ],
    );
}

/// Streams that differ in one property only.
#[test]
fn each_stream_has_a_name_of_its_own() {
    let mut entities = fixture::entities();
    let like = entities.stream(StreamId(7)).unwrap().clone();
    let mut ids = vec![];
    for kind in StreamKind::ALL {
        for name in [None, Some("copy".to_owned())] {
            for context in [0, 1].map(streamsan_model::ContextId) {
                for thread in [1, 2].map(streamsan_model::ThreadId) {
                    for _ in 0..2 {
                        let (id, name) = (StreamId(20 + ids.len() as u32), name.clone());
                        let thread = Some(thread).filter(|_| kind == StreamKind::PerThread);
                        let stream = Stream { id, kind, name, context, thread, ..like.clone() };
                        entities.declare(Entity::Stream(stream));
                        ids.push(id.0);
                    }
                }
            }
        }
    }
    let name = |id: u32| accesses(&entities, id, 3)[0].rsplit_once("  ").unwrap().1.to_owned();
    let names: std::collections::BTreeSet<String> = ids.iter().map(|&id| name(id)).collect();
    assert_eq!(names.len(), ids.len(), "{names:#?}");
}
