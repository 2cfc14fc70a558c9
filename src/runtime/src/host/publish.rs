//! Records of host calls.

use streamsan_wire::{Body, HostCall, RecordKind, host_body};

use crate::attach::{self, Attachment};
use crate::call::guarded;
use crate::stacks;
use crate::thread::{Outgoing, Thread};

/// Longest name that is recorded, in bytes.
const LONGEST_TEXT: usize = 256;

/// Records a call that the program itself makes, at this point of its thread. Calls inside a
/// driver call are the driver's own and pass.
pub(super) fn record(call: HostCall, list: &[u64], text: &[u8]) {
    guarded(|thread| {
        if thread.depth.get() != 0 {
            return;
        }
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        publish(thread, &attachment, call, (list.len(), text), words(list));
        thread.busy.set(false);
    });
}

/// Publishes a record with `count` words, which `fill` writes; returns its index, 0 where it was
/// dropped.
pub(super) fn publish(
    thread: &Thread,
    attachment: &Attachment,
    call: HostCall,
    (count, text): (usize, &[u8]),
    fill: impl FnOnce(&mut Body),
) -> u64 {
    let stack = stacks::of_host_call(thread, attachment, call);
    publish_with(thread, attachment, call, stack, (count, text), fill)
}

/// Publishes a record of a place whose stack is known.
pub(super) fn publish_at(
    thread: &Thread,
    attachment: &Attachment,
    call: HostCall,
    stack: u64,
    list: &[u64],
) -> u64 {
    publish_with(thread, attachment, call, stack, (list.len(), &[]), words(list))
}

fn publish_with(
    thread: &Thread,
    attachment: &Attachment,
    call: HostCall,
    stack: u64,
    (count, text): (usize, &[u8]),
    fill: impl FnOnce(&mut Body),
) -> u64 {
    let text = &text[..text.len().min(LONGEST_TEXT)];
    let record = Outgoing {
        kind: RecordKind::Host,
        depth: thread.depth.get(),
        api: call as u16,
        body: host_body(count, text.len()),
    };
    thread.publish(attachment, record, |body| {
        body.word(count as u64 | (text.len() as u64) << 32);
        body.word(stack);
        fill(body);
        // SAFETY: a slice is valid for reads of its length.
        unsafe { body.bytes(text.as_ptr(), text.len()) };
        body.align(text.len());
    })
}

/// Writes words, for [`publish`].
pub(super) fn words(words: &[u64]) -> impl FnOnce(&mut Body) {
    move |body| words.iter().for_each(|word| body.word(*word))
}

/// Publishes the return of the call whose record has the index `host`.
pub(super) fn publish_return(thread: &Thread, attachment: &Attachment, host: u64, result: i64) {
    let kind = RecordKind::HostReturn;
    let record = Outgoing { kind, depth: thread.depth.get(), api: 0, body: 16 };
    thread.publish(attachment, record, |body| {
        body.word(host);
        body.word(result as u64);
    });
}
