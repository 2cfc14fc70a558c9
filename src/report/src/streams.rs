//! Streams in the sentences of the report. Every form takes its names of streams from here, and
//! these are those of [`streamsan_model::StreamNames`].

use crate::Report;
use streamsan_model::{DeviceId, Finding, FindingAccess, Stream, StreamId, StreamKind};

impl Report<'_> {
    /// The name of a stream in sentences: `default stream`, `stream "copy"`, `stream 0x55d0c3a0`.
    pub(crate) fn stream(&self, id: StreamId) -> String {
        self.stream_names.name(id, &self.input.entities)
    }

    /// The same of a stream that the report need not know, since it ended long ago.
    pub(crate) fn name_of_stream(&self, stream: &Stream) -> String {
        self.stream_names.name_of(stream, &self.input.entities)
    }

    /// Whether there are several streams of this kind, or several with this name.
    pub(crate) fn has_namesakes(&self, stream: &Stream) -> bool {
        self.stream_names.has_namesakes(stream, &self.input.entities)
    }

    /// The name of a stream where it is listed: with the place that created it, where the stream has
    /// no name of its own.
    pub(crate) fn stream_in_full(&self, id: StreamId) -> String {
        let name = self.stream(id);
        let place = |stack| Some(self.source_place(stack)?.description());
        match self.input.entities.creation_in_words(id, place) {
            Some(created) => format!("{name}, {created}"),
            None => name,
        }
    }

    /// The kind of a stream and its device, as `explain` adds it: `non-blocking, device 0`.
    pub(crate) fn stream_kind(&self, id: StreamId) -> Option<String> {
        let stream = self.input.entities.stream(id)?;
        let kind = stream.kind.description();
        Some(match self.input.entities.context(stream.context) {
            Some(context) => format!("{kind}, device {}", context.device),
            None => kind.to_owned(),
        })
    }

    /// The stream in which an access ran, or the host, where accesses are listed.
    pub(crate) fn side_in_full(&self, access: &FindingAccess, with_device: bool) -> String {
        let Some(id) = access.stream else { return "host".to_owned() };
        let name = self.stream_in_full(id);
        match self.device(access).filter(|_| with_device && !name.contains("device ")) {
            Some(device) => format!("{name}, device {device}"),
            None => name,
        }
    }

    /// Whether the two sides run on different devices.
    pub(crate) fn devices_differ(&self, a: &FindingAccess, b: &FindingAccess) -> bool {
        self.device(a).zip(self.device(b)).is_some_and(|(a, b)| a != b)
    }

    fn device(&self, access: &FindingAccess) -> Option<DeviceId> {
        let entities = &*self.input.entities;
        Some(entities.context(entities.stream(access.stream?)?.context)?.device)
    }

    /// The stream with its article, or the host: the subject of a sentence.
    pub(crate) fn side(&self, stream: Option<StreamId>) -> String {
        let Some(id) = stream else { return "the host".to_owned() };
        let name = self.stream(id);
        if name.starts_with("stream ") { name } else { format!("the {name}") }
    }

    /// A stream in a sentence about a pair, where the handle of a stream without a name would say
    /// less than its side.
    pub(crate) fn side_of(&self, finding: &Finding, stream: Option<StreamId>) -> String {
        let known = stream.and_then(|id| self.input.entities.stream(id));
        let is_nameless = known.is_some_and(|stream| {
            stream.name.is_none()
                && matches!(stream.kind, StreamKind::Blocking | StreamKind::NonBlocking)
        });
        if is_nameless && finding.first.stream != finding.second.stream {
            for (side, number) in [(&finding.first, "(1)"), (&finding.second, "(2)")] {
                if side.stream == stream {
                    return format!("the stream of {number}");
                }
            }
        }
        self.side(stream)
    }

    /// The stream as the object of a sentence.
    pub(crate) fn the_stream(&self, id: StreamId) -> String {
        self.side(Some(id))
    }
}
