//! The written messages read back.

use super::proto::{EventType, Trace};
use super::{PerfettoWriter, race_flow};
use crate::{Input, Report};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::*;

fn entities() -> Entities {
    let mut entities = Entities::default();
    entities.declare(Entity::Process(Process {
        id: ProcessId(0),
        pid: 100,
        parent_pid: 1,
        executable: "/opt/serve".to_owned(),
        arguments: vec![],
    }));
    entities.declare(Entity::Thread(Thread { id: ThreadId(0), process: ProcessId(0), tid: 101 }));
    entities.declare(Entity::Context(Context {
        id: ContextId(0),
        process: ProcessId(0),
        device: DeviceId(0),
        primary: true,
        parent: None,
        concurrent_managed_access: true,
        handle: 1,
    }));
    for id in 1..=2 {
        entities.declare(Entity::Stream(Stream {
            id: StreamId(id),
            context: ContextId(0),
            kind: StreamKind::NonBlocking,
            thread: None,
            priority: 0,
            handle: u64::from(id),
            driver_id: u64::from(id),
            name: None,
        }));
    }
    entities
}

fn operation(g: u64, stream: u32) -> Operation {
    Operation {
        g: OpSeq(g),
        exit: Some(OpSeq(g)),
        process: ProcessId(0),
        thread: ThreadId(0),
        api: "cuMemsetD8Async".into(),
        time: Some(HostTime { start_ns: 1_000_000 + g * 100, end_ns: 1_000_050 + g * 100 }),
        status: Status::SUCCESS,
        action: Action::Memset {
            stream: StreamId(stream),
            synchronous: false,
            destination: MemoryKind::Device,
            sync_memops: false,
        },
        accesses: vec![],
        stack: None,
    }
}

fn finding() -> Finding {
    let overlap = ByteRange::with_len(0x1000, 64);
    let side = |op, stream| FindingAccess {
        op: OpSeq(op),
        stream: Some(StreamId(stream)),
        api: "cuMemsetD8Async".to_owned(),
        kernel: None,
        access: Access {
            allocation: AllocationId(0),
            extent: Extent::Range(overlap),
            mode: Mode::Write,
            basis: Basis::Exact,
        },
        stack: None,
    };
    Finding {
        fingerprint: Fingerprint(5),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind: ConflictKind::WriteAfterWrite,
        confidence: Confidence::Certain,
        allocation: AllocationId(0),
        overlap,
        first: side(3, 1),
        second: side(4, 2),
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    }
}

#[test]
fn everything_reads_back() {
    let entities = entities();
    let input = Input {
        findings: [finding()].into_iter().collect(),
        entities: &entities,
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: Some(crate::Coverage::default()),
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |_| None);
    let edge =
        Edge { from: OpSeq(1), to: OpSeq(2), kind: EdgeKind::EventWait, tier: Tier::Documented };
    let mut bytes = Vec::new();
    let mut writer = PerfettoWriter::new(&mut bytes, &report, &[edge]).unwrap();
    for (g, stream) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let mut operation = operation(g, stream);
        // The first call returns after the next one of its stream, of another thread, began.
        if let (1, Some(time)) = (g, &mut operation.time) {
            time.end_ns += 1000;
        }
        writer.operation(&operation).unwrap();
    }
    writer.finish().unwrap();

    let trace = Trace::decode(bytes.as_slice()).unwrap();
    assert!(trace.packet.iter().all(|packet| packet.trusted_packet_sequence_id == Some(1)));
    let tracks: Vec<_> = trace.packet.iter().filter_map(|p| p.track_descriptor.as_ref()).collect();
    let declared: BTreeSet<_> = tracks.iter().map(|track| track.uuid).collect();
    assert_eq!((tracks.len(), declared.len()), (4, 4));
    // Each parent comes before its children.
    for (index, track) in tracks.iter().enumerate() {
        let earlier = &tracks[..index];
        assert!(track.parent_uuid.is_none() || earlier.iter().any(|t| t.uuid == track.parent_uuid));
    }
    // The tracks of streams say what their times are.
    let named = tracks.iter().filter_map(|track| track.name.as_ref());
    let names: Vec<&str> = named.map(String::as_str).collect();
    assert_eq!(names, ["stream 0x1 (host times)", "stream 0x2 (host times)"]);

    let events: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
        .collect();
    assert!(events.iter().all(|(_, event)| declared.contains(&event.track_uuid)));
    let of = |kind: EventType| events.iter().filter(move |(_, e)| e.r#type == Some(kind as i32));
    assert_eq!(of(EventType::SliceBegin).count(), 8);
    assert_eq!(of(EventType::SliceEnd).count(), 8);
    assert_eq!(of(EventType::Instant).count(), 1);
    // On a stream a slice lasts as long as its call, or until the next one.
    let slices = |uuid: Option<u64>| {
        let own = events.iter().filter(|(_, event)| event.track_uuid == uuid);
        let own = own.filter(|(_, event)| event.r#type != Some(EventType::Instant as i32));
        own.map(|&(time, _)| time - 1_000_000).collect::<Vec<_>>()
    };
    let streams: Vec<_> = tracks.iter().filter(|t| t.name.is_some()).map(|t| t.uuid).collect();
    assert_eq!(slices(streams[0]), [100, 300, 300, 350]);
    assert_eq!(slices(streams[1]), [200, 250, 400, 450]);
    // Each arrow begins and ends once, and not before it begins.
    for (flow, from, to) in [(1, 1, 2), (race_flow(0), 3, 4)] {
        let begin: Vec<_> = events.iter().filter(|(_, e)| e.flow_ids.contains(&flow)).collect();
        let ends = |e: &super::TrackEvent| e.terminating_flow_ids.contains(&flow);
        let end: Vec<_> = events.iter().filter(|(_, e)| ends(e)).collect();
        assert_eq!((begin.len(), end.len()), (1, 1), "{flow}");
        assert_eq!((begin[0].0, end[0].0), (1_000_000 + from * 100, 1_000_000 + to * 100));
    }
    let races: Vec<_> =
        events.iter().filter(|(_, e)| e.categories == ["race"]).map(|(_, e)| e).collect();
    assert_eq!(races.len(), 1);
    assert!(
        races[0].name.as_ref().unwrap().starts_with("RACE: write-after-write race on 64 bytes")
    );
}

/// The report does not know streams that ended long ago: their tracks come with the trace.
#[test]
fn streams_that_the_report_does_not_know_have_tracks() {
    let all = entities();
    let mut known = entities();
    known.forget_stream(StreamId(2));
    let input = Input {
        findings: crate::Folded::default(),
        entities: &known,
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: None,
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |_| None);
    let mut bytes = Vec::new();
    let mut writer = PerfettoWriter::new(&mut bytes, &report, &[]).unwrap();
    all.streams().for_each(|stream| writer.stream(stream).unwrap());
    writer.finish().unwrap();
    let trace = Trace::decode(bytes.as_slice()).unwrap();
    let tracks: Vec<_> = trace.packet.iter().filter_map(|p| p.track_descriptor.as_ref()).collect();
    let declared: BTreeSet<_> = tracks.iter().map(|track| track.uuid).collect();
    assert_eq!((tracks.len(), declared.len()), (4, 4));
}

fn range(
    (begin, end): (u64, Option<u64>),
    kind: NvtxKind,
    domain: Option<&str>,
    name: &str,
) -> NvtxRange {
    NvtxRange {
        begin: OpSeq(begin),
        end: end.map(OpSeq),
        process: ProcessId(0),
        thread: ThreadId(0),
        kind,
        domain: domain.map(Into::into),
        name: name.into(),
        time: HostTime { start_ns: begin, end_ns: end.unwrap_or(begin) },
        depth: 0,
    }
}

/// Every slice of a track ends as the one that began last: what a reader of the file makes of it is
/// what the program did.
#[test]
fn ranges_are_slices_that_nest() {
    use NvtxKind::{Mark, Pushed, Started};
    let entities = entities();
    let input = Input {
        findings: crate::Folded::default(),
        entities: &entities,
        threshold: Threshold::Likely,
        reasons: vec![],
        coverage: Some(crate::Coverage::default()),
        upstream: None,
        trace: None,
    };
    let report = Report::new(input, |_| None);
    let mut bytes = Vec::new();
    let mut writer = PerfettoWriter::new(&mut bytes, &report, &[]).unwrap();
    let ranges = [
        range((0, None), Pushed, None, "leaked"),
        range((1, Some(90)), Pushed, None, "train"),
        range((2, Some(50)), Pushed, Some("nccl"), "crosses"),
        range((3, Some(40)), Started, None, "epoch 1"),
        range((4, Some(60)), Pushed, None, "step\n1"),
        range((5, Some(5)), Mark, None, "here"),
        range((6, Some(30)), Started, None, "epoch 2"),
        range((35, None), Started, Some("nccl"), "epoch 3"),
        range((45, Some(80)), Started, None, "epoch 4"),
        range((45, Some(60)), Pushed, None, "forward"),
    ];
    ranges.iter().for_each(|range| writer.range(range).unwrap());
    writer.finish().unwrap();

    let trace = Trace::decode(bytes.as_slice()).unwrap();
    let names: BTreeMap<Option<u64>, (String, Option<u64>)> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .filter_map(|track| Some((track.uuid, (track.name.clone()?, track.parent_uuid))))
        .collect();
    let (thread, process) = (Some(2 << 40), Some(1 << 40));
    let mut events: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
        .collect();
    // As Perfetto reads them: by time, and by their places in the file where the times are equal.
    events.sort_by_key(|(time, _)| *time);
    let mut open: BTreeMap<Option<u64>, Vec<(u64, String)>> = BTreeMap::new();
    let mut told = Vec::new();
    for (time, event) in events {
        let (track, parent) = &names[&event.track_uuid];
        let of_thread = track.starts_with("ranges");
        assert_eq!(*parent, if of_thread { thread } else { process }, "{track}");
        let slices = open.entry(event.track_uuid).or_default();
        match EventType::try_from(event.r#type.unwrap()).unwrap() {
            EventType::SliceBegin => slices.push((time, event.name.clone().unwrap())),
            EventType::SliceEnd => {
                let (start, name) = slices.pop().expect("a slice is open");
                told.push(format!("{track}: {name} {start}..{time}"));
            }
            kind => told.push(format!("{track}: {kind:?} {} {time}", event.name.clone().unwrap())),
        }
    }
    let rest = open.into_values().flatten().map(|(start, name)| format!("{name} {start}.."));
    told.extend(rest);
    assert_eq!(
        told,
        [
            "ranges: Instant here 5",
            "started ranges: epoch 2 6..30",
            "started ranges: epoch 1 3..40",
            "ranges of nccl: crosses 2..50",
            "ranges: forward 45..60",
            "ranges: step\\n1 4..60",
            "started ranges: epoch 4 45..80",
            "ranges: train 1..90",
            "leaked 0..",
            "epoch 3 35..",
        ]
    );
}
