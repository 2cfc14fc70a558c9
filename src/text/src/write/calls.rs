//! Calls with several parts, signals, managed memory, files, host threads.

use super::{Inexpressible, UNDECLARED, Words, Writer, Written, names};
use crate::api;
use crate::cursor::AND;
use crate::signal::{self, COMPARISONS};
use std::fmt::Write;
use streamsan_model::{
    Access, Action, Attachment, Batch, CollectiveGroup, Copy, Mode, MultiDeviceLaunch, Operation,
    SignalObject, SignalOperation, Signals, SourceOrder, StreamId, ValueCompare,
};

impl Writer {
    /// The calls that no arm of `call` takes.
    pub(super) fn other_call(&mut self, operation: &Operation) -> Written<Words> {
        let words = |text: String, usual: &str| Ok(Words { text, usual: usual.to_owned() });
        match &operation.action {
            Action::LaunchMultiDevice(launch) => self.launch_multi(launch, operation),
            Action::Batch(batch) => self.batch(batch, operation),
            Action::Prefetch { stream } => {
                let text = self.managed("prefetch", *stream, Mode::Prefetch, operation)?;
                let usual = match operation.accesses.as_slice() {
                    [_] => "cuMemPrefetchAsync",
                    _ => "cuMemPrefetchBatchAsync",
                };
                words(text, usual)
            }
            Action::Discard { stream } => {
                let with_prefetch = operation.api.contains("Prefetch");
                let (verb, usual) = match with_prefetch {
                    true => ("discard_prefetch", "cuMemDiscardAndPrefetchBatchAsync"),
                    false => ("discard", "cuMemDiscardBatchAsync"),
                };
                words(self.managed(verb, *stream, Mode::Discard, operation)?, usual)
            }
            Action::Attach { stream, allocation, attachment } => {
                let stream = self.stream(*stream, operation.thread)?;
                let word = match attachment {
                    Attachment::Global => "global",
                    Attachment::Host => "host",
                    Attachment::Single => "single",
                };
                let buffer = self.names.of_buffer(*allocation);
                words(format!("attach {stream} {buffer} {word}"), "cuStreamAttachMemAsync")
            }
            Action::Signals(signals) => self.signals(signals, operation),
            Action::StreamHandedOut { stream } => {
                let stream = self.stream(*stream, operation.thread)?;
                words(format!("hand_out {stream}"), api::HAND_OUT)
            }
            Action::FileTransfer { stream } => {
                let [access] = operation.accesses.as_slice() else {
                    return Err(Inexpressible("it moves several ranges or none"));
                };
                let (verb, usual) = match access.mode {
                    Mode::Read => ("file_write_async", "cuFileWriteAsync"),
                    _ => ("file_read_async", "cuFileReadAsync"),
                };
                let stream = self.stream(*stream, operation.thread)?;
                words(format!("{verb} {stream} {}", self.region(access)?), usual)
            }
            Action::Collective { stream } => {
                let stream = self.stream(*stream, operation.thread)?;
                let accesses = self.accesses(operation)?;
                words(format!("collective {stream} {}{accesses}", operation.api), &operation.api)
            }
            Action::CollectiveGroup(group) => self.collective_group(group, operation),
            Action::FileBatchSubmit { batch } => {
                let text = format!("file_batch f{batch}{}", self.accesses(operation)?);
                self.file_batches.insert(*batch);
                words(text, "cuFileBatchIOSubmit")
            }
            Action::FileBatchComplete { batch } => {
                if !self.file_batches.contains(batch) {
                    return Err(Inexpressible("the batch was submitted before the trace"));
                }
                words(format!("file_batch_done f{batch}"), "cuFileBatchIOGetStatus")
            }
            Action::HostRelease { object } => {
                words(format!("release o{object}"), "pthread_mutex_unlock")
            }
            Action::HostAcquire { object } => {
                words(format!("acquire o{object}"), "pthread_mutex_lock")
            }
            Action::Captured { .. } => Err(Inexpressible("captured into a graph")),
            _ => Err(Inexpressible("orders nothing and touches nothing")),
        }
    }

    /// The host's own accesses, and the synchronous transfers of files.
    pub(super) fn host_access(&mut self, operation: &Operation) -> Written<Words> {
        let verb = match (&*operation.api, operation.accesses.as_slice()) {
            ("cuFileRead", [access]) if access.mode == Mode::Write => Some(("file_read", access)),
            ("cuFileWrite", [access]) if access.mode == Mode::Read => Some(("file_write", access)),
            _ => None,
        };
        Ok(match verb {
            Some((verb, access)) => Words {
                text: format!("{verb} {}", self.region(access)?),
                usual: operation.api.to_string(),
            },
            None => Words {
                text: format!("host{}", self.accesses(operation)?),
                usual: api::HOST_ACCESS.to_owned(),
            },
        })
    }

    fn managed(
        &mut self,
        verb: &str,
        stream: StreamId,
        mode: Mode,
        operation: &Operation,
    ) -> Written<String> {
        if operation.accesses.is_empty() {
            return Err(Inexpressible("its memory is not known"));
        }
        let mut text = format!("{verb} {}", self.stream(stream, operation.thread)?);
        for access in operation.accesses.iter().filter(|access| access.mode == mode) {
            let _ = write!(text, " {}", self.region(access)?);
        }
        Ok(text)
    }

    fn launch_multi(
        &mut self,
        launch: &MultiDeviceLaunch,
        operation: &Operation,
    ) -> Written<Words> {
        let mut text = "launch_multi".to_owned();
        for (is_set, word) in
            [(!launch.waits_before, " no_pre"), (!launch.holds_back_after, " no_post")]
        {
            if is_set {
                text.push_str(word);
            }
        }
        let mut rest = operation.accesses.as_slice();
        for (index, member) in launch.launches.iter().enumerate() {
            if index > 0 {
                let _ = write!(text, " {AND}");
            }
            let own = part(&mut rest, member.accesses)?;
            let stream = self.stream(member.stream, operation.thread)?;
            let kernel = self.entities.kernel(member.kernel).ok_or(UNDECLARED)?;
            let kernel = names::kernel(&kernel.name);
            let _ = write!(text, " {stream} {kernel}{}", self.access_list(own)?);
        }
        Ok(Words { text, usual: "cuLaunchCooperativeKernelMultiDevice".to_owned() })
    }

    fn collective_group(
        &mut self,
        group: &CollectiveGroup,
        operation: &Operation,
    ) -> Written<Words> {
        let mut text = "collective".to_owned();
        let mut rest = operation.accesses.as_slice();
        for (index, member) in group.members.iter().enumerate() {
            if index > 0 {
                let _ = write!(text, " {AND}");
            }
            let own = part(&mut rest, member.accesses)?;
            let stream = self.stream(member.stream, operation.thread)?;
            let _ = write!(text, " {stream} {}{}", operation.api, self.access_list(own)?);
        }
        Ok(Words { text, usual: operation.api.to_string() })
    }

    fn batch(&mut self, batch: &Batch, operation: &Operation) -> Written<Words> {
        let decompress = *operation.api == *api::DECOMPRESS;
        let verb = if decompress { "decompress" } else { "batch" };
        let mut text = format!("{verb} {}", self.stream(batch.stream, operation.thread)?);
        let (mut rest, mut shape) = (operation.accesses.as_slice(), api::Shape::Linear);
        for entry in &batch.entries {
            let own = part(&mut rest, entry.accesses)?;
            let (to, from) = sides(own)?;
            shape = shape.max(api::Shape::of(&to.extent)).max(api::Shape::of(&from.extent));
            let _ = write!(text, " dst:{} src:{}", self.region(to)?, self.region(from)?);
            text.push_str(order_option(&entry.copy));
        }
        let usual = match (decompress, shape) {
            (true, _) => api::DECOMPRESS,
            (false, api::Shape::Linear) => "cuMemcpyBatchAsync",
            (false, _) => "cuMemcpy3DBatchAsync",
        };
        Ok(Words { text, usual: usual.to_owned() })
    }

    fn signals(&mut self, signals: &Signals, operation: &Operation) -> Written<Words> {
        let stream = self.stream(signals.stream, operation.thread)?;
        let text = self.signal_words(&signals.operations, Some(&stream))?;
        Ok(Words { text, usual: signal::api(&signals.operations).to_owned() })
    }

    /// The words of signals and waits; the first has the stream behind its verb.
    pub(super) fn signal_words(
        &mut self,
        operations: &[SignalOperation],
        stream: Option<&str>,
    ) -> Written<String> {
        let mut text = String::new();
        for (index, operation) in operations.iter().enumerate() {
            if index > 0 {
                let _ = write!(text, " {AND} ");
            }
            let (object, value) = match operation {
                SignalOperation::Signal { object, value, .. }
                | SignalOperation::Wait { object, value, .. } => (object, value),
            };
            let verb = match (operation, object) {
                (SignalOperation::Signal { .. }, SignalObject::Memory { .. }) => "write_value",
                (SignalOperation::Wait { .. }, SignalObject::Memory { .. }) => "wait_value",
                (SignalOperation::Signal { .. }, SignalObject::Semaphore(_)) => "signal",
                (SignalOperation::Wait { .. }, SignalObject::Semaphore(_)) => "wait_signal",
            };
            text.push_str(verb);
            if let Some(stream) = stream.filter(|_| index == 0) {
                let _ = write!(text, " {stream}");
            }
            let _ = write!(text, " {}={value}", self.signal_object(object)?);
            match operation {
                SignalOperation::Signal { releases: false, .. } if verb == "write_value" => {
                    text.push_str(" no_barrier");
                }
                SignalOperation::Wait { compare, .. } if *compare != ValueCompare::default() => {
                    let word = COMPARISONS.iter().find(|(_, other)| other == compare);
                    let _ = write!(text, " {}", word.map_or("geq", |(word, _)| word));
                }
                _ => {}
            }
        }
        Ok(text)
    }

    fn signal_object(&self, object: &SignalObject) -> Written<String> {
        match *object {
            SignalObject::Semaphore(id) => Ok(format!("y{id}")),
            SignalObject::Memory { allocation, address, width } => {
                let buffer = self.entities.allocation(allocation).ok_or(UNDECLARED)?;
                let start = address.saturating_sub(self.plan.window(buffer).start);
                let name = self.names.of_buffer(allocation);
                Ok(format!("{name}[{start}..{}]", start + u64::from(width)))
            }
        }
    }
}

/// ` order=...` of a copy, unless it is the usual one.
pub(super) fn order_option(copy: &Copy) -> &'static str {
    match copy.source_order {
        SourceOrder::Stream => "",
        SourceOrder::DuringCall => " order=call",
        SourceOrder::Any => " order=any",
    }
}

/// Destination and source of a copy.
pub(super) fn sides(accesses: &[Access]) -> Written<(&Access, &Access)> {
    let side = |writes: bool| {
        let mut sides = accesses.iter().filter(|access| access.mode.writes() == writes);
        match (sides.next(), sides.next()) {
            (Some(access), None) => Ok(access),
            _ => Err(Inexpressible("its source or destination is not known")),
        }
    };
    Ok((side(true)?, side(false)?))
}

/// The next accesses of a call that has several parts.
fn part<'a>(rest: &mut &'a [Access], count: u32) -> Written<&'a [Access]> {
    let (own, other) = rest
        .split_at_checked(count as usize)
        .ok_or(Inexpressible("its accesses are not those of its parts"))?;
    *rest = other;
    Ok(own)
}
