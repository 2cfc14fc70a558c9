//! Streams by the names that their users have for them: `default stream`, `stream "copy"`, `stream
//! 0x55d0c3a0, the 3rd created at train.py:12`.
//!
//! The report in all its forms and the viewer take their names of streams from here. Invariants: two
//! streams of one trace never have the same name, and the number 0 never names another stream than
//! CUDA's stream 0.

use crate::{Entities, OpSeq, StackId, Stream, StreamId, StreamKind, number, ordinal};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The form in which a name that a program gave is shown. It must keep different names different.
pub type ShownName = fn(&str) -> Cow<'_, str>;

/// The names of the streams of a trace.
#[derive(Clone, Debug)]
pub struct StreamNames {
    shown: ShownName,
    /// The number of streams that each possible name would name.
    counts: BTreeMap<String, u32>,
}

impl StreamNames {
    /// Looks at all streams that are known.
    pub fn of(entities: &Entities, shown: ShownName) -> Self {
        let mut names = Self { shown, counts: BTreeMap::new() };
        for stream in entities.streams() {
            for name in names.possible(stream, entities) {
                *names.counts.entry(name).or_default() += 1;
            }
        }
        names
    }

    /// The name of a stream in sentences: `default stream`, `stream "copy"`, `stream 0x55d0c3a0`.
    pub fn name(&self, id: StreamId, entities: &Entities) -> String {
        match entities.stream(id) {
            Some(stream) => self.name_of(stream, entities),
            None => format!("unknown stream (the trace's number {id})"),
        }
    }

    /// The same of a stream that need not be known any more, since it ended long ago.
    pub fn name_of(&self, stream: &Stream, entities: &Entities) -> String {
        let mut names = self.possible(stream, entities);
        let last = names.pop().unwrap_or_default();
        if entities.stream(stream.id).is_none() {
            return last;
        }
        names.into_iter().find(|name| !self.has_several(name)).unwrap_or(last)
    }

    /// Whether there are several streams of this kind, or several with this name.
    pub fn has_namesakes(&self, stream: &Stream, entities: &Entities) -> bool {
        let names = self.possible(stream, entities);
        names.first().is_some_and(|name| self.has_several(name))
    }

    /// Whether more streams than one would have the name.
    fn has_several(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|&count| count > 1)
    }

    /// The possible names of a stream, from the shortest to one that no other stream has.
    fn possible(&self, stream: &Stream, entities: &Entities) -> Vec<String> {
        let context = || match entities.context(stream.context) {
            Some(context) => format!("context {} (device {})", context.id, context.device),
            None => format!("context {}", stream.context),
        };
        let device = entities.context(stream.context).map(|context| context.device);
        // The driver gives the handle of a destroyed stream to a new one.
        let created = entities.creation(stream.id).map(|creation| creation.op);
        let op = |g: OpSeq| format!("#{}", number(g.0));
        let mut names = Vec::new();
        let short = match (&stream.name, stream.kind) {
            (Some(name), _) => {
                let short = format!("stream \"{}\"", (self.shown)(name));
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
}

impl Entities {
    /// `created at train.py:12`, or `the 3rd created at train.py:12`, of a stream without a name of
    /// its own. `place` puts the place of the creating call's stack into words, where it can.
    pub fn creation_in_words(
        &self,
        id: StreamId,
        place: impl FnOnce(Option<StackId>) -> Option<String>,
    ) -> Option<String> {
        let creation = self.creation(id)?;
        let is_named = self.stream(id).is_none_or(|stream| stream.name.is_some());
        let place = place(creation.stack).filter(|_| !is_named)?;
        Some(match self.created_alike(creation) {
            1 => format!("created at {place}"),
            _ => format!("the {} created at {place}", ordinal(creation.nth)),
        })
    }
}
