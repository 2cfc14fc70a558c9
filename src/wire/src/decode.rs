//! Decoding a record from bytes that an untrusted process wrote.

use crate::api::Api;
use crate::encode::{HEADER, NO_LAYOUT, RecordKind};
use crate::graph::GraphPart;
use crate::host::{HostCall, decode_body};
use crate::image::{Image, ImageOrigin};
use crate::measure_abi::NotMeasured;
use crate::record::{AccessList, Blobs, ParamLayout, Record, RunList, Words, word_at};
use crate::stack::{StackFrames, decode_object};

/// A record that no runtime of this version wrote: the program overwrote shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ring buffer of the traced program holds bytes that are no record; the program probably \
     wrote outside its own memory, and what that thread did afterwards is lost"
)]
pub struct Malformed;

/// The leading words of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) size: usize,
    pub(crate) kind: RecordKind,
    pub(crate) depth: u8,
    pub(crate) api: u16,
}

impl Head {
    /// Decodes the first word.
    pub(crate) fn decode(word: u64) -> Result<Self, Malformed> {
        let size = word as u32 as usize;
        let kind = RecordKind::from_u8((word >> 32) as u8).ok_or(Malformed)?;
        let least = if kind == RecordKind::Padding { 8 } else { HEADER };
        if size < least || !size.is_multiple_of(8) {
            return Err(Malformed);
        }
        Ok(Self { size, kind, depth: (word >> 40) as u8, api: (word >> 48) as u16 })
    }
}

/// A decoded record, or what only the consumer itself needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decoded<'a> {
    ThreadStart { tid: u32 },
    Record(Record<'a>),
}

/// Decodes the bytes of one record, its leading words included.
pub(crate) fn decode(head: Head, bytes: &[u8]) -> Result<Decoded<'_>, Malformed> {
    let body = bytes.get(HEADER..).ok_or(Malformed)?;
    let word = |index: usize| word_at(body, index * 8).ok_or(Malformed);
    let rest = |at: usize| body.get(at..).ok_or(Malformed);
    let api = || Api::from_u16(head.api).ok_or(Malformed);
    let record = match head.kind {
        RecordKind::Padding => return Err(Malformed),
        RecordKind::ThreadStart => return Ok(Decoded::ThreadStart { tid: word(0)? as u32 }),
        RecordKind::Begin => {
            let api = api()?;
            let words = 8 * api.signature().params.len();
            Record::Begin {
                api,
                depth: head.depth,
                context: word(0)?,
                stack: word(1)?,
                args: Words::new(body.get(16..16 + words).ok_or(Malformed)?),
                blobs: Blobs::new(rest(16 + words)?),
            }
        }
        RecordKind::End => Record::End {
            begin: word(0)?,
            api: api()?,
            result: word(1)? as i32,
            outs: Words::new(rest(16)?),
        },
        RecordKind::Kernel => {
            let sizes = word(1)?;
            let (name_len, count) = (sizes as u32 as usize, (sizes >> 32) as u32);
            let layout = if count == NO_LAYOUT { 0 } else { count as usize * 8 };
            let name = body.get(32 + layout..32 + layout + name_len).ok_or(Malformed)?;
            Record::Kernel {
                function: word(0)?,
                name: std::str::from_utf8(name).map_err(|_| Malformed)?,
                params: (count != NO_LAYOUT).then(|| ParamLayout::new(&body[32..32 + layout])),
                module: word(2)?,
                library: word(3)?,
            }
        }
        RecordKind::Accesses => Record::Accesses {
            op: word(0)?,
            complete: word(1)? != 0,
            list: AccessList::new(rest(16)?),
        },
        RecordKind::Measured => {
            let marks = word(2)?;
            Record::Measured {
                op: word(0)?,
                node: word(1)?,
                complete: marks as u32 != 0,
                flags: (marks >> 32) as u32,
                runs: RunList::new(rest(24)?),
            }
        }
        RecordKind::NotMeasured => {
            let (reason, length) = (word(1)? as u32, (word(1)? >> 32) as usize);
            Record::NotMeasured {
                op: word(0)?,
                reason: NotMeasured::from_u32(reason),
                detail: rest(16)?.get(..length).ok_or(Malformed)?,
            }
        }
        RecordKind::HostFunctionBegin => Record::HostFunctionBegin { op: word(0)? },
        RecordKind::HostFunctionEnd => Record::HostFunctionEnd { op: word(0)? },
        RecordKind::Host => {
            let call = HostCall::from_u16(head.api).ok_or(Malformed)?;
            let (stack, args, text) = decode_body(body).ok_or(Malformed)?;
            Record::Host { call, stack, args, text }
        }
        RecordKind::HostReturn => Record::HostReturn { host: word(0)?, result: word(1)? as i64 },
        RecordKind::Image => {
            let (origin, length) = (word(1)? as u32, (word(1)? >> 32) as usize);
            Record::Image {
                op: word(0)?,
                image: Image {
                    origin: ImageOrigin::from_u32(origin).ok_or(Malformed)?,
                    hash: word(2)?,
                    offset: word(3)?,
                    size: word(4)?,
                    path: body.get(40..40 + length).ok_or(Malformed)?,
                },
            }
        }
        RecordKind::Object => Record::Object(decode_object(body).ok_or(Malformed)?),
        RecordKind::Stack => Record::Stack {
            key: word(0)?,
            truncated: word(1)? != 0,
            frames: StackFrames::new(rest(16)?),
        },
        RecordKind::Graph => Record::Graph(GraphPart::decode(body).ok_or(Malformed)?),
    };
    Ok(Decoded::Record(record))
}
