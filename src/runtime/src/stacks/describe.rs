//! Telling the collector what a key stands for.

use core::sync::atomic::Ordering;

use streamsan_wire::{Body, LONGEST_FRAME_TEXT, LoadedObject, RecordKind, StackFrame};

use super::objects::{NumberedObject, Snapshot};
use super::python;
use super::python::merge::{Merged, NativeFrame, merge};
use super::state::{FRAMES_BYTES, StackState};
use crate::attach::Attachment;
use crate::thread::{Outgoing, Thread};

/// How much of the thread's buffers a stack takes.
#[derive(Clone, Copy)]
pub(super) struct StackLengths {
    pub(super) native: usize,
    pub(super) python: usize,
    pub(super) cut: bool,
}

/// Publishes the record of a stack, and those of the objects that its frames lie in. `None` where
/// one of them was lost.
#[cold]
pub(super) fn tell(
    thread: &Thread,
    attachment: &Attachment,
    state: &mut StackState,
    key: u64,
    found: StackLengths,
) -> Option<()> {
    let (snapshot, _) = state.unwinding.as_ref()?;
    let walked = &state.native[..found.native];
    let native = &walked[..believed(snapshot, walked)];
    let python = &state.python[..found.python];
    let mut cut = found.cut || native.len() < walked.len();
    let room = FRAMES_BYTES.min(thread.largest_body(attachment).saturating_sub(16));
    // SAFETY: the thread's own buffer, of which nobody else knows.
    let mut body = unsafe { Body::new(state.frames.as_mut_ptr(), FRAMES_BYTES) };
    let (mut used, mut lost) = (0, false);
    let mut put = |frame: StackFrame<'_>| {
        if used + frame.bytes() > room {
            return false;
        }
        frame.write(&mut body);
        used += frame.bytes();
        true
    };
    let mut full = false;
    merge(native, python, &python::eval_code(), &mut |frame| {
        if full || lost {
            return;
        }
        match frame {
            Merged::Native(index) => {
                let address = native[index].address;
                let object = snapshot.find(address.wrapping_sub(1));
                let frame = match object {
                    None => StackFrame::Native { object: 0, offset: address as u64 },
                    Some(object) => StackFrame::Native {
                        object: object.number,
                        offset: address.wrapping_sub(object.bias) as u64,
                    },
                };
                lost |= object.is_some_and(|object| !tell_object(thread, attachment, object));
                full |= !put(frame);
            }
            Merged::Python(index) => python::describe(&python[index], &mut |description| {
                full |= !put(StackFrame::Python {
                    file: text(description.file),
                    function: text(description.function),
                    line: description.line.unwrap_or(0),
                });
            }),
        }
    });
    cut |= full;
    if lost {
        return None;
    }
    let kind = RecordKind::Stack;
    let record = Outgoing { kind, depth: 0, api: 0, body: 16 + used };
    let g = thread.publish(attachment, record, |body| {
        body.word(key);
        body.word(u64::from(cut));
        // SAFETY: so many bytes were written.
        unsafe { body.bytes(state.frames.as_ptr(), used) };
    });
    (g != 0).then_some(())
}

/// How many frames to believe: up to the last one in known code. What a frame pointer leads to from
/// code without unwind information is a guess until it comes to known code again.
fn believed(snapshot: &Snapshot, frames: &[NativeFrame]) -> usize {
    let known = |frame: &NativeFrame| snapshot.find(frame.address.wrapping_sub(1)).is_some();
    frames.iter().rposition(known).map_or(0, |last| last + 1)
}

fn text(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(LONGEST_FRAME_TEXT)]
}

/// Whether the collector knows the object.
fn tell_object(thread: &Thread, attachment: &Attachment, object: &NumberedObject) -> bool {
    if object.told.load(Ordering::Acquire) == attachment.number {
        return true;
    }
    let told =
        LoadedObject { number: object.number, build_id: object.build_id(), path: object.path() };
    let kind = RecordKind::Object;
    let record = Outgoing { kind, depth: 0, api: 0, body: told.body_bytes() };
    let g = thread.publish(attachment, record, |body| told.write(body));
    if g != 0 {
        // Only now: another thread that sees it may publish a stack at once.
        object.told.store(attachment.number, Ordering::Release);
    }
    g != 0
}
