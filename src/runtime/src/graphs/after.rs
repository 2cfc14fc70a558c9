//! Queries after a call: which node it made in a capture, which nodes it cloned.

use core::sync::atomic::{AtomicU32, Ordering};

use streamsan_wire::node_kind::{CHILD, CONDITIONAL};
use streamsan_wire::{Api, GraphPart, ParamKind, RecordKind};

use super::read::any_node;
use super::{conditional, driver};
use crate::attach::Attachment;
use crate::thread::{Outgoing, Thread};

/// Captures of this process that have begun and not ended.
static CAPTURES: AtomicU32 = AtomicU32::new(0);

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`, `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`: the capture is
/// ended, there is no graph.
const ENDED_IN_VAIN: [i32; 2] = [901, 904];

/// `CU_STREAM_LEGACY`, which cannot be captured.
const LEGACY: u64 = 1;

/// Where `CUlaunchConfig` keeps the stream.
const CONFIG_STREAM: usize = 32;

/// Levels of child graphs inside each other whose clones are followed.
const MOST_LEVELS: usize = 16;
/// Pairs in one record.
const PAIRS_PER_RECORD: usize = 512;

/// Whether a stream of this process may be capturing.
#[inline]
pub(crate) fn under_capture() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0
}

/// Records whether the call was captured, and as which node.
#[cold]
pub(crate) fn note_captured(
    thread: &Thread,
    attachment: &Attachment,
    api: Api,
    op: u64,
    words: &[u64],
) {
    let Some(stream) = stream_of(api, words) else { return };
    let per_thread = api.name().ends_with("_ptsz");
    if stream == LEGACY || (stream == 0 && !per_thread) {
        return;
    }
    let Some(info) = driver::capture_info(stream, per_thread) else { return };
    let body = GraphPart::CAPTURED_BYTES;
    let record = Outgoing { kind: RecordKind::Graph, depth: 0, api: 0, body };
    thread.publish(attachment, record, |body| {
        GraphPart::captured(body, op, info.graph, info.node);
    });
}

/// The stream that the call is issued to, `None` if it is no more.
fn stream_of(api: Api, words: &[u64]) -> Option<u64> {
    if matches!(api, Api::cuStreamDestroy | Api::cuStreamDestroy_v2) {
        return None;
    }
    let signature = api.signature();
    let named = signature.index_of("hStream").or_else(|| signature.index_of("stream"));
    if let Some(index) = named {
        return words.get(index).copied();
    }
    let config = signature.params.iter().position(|p| p.kind == ParamKind::LaunchConfig)?;
    let at = *words.get(config)? as *const u8;
    // SAFETY: the driver has just read this structure.
    (!at.is_null()).then(|| unsafe { at.add(CONFIG_STREAM).cast::<u64>().read_unaligned() })
}

/// Looks at the results of a call of which a parameter says so.
#[cold]
pub(crate) fn after(
    thread: &Thread,
    attachment: &Attachment,
    api: Api,
    op: u64,
    words: &[u64],
    result: i32,
) {
    let first_out = || match words.first() {
        // SAFETY: the driver has just written a handle there.
        Some(at) if *at != 0 => unsafe { (*at as *const u64).read_unaligned() },
        _ => 0,
    };
    for (param, word) in api.signature().params.iter().zip(words) {
        match param.kind {
            ParamKind::Capture => capture_changes(api, result),
            _ if result != 0 || *word == 0 => {}
            ParamKind::NewNode => {
                // SAFETY: the driver has just read this structure, and written to it.
                let params = unsafe { any_node(*word) };
                match params[0] as u32 as i32 {
                    CONDITIONAL => conditional::remember(first_out(), params),
                    CHILD => cloned_child(thread, attachment, op, params[2], first_out()),
                    _ => {}
                }
            }
            ParamKind::Cloned if api == Api::cuGraphClone => {
                clones(thread, attachment, op, *word, first_out());
            }
            ParamKind::Cloned => cloned_child(thread, attachment, op, *word, first_out()),
            _ => {}
        }
    }
}

fn capture_changes(api: Api, result: i32) {
    if !api.name().starts_with("cuStreamEndCapture") {
        if result == 0 {
            CAPTURES.fetch_add(1, Ordering::Relaxed);
        }
    } else if result == 0 || ENDED_IN_VAIN.contains(&result) {
        // A capture that began before the runtime counted leaves the count as it is.
        let _ = CAPTURES
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
    }
}

/// A child graph node holds a clone of `original`.
fn cloned_child(thread: &Thread, attachment: &Attachment, op: u64, original: u64, node: u64) {
    if let Some(clone) = driver::child(node) {
        clones(thread, attachment, op, original, clone);
    }
}

fn clones(thread: &Thread, attachment: &Attachment, op: u64, original: u64, clone: u64) {
    let mut pairs = Vec::new();
    if original != clone {
        collect(original, clone, &mut pairs, 0);
    }
    for part in pairs.chunks(PAIRS_PER_RECORD) {
        let body = GraphPart::CLONES_BYTES + size_of_val(part);
        let record = Outgoing { kind: RecordKind::Graph, depth: 0, api: 0, body };
        thread.publish(attachment, record, |body| {
            GraphPart::clones(body, op);
            for (original, clone) in part {
                body.word(*original);
                body.word(*clone);
            }
        });
    }
}

/// Pairs the nodes of a graph with those of its clone: by the driver's word (`cuGraphClone`), else
/// by position (the clone inside a child graph node).
fn collect(original: u64, clone: u64, pairs: &mut Vec<(u64, u64)>, level: usize) {
    let (Some(nodes), Some(cloned)) = (driver::nodes(original), driver::nodes(clone)) else {
        return;
    };
    let same = nodes.len() == cloned.len();
    if level == MOST_LEVELS || pairs.len() + nodes.len() > driver::MOST {
        return;
    }
    for (index, node) in nodes.iter().enumerate() {
        let by_position = || same.then(|| cloned[index]);
        let Some(twin) = driver::find_in_clone(*node, clone).or_else(by_position) else { continue };
        pairs.push((*node, twin));
        if driver::kind(*node) == Some(CHILD)
            && let (Some(inner), Some(inner_clone)) = (driver::child(*node), driver::child(twin))
        {
            collect(inner, inner_clone, pairs, level + 1);
        }
    }
}
