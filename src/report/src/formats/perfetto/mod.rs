//! Perfetto: the whole trace as protobuf track events, for <https://ui.perfetto.dev>.
//!
//! A track for each stream and each host thread, flow arrows for the synchronisation edges, races
//! as instants. No trace holds the times at which the GPU ran anything: a slice on a stream begins with
//! the call that enqueued the operation and lasts no longer than this call did on the host, or until
//! the stream's next one, since slices of a track do not overlap. The name of the track says that these
//! are host times. On a host thread the durations are those of the calls.

mod proto;
mod ranges;
#[cfg(test)]
mod tests;

use crate::Report;
use crate::names::op;
use prost::Message;
use proto::{
    DebugAnnotation, EventType, ProcessDescriptor, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Value,
};
use ranges::RangeTracks;
use std::collections::BTreeMap;
use std::io::{self, Write};
use streamsan_model::{
    Action, Edge, FindingAccess, KernelId, OpSeq, Operation, ProcessId, Stream, StreamId, ThreadId,
};
use streamsan_names::printable;

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// Nanoseconds between two operations of a text trace, which knows no times, and the length of one.
const STEP_NS: u64 = 1000;
const LENGTH_NS: u64 = 500;

/// A row.
#[derive(Clone, Copy, Debug)]
enum Track {
    Process(ProcessId),
    Thread(ThreadId),
    Stream(StreamId),
    /// Of NVTX ranges, by its number.
    Ranges(u32),
}

impl Track {
    fn uuid(self) -> u64 {
        match self {
            Self::Process(id) => 1 << 40 | u64::from(id.0),
            Self::Thread(id) => 2 << 40 | u64::from(id.0),
            Self::Stream(id) => 3 << 40 | u64::from(id.0),
            Self::Ranges(number) => 4 << 40 | u64::from(number),
        }
    }
}

/// Arrows that begin and end at an operation, and races that stand at it.
#[derive(Clone, Debug, Default)]
struct At {
    begin: Vec<u64>,
    end: Vec<u64>,
    /// Positions of groups.
    races: Vec<usize>,
}

/// Writes a trace, operation by operation.
#[derive(Debug)]
pub struct PerfettoWriter<'a, W> {
    out: W,
    report: &'a Report<'a>,
    at: BTreeMap<OpSeq, At>,
    /// Names of the kernels: as reports show them, and in full where they are mangled.
    kernels: BTreeMap<KernelId, (String, Option<String>)>,
    /// Begin and end of the last slice of each stream, which has no end in the file yet.
    open: BTreeMap<StreamId, [u64; 2]>,
    ranges: RangeTracks,
}

impl<'a, W: Write> PerfettoWriter<'a, W> {
    /// Begins a file: the tracks. `edges` holds all synchronisation edges of the trace. For each
    /// mistake the file shows the occurrence that the report shows.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn new(out: W, report: &'a Report<'a>, edges: &[Edge]) -> io::Result<Self> {
        let mut at: BTreeMap<OpSeq, At> = BTreeMap::new();
        for (edge, id) in edges.iter().zip(1..) {
            at.entry(edge.from).or_default().begin.push(id);
            at.entry(edge.to).or_default().end.push(id);
        }
        for (position, group) in report.groups.iter().enumerate() {
            let id = race_flow(position);
            at.entry(group.finding.first.op).or_default().begin.push(id);
            at.entry(group.finding.second.op).or_default().races.push(position);
        }
        let kernels = report.input.entities.kernels().map(|kernel| {
            let shown = streamsan_names::kernel(&kernel.name).into_owned();
            (
                kernel.id,
                (
                    shown,
                    streamsan_names::whole(&kernel.name)
                        .map(|whole| printable(&whole).into_owned()),
                ),
            )
        });
        let kernels = kernels.collect();
        let mut writer = Self {
            out,
            report,
            at,
            kernels,
            open: BTreeMap::new(),
            ranges: RangeTracks::default(),
        };
        writer.tracks()?;
        Ok(writer)
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    fn tracks(&mut self) -> io::Result<()> {
        let entities = &*self.report.input.entities;
        let mut descriptors = Vec::new();
        for process in entities.processes() {
            descriptors.push(TrackDescriptor {
                uuid: Some(Track::Process(process.id).uuid()),
                process: Some(ProcessDescriptor {
                    pid: Some(process.pid as i32),
                    process_name: Some(printable(&process.executable).into_owned()),
                }),
                ..TrackDescriptor::default()
            });
        }
        for thread in entities.threads() {
            let process = entities.process(thread.process);
            descriptors.push(TrackDescriptor {
                uuid: Some(Track::Thread(thread.id).uuid()),
                parent_uuid: Some(Track::Process(thread.process).uuid()),
                thread: Some(ThreadDescriptor {
                    pid: Some(process.map_or(0, |process| process.pid as i32)),
                    tid: Some(thread.tid as i32),
                    thread_name: Some(format!("host thread {}: calls", thread.id)),
                }),
                ..TrackDescriptor::default()
            });
        }
        descriptors.extend(entities.streams().map(|stream| self.stream_track(stream)));
        for (position, descriptor) in descriptors.into_iter().enumerate() {
            self.packet(TracePacket {
                sequence_flags: (position == 0).then_some(1),
                track_descriptor: Some(descriptor),
                ..TracePacket::default()
            })?;
        }
        Ok(())
    }

    fn stream_track(&self, stream: &Stream) -> TrackDescriptor {
        let context = self.report.input.entities.context(stream.context);
        let process = context.map_or(ProcessId(0), |context| context.process);
        TrackDescriptor {
            uuid: Some(Track::Stream(stream.id).uuid()),
            parent_uuid: Some(Track::Process(process).uuid()),
            name: Some(format!("{} ({})", self.report.name_of_stream(stream), self.times())),
            ..TrackDescriptor::default()
        }
    }

    /// Declares the track of a stream that the report does not know: it ended long ago, and no
    /// finding is about it. The declaration comes before the stream's operations.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn stream(&mut self, stream: &Stream) -> io::Result<()> {
        if self.report.input.entities.stream(stream.id).is_some() {
            return Ok(());
        }
        let track_descriptor = Some(self.stream_track(stream));
        self.packet(TracePacket { track_descriptor, ..TracePacket::default() })
    }

    /// The note on the times of stream tracks, short enough to be read beside a stream's name.
    fn times(&self) -> &'static str {
        match self.report.input.coverage {
            Some(_) => "host times",
            None => "no times",
        }
    }

    /// Writes an operation. Operations come in the order of the trace.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn operation(&mut self, operation: &Operation) -> io::Result<()> {
        let step = operation.g.0.saturating_mul(STEP_NS);
        let (start, end) = operation.time.map_or((step, step + LENGTH_NS), |time| {
            (time.start_ns, time.end_ns.max(time.start_ns))
        });
        let at = self.at.remove(&operation.g).unwrap_or_default();
        let thread = Track::Thread(operation.thread);
        let stream = operation.action.stream().map(Track::Stream);
        let (begin, terminate) = (at.begin.clone(), at.end.clone());
        let of_thread =
            if stream.is_none() { (begin.clone(), terminate.clone()) } else { (vec![], vec![]) };
        let call = self.event(operation, EventType::SliceBegin, thread, of_thread);
        self.at_time(start, call)?;
        self.end(thread, end)?;
        if let Some(stream) = operation.action.stream() {
            self.end_slice(stream, start)?;
            let track = Track::Stream(stream);
            let event = self.event(operation, EventType::SliceBegin, track, (begin, terminate));
            self.at_time(start, event)?;
            self.open.insert(stream, [start, end]);
        }
        for position in at.races {
            let event = self.race(position, stream.unwrap_or(thread));
            self.at_time(start, event)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn finish(mut self) -> io::Result<()> {
        while let Some(&stream) = self.open.keys().next() {
            self.end_slice(stream, u64::MAX)?;
        }
        self.out.flush()
    }

    /// Ends the last slice of a stream, at a time at the latest.
    fn end_slice(&mut self, stream: StreamId, latest: u64) -> io::Result<()> {
        match self.open.remove(&stream) {
            Some([start, end]) => self.end(Track::Stream(stream), end.min(latest).max(start)),
            None => Ok(()),
        }
    }

    fn end(&mut self, track: Track, time: u64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(EventType::SliceEnd as i32),
            track_uuid: Some(track.uuid()),
            ..TrackEvent::default()
        };
        self.at_time(time, event)
    }

    fn at_time(&mut self, time: u64, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(time),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn event(
        &self,
        operation: &Operation,
        kind: EventType,
        track: Track,
        (flow_ids, terminating_flow_ids): (Vec<u64>, Vec<u64>),
    ) -> TrackEvent {
        let kernel = match operation.action {
            Action::Launch { kernel, .. } => self.report.input.entities.kernel(kernel),
            _ => None,
        };
        let on_stream = matches!(track, Track::Stream(_));
        let name = match kernel {
            Some(kernel) if on_stream => match self.kernels.get(&kernel.id) {
                Some((shown, _)) => shown.clone(),
                None => printable(&kernel.name).into_owned(),
            },
            _ => self.report.called(&operation.api, operation.stack).into_owned(),
        };
        let mut debug_annotations = vec![
            number("operation", operation.g.0),
            text("call", self.report.called(&operation.api, operation.stack).into_owned()),
        ];
        if let Some(kernel) = kernel {
            debug_annotations.push(text("kernel", printable(&kernel.name).into_owned()));
            if let Some((_, Some(whole))) = self.kernels.get(&kernel.id) {
                debug_annotations.push(text("kernel demangled", whole.clone()));
            }
        }
        if let Some(place) = self.report.place_in_words(operation.stack) {
            debug_annotations.push(text("called at", place));
        }
        if !operation.status.is_success() {
            debug_annotations.push(text("result", operation.status.0.to_string()));
        }
        TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(track.uuid()),
            categories: vec![operation.action.description().to_owned()],
            name: Some(name),
            debug_annotations,
            flow_ids,
            terminating_flow_ids,
        }
    }

    /// The number of an operation, and where in the program it was called.
    fn side(&self, access: &FindingAccess) -> String {
        match self.report.place_in_words(access.stack) {
            Some(place) => format!("{} at {place}", op(access.op)),
            None => op(access.op),
        }
    }

    fn race(&self, position: usize, track: Track) -> TrackEvent {
        let group = &self.report.groups[position];
        let finding = &group.finding;
        let title = crate::text::headline(self.report, finding);
        TrackEvent {
            r#type: Some(EventType::Instant as i32),
            track_uuid: Some(track.uuid()),
            categories: vec![finding.severity.description().to_owned()],
            name: Some(format!("{}: {title}", finding.severity.description().to_uppercase())),
            debug_annotations: vec![
                text("id", finding.fingerprint.to_string()),
                text("class", finding.class.description().to_owned()),
                text("confidence", finding.confidence.description().to_owned()),
                text("(1)", self.side(&finding.first)),
                text("(2)", self.side(&finding.second)),
                number("occurrences", group.count),
            ],
            flow_ids: Vec::new(),
            terminating_flow_ids: vec![race_flow(position)],
        }
    }
}

/// The number of the arrow of a race; those of edges are far below.
fn race_flow(position: usize) -> u64 {
    1 << 62 | position as u64
}

fn text(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Text(value)) }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Uint(value)) }
}
