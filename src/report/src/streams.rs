//! Streams by the names that their users have for them: `default stream`, `stream "copy"`, `stream
//! 0x55d0c3a0, the 3rd created at train.py:12`.
//!
//! Every form takes its names of streams from here. Invariants: two streams of one trace never have
//! the same name, and the number 0 never names another stream than CUDA's stream 0.

use crate::Report;
use crate::names::op;
use std::collections::BTreeMap;
use streamsan_model::{DeviceId, Entities, Finding, FindingAccess, Stream, StreamId, StreamKind};
use streamsan_names::printable;

/// The number of streams that each possible name would name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namesakes(BTreeMap<String, u32>);

impl Namesakes {
    pub(crate) fn of(entities: &Entities) -> Self {
        let mut counts = BTreeMap::new();
        for stream in entities.streams() {
            for name in names(stream, entities) {
                *counts.entry(name).or_default() += 1;
            }
        }
        Self(counts)
    }

    /// Whether more streams than one would have the name.
    fn has_several(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|&count| count > 1)
    }
}

/// The possible names of a stream, from the shortest to one that no other stream has.
fn names(stream: &Stream, entities: &Entities) -> Vec<String> {
    let context = || match entities.context(stream.context) {
        Some(context) => format!("context {} (device {})", context.id, context.device),
        None => format!("context {}", stream.context),
    };
    let device = entities.context(stream.context).map(|context| context.device);
    // The driver gives the handle of a destroyed stream to a new one.
    let created = entities.creation(stream.id).map(|creation| creation.op);
    let mut names = Vec::new();
    let short = match (&stream.name, stream.kind) {
        (Some(name), _) => {
            let short = format!("stream \"{}\"", printable(name));
            names.push(format!("{short} ({:#x})", stream.handle));
            names.extend(created.map(|call| format!("{short} (created at {})", op(call))));
            short
        }
        (None, StreamKind::Legacy) => {
            let short = "default stream".to_owned();
            names.extend(device.map(|device| format!("{short} of device {device}")));
            names.push(format!("{short} of {}", context()));
            short
        }
        (None, StreamKind::PerThread) => {
            let short = "per-thread default stream".to_owned();
            match stream.thread {
                Some(thread) => {
                    names.push(format!("{short} of host thread {thread}"));
                    names.push(format!("{short} of host thread {thread} in {}", context()));
                }
                None => names.push(format!("{short} of {}", context())),
            }
            short
        }
        (None, StreamKind::Blocking | StreamKind::NonBlocking) => {
            let short = format!("stream {:#x}", stream.handle);
            names.extend(created.map(|call| format!("{short} (created at {})", op(call))));
            short
        }
    };
    names.push(format!("{short} (the trace's number {})", stream.id));
    names.insert(0, short);
    names
}

impl Report<'_> {
    /// The name of a stream in sentences: `default stream`, `stream "copy"`, `stream 0x55d0c3a0`.
    pub(crate) fn stream(&self, id: StreamId) -> String {
        let Some(stream) = self.input.entities.stream(id) else {
            return format!("unknown stream (the trace's number {id})");
        };
        self.name_of_stream(stream)
    }

    /// The same of a stream that the report need not know, since it ended long ago.
    pub(crate) fn name_of_stream(&self, stream: &Stream) -> String {
        let mut names = names(stream, self.input.entities);
        let last = names.pop().unwrap_or_default();
        if self.input.entities.stream(stream.id).is_none() {
            return last;
        }
        names.into_iter().find(|name| !self.namesakes.has_several(name)).unwrap_or(last)
    }

    /// Whether there are several streams of this kind, or several with this name.
    pub(crate) fn has_namesakes(&self, stream: &Stream) -> bool {
        let names = names(stream, self.input.entities);
        names.first().is_some_and(|name| self.namesakes.has_several(name))
    }

    /// The name of a stream where it is listed: with the place that created it, where the stream has
    /// no name of its own.
    pub(crate) fn stream_in_full(&self, id: StreamId) -> String {
        let name = self.stream(id);
        let entities = self.input.entities;
        let Some(creation) = entities.creation(id) else { return name };
        let is_named = entities.stream(id).is_none_or(|stream| stream.name.is_some());
        let place = self.source_place(creation.stack).filter(|_| !is_named);
        match place {
            Some(place) => {
                let place = place.description();
                match entities.created_alike(creation) {
                    1 => format!("{name}, created at {place}"),
                    _ => format!("{name}, the {} created at {place}", ordinal(creation.nth)),
                }
            }
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
        let entities = self.input.entities;
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

/// `1st`, `2nd`, `3rd`, `11th`.
fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_end_as_they_are_spoken() {
        for (n, text) in [
            (1, "1st"),
            (2, "2nd"),
            (3, "3rd"),
            (4, "4th"),
            (11, "11th"),
            (22, "22nd"),
            (113, "113th"),
        ] {
            assert_eq!(ordinal(n), text);
        }
    }
}
