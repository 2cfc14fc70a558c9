//! NVTX ranges as slices.
//!
//! Slices of a track nest, and an end ends the innermost one. The pushed ranges of a thread nest within
//! a domain only, so each domain has a track of its own beneath the thread. Ranges that a process
//! starts overlap as they like: each takes the first track of the process that is free.

use super::proto::{EventType, TracePacket, TrackDescriptor, TrackEvent};
use super::{PerfettoWriter, Track, text};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use streamsan_model::{NvtxKind, NvtxRange, ProcessId, ThreadId};
use streamsan_names::printable;

/// The tracks of ranges, declared as they are needed.
#[derive(Debug, Default)]
pub(super) struct RangeTracks {
    /// Numbers of the tracks of pushed ranges and marks.
    pushed: BTreeMap<(ThreadId, Option<Arc<str>>), u32>,
    /// Numbers of the tracks of started ranges, and from when on each is free.
    started: BTreeMap<ProcessId, Vec<(u32, u64)>>,
    last: u32,
}

impl RangeTracks {
    fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }
}

impl<W: Write> PerfettoWriter<'_, W> {
    /// Writes a range or a mark. They come in the order of their begins.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn range(&mut self, range: &NvtxRange) -> io::Result<()> {
        let track = match range.kind {
            NvtxKind::Pushed | NvtxKind::Mark => self.pushed_track(range)?,
            NvtxKind::Started => self.started_track(range)?,
        };
        let kind = match range.kind {
            NvtxKind::Mark => EventType::Instant,
            NvtxKind::Pushed | NvtxKind::Started => EventType::SliceBegin,
        };
        let domain = range.domain.as_deref();
        let domain = domain.map(|domain| text("domain", printable(domain).into_owned()));
        let event = TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(track.uuid()),
            categories: vec!["nvtx".to_owned()],
            name: Some(printable(&range.name).into_owned()),
            debug_annotations: domain.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.at_time(range.time.start_ns, event)?;
        // Without an end a slice is shown as one that goes on.
        match (range.kind, range.end) {
            (NvtxKind::Mark, _) | (_, None) => Ok(()),
            _ => self.end(track, range.time.end_ns.max(range.time.start_ns)),
        }
    }

    fn pushed_track(&mut self, range: &NvtxRange) -> io::Result<Track> {
        let key = (range.thread, range.domain.clone());
        if let Some(&number) = self.ranges.pushed.get(&key) {
            return Ok(Track::Ranges(number));
        }
        let number = self.ranges.next();
        self.ranges.pushed.insert(key, number);
        let name = match &range.domain {
            Some(domain) => format!("ranges of {}", printable(domain)),
            None => "ranges".to_owned(),
        };
        self.declare_ranges(number, Track::Thread(range.thread), name)
    }

    fn started_track(&mut self, range: &NvtxRange) -> io::Result<Track> {
        let (start, end) = (range.time.start_ns, range.time.end_ns);
        let busy_until = if range.end.is_some() { end.max(start) } else { u64::MAX };
        let tracks = self.ranges.started.entry(range.process).or_default();
        if let Some((number, until)) = tracks.iter_mut().find(|(_, until)| *until <= start) {
            *until = busy_until;
            return Ok(Track::Ranges(*number));
        }
        let number = self.ranges.next();
        self.ranges.started.entry(range.process).or_default().push((number, busy_until));
        let name = "started ranges".to_owned();
        self.declare_ranges(number, Track::Process(range.process), name)
    }

    fn declare_ranges(&mut self, number: u32, parent: Track, name: String) -> io::Result<Track> {
        let track = Track::Ranges(number);
        let track_descriptor = Some(TrackDescriptor {
            uuid: Some(track.uuid()),
            parent_uuid: Some(parent.uuid()),
            name: Some(name),
            ..TrackDescriptor::default()
        });
        self.packet(TracePacket { track_descriptor, ..TracePacket::default() })?;
        Ok(track)
    }
}
