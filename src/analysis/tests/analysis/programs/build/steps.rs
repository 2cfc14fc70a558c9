//! The calls of a program, step by step.

use super::super::recipe::{Call, Overlap, Shape, Size, Step, Touch};
use super::{Builder, Exists};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Allocation, Basis, ByteRange, ContextId, Copy, EventId, Extent, KernelId,
    MemoryKind, Mode, SemaphoreId, SignalObject, SignalOperation, Signals, Status, StreamId,
    StreamKind, StridedPattern, SyncObject, ValueCompare,
};

/// One call for each step, where there is something to call it on.
impl Builder {
    pub(super) fn step(&mut self, call: Call, step: &Step) {
        match *step {
            Step::Launch { stream, ref touches, overlap } => {
                self.launch(call, stream, touches, overlap);
            }
            Step::Copy { stream, synchronous, from, to, shape } => {
                self.copy(call, stream, synchronous, (from, to), shape);
            }
            Step::Memset { stream, synchronous, buffer, shape } => {
                self.memset(call, stream, synchronous, buffer, shape);
            }
            Step::Host { ref touches } => {
                let accesses = self.accesses(touches);
                self.call(Call { fails: false, ..call }, "host", Action::HostAccess, accesses);
            }
            Step::Record { event, stream } => {
                let (event, Some(stream)) = (self.event(event), self.stream(stream)) else {
                    return;
                };
                self.call(call, "cuEventRecord", Action::EventRecord { event, stream }, vec![]);
            }
            Step::Wait { stream, event } => {
                let (event, Some(stream)) = (self.event(event), self.stream(stream)) else {
                    return;
                };
                let action = Action::StreamWaitEvent { stream, event };
                self.call(call, "cuStreamWaitEvent", action, vec![]);
            }
            Step::RecordContext { event, context } => {
                let (event, context) = (self.event(event), self.context(context));
                let action = Action::ContextRecordEvent { context, event };
                self.call(call, "cuCtxRecordEvent", action, vec![]);
            }
            Step::HoldBackContext { context, event } => {
                let (event, context) = (self.event(event), self.context(context));
                let action = Action::ContextWaitEvent { context, event };
                self.call(call, "cuCtxWaitEvent", action, vec![]);
            }
            Step::DestroyEvent { event } => {
                let slot = usize::from(event) % self.events.len();
                let action = Action::EventDestroy { event: self.events[slot] };
                self.call(Call { fails: false, ..call }, "cuEventDestroy_v2", action, vec![]);
                let event = self.new_event();
                self.events[slot] = event;
                let action = Action::EventCreate { event };
                self.call(Call { fails: false, ..call }, "cuEventCreate", action, vec![]);
            }
            Step::SynchronizeStream { stream } => {
                let Some(stream) = self.stream(stream) else { return };
                let action = Action::StreamSynchronize { stream };
                self.call(call, "cuStreamSynchronize", action, vec![]);
            }
            Step::SynchronizeEvent { event } => {
                let action = Action::EventSynchronize { event: self.event(event) };
                self.call(call, "cuEventSynchronize", action, vec![]);
            }
            Step::SynchronizeContext { context } => {
                let action = Action::ContextSynchronize { context: self.context(context) };
                self.call(call, "cuCtxSynchronize", action, vec![]);
            }
            Step::QueryStream { stream, is_complete } => {
                let Some(stream) = self.stream(stream) else { return };
                let action = Action::StreamQuery { stream };
                self.call_with(call, "cuStreamQuery", action, vec![], answer(is_complete));
            }
            Step::QueryEvent { event, is_complete } => {
                let action = Action::EventQuery { event: self.event(event) };
                self.call_with(call, "cuEventQuery", action, vec![], answer(is_complete));
            }
            Step::ElapsedTime { start, end } => {
                let (start, end) = (self.event(start), self.event(end));
                let action = Action::EventElapsedTime { start, end };
                self.call(call, "cuEventElapsedTime_v2", action, vec![]);
            }
            Step::CreateStream { stream } => {
                let slot = usize::from(stream) % self.streams.len();
                if self.streams[slot].1 == Exists::NoMore {
                    self.streams[slot].1 = Exists::NotYet;
                }
                let _ = self.stream(stream);
            }
            Step::DestroyStream { stream } => {
                let slot = usize::from(stream) % self.streams.len();
                let (stream, exists) = self.streams[slot].clone();
                if exists == Exists::Now && stream.handle != 0 && self.streams.len() > 2 {
                    self.streams[slot].1 = Exists::NoMore;
                    let action = Action::StreamDestroy { stream: stream.id };
                    self.call(Call { fails: false, ..call }, "cuStreamDestroy_v2", action, vec![]);
                }
            }
            Step::Allocate { buffer, kind, stream, size, at_old_address } => {
                self.allocate(call, buffer, kind, stream, size, at_old_address);
            }
            Step::Free { buffer, stream } => self.free(call, buffer, stream),
            Step::Prefetch { stream, buffer, shape } => {
                let Some(stream) = self.stream(stream) else { return };
                let access = self.managed(buffer, shape, Mode::Prefetch);
                let action = Action::Prefetch { stream };
                self.call(call, "cuMemPrefetchAsync", action, vec![access]);
            }
            Step::Discard { stream, buffer, shape } => {
                let Some(stream) = self.stream(stream) else { return };
                let access = self.managed(buffer, shape, Mode::Discard);
                let action = Action::Discard { stream };
                self.call(call, "cuMemDiscardBatchAsync", action, vec![access]);
            }
            Step::Batch { stream, ref entries } => self.batch(call, stream, entries),
            Step::Instantiate { executable, ref nodes } => {
                self.instantiate(call, executable, nodes);
            }
            Step::LaunchGraph { executable, stream } => {
                let (stream, executable) = (self.stream(stream), self.executable(executable));
                let (Some(stream), Some((executable, graph))) = (stream, executable) else {
                    return;
                };
                let action = Action::GraphLaunch { stream, executable, graph };
                self.call(call, "cuGraphLaunch", action, vec![]);
            }
            Step::UploadGraph { executable, stream } => {
                let (stream, executable) = (self.stream(stream), self.executable(executable));
                let (Some(stream), Some((executable, _))) = (stream, executable) else { return };
                let action = Action::GraphUpload { stream, executable };
                self.call(call, "cuGraphUpload", action, vec![]);
            }
            Step::Signal { stream, semaphore, value, releases } => {
                let (object, value) = (self.signal_object(semaphore), u64::from(value));
                let signal = SignalOperation::Signal { object, value, releases };
                self.signals(call, stream, object, signal);
            }
            Step::AwaitSignal { stream, semaphore, value, exactly } => {
                let (object, value) = (self.signal_object(semaphore), u64::from(value));
                let compare =
                    if exactly { ValueCompare::Equal } else { ValueCompare::GreaterOrEqual };
                let wait = SignalOperation::Wait { object, value, compare };
                self.signals(call, stream, object, wait);
            }
            Step::Release { object } => {
                let action = Action::HostRelease { object: SyncObject(u64::from(object)) };
                let call = Call { fails: false, ..call };
                self.call(call, "pthread_mutex_unlock", action, vec![]);
            }
            Step::Acquire { object } => {
                let action = Action::HostAcquire { object: SyncObject(u64::from(object)) };
                let call = Call { fails: false, ..call };
                self.call(call, "pthread_mutex_lock", action, vec![]);
            }
        }
    }

    fn signals(
        &mut self,
        call: Call,
        stream: u8,
        object: SignalObject,
        operation: SignalOperation,
    ) {
        let Some(stream) = self.stream(stream) else { return };
        let signals = Arc::new(Signals { stream, operations: vec![operation] });
        let accesses = match object {
            SignalObject::Memory { allocation, address, width } => vec![Access {
                allocation,
                extent: Extent::Range(ByteRange::with_len(address, width.into())),
                mode: Mode::Atomic,
                basis: Basis::Exact,
            }],
            SignalObject::Semaphore(_) => vec![],
        };
        let api = match (operation, accesses.is_empty()) {
            (SignalOperation::Signal { .. }, true) => "cuSignalExternalSemaphoresAsync",
            (SignalOperation::Wait { .. }, true) => "cuWaitExternalSemaphoresAsync",
            (SignalOperation::Signal { .. }, false) => "cuStreamWriteValue32_v2",
            (SignalOperation::Wait { .. }, false) => "cuStreamWaitValue32_v2",
        };
        self.call(call, api, Action::Signals(signals), accesses);
    }

    /// Two semaphores, and the first words of two buffers.
    fn signal_object(&self, number: u8) -> SignalObject {
        match number {
            0 | 1 => SignalObject::Semaphore(SemaphoreId(u32::from(number))),
            _ => {
                let buffer = self.buffer(number - 2);
                let (allocation, address) = (buffer.id, buffer.range.start);
                SignalObject::Memory { allocation, address, width: 4 }
            }
        }
    }

    fn launch(&mut self, call: Call, stream: u8, touches: &[Touch], overlap: Overlap) {
        let Some(stream) = self.stream(stream) else { return };
        let accesses = self.accesses(touches);
        let action = Action::Launch {
            stream,
            kernel: KernelId(touches.len() as u32 - 1),
            programmatic: overlap.programmatic,
            control: overlap.control,
            cooperative: false,
            event: overlap.event.map(|(event, kind)| (self.event(event), kind)),
        };
        self.call(call, "cuLaunchKernel", action, accesses);
    }

    fn copy(&mut self, call: Call, stream: u8, sync: bool, (from, to): (u8, u8), shape: Shape) {
        let (from, to) = (self.buffer(from).clone(), self.buffer(to).clone());
        if from.id == to.id {
            return;
        }
        let Some((stream, synchronous)) = self.carrier(stream, sync) else { return };
        let common = from.range.len().min(to.range.len());
        // Each byte stands for 512, so that copies lie on either side of the 64 KiB up to which they
        // are thought to be done at return.
        let bytes = common << 9;
        let access = |buffer: &Allocation, mode| Access {
            allocation: buffer.id,
            extent: self.extent(ByteRange::with_len(buffer.range.start, common), shape),
            mode,
            basis: Basis::Exact,
        };
        let accesses = vec![access(&from, Mode::Read), access(&to, Mode::Write)];
        let action = Action::Copy(Copy {
            stream,
            synchronous,
            source: from.kind,
            destination: to.kind,
            peer: None,
            bytes,
            source_order: streamsan_model::SourceOrder::Stream,
            sync_memops: false,
        });
        let api = match (synchronous, from.kind.is_host(), to.kind.is_host()) {
            (true, true, false) => "cuMemcpyHtoD_v2",
            (true, false, true) => "cuMemcpyDtoH_v2",
            (true, false, false) => "cuMemcpyDtoD_v2",
            (true, true, true) => "cuMemcpy",
            (false, true, false) => "cuMemcpyHtoDAsync_v2",
            (false, false, true) => "cuMemcpyDtoHAsync_v2",
            (false, false, false) => "cuMemcpyDtoDAsync_v2",
            (false, true, true) => "cuMemcpyAsync",
        };
        self.call(call, api, action, accesses);
    }

    fn memset(&mut self, call: Call, stream: u8, synchronous: bool, buffer: u8, shape: Shape) {
        let buffer = self.buffer(buffer).clone();
        if buffer.kind == MemoryKind::Pageable {
            return; // The driver would refuse it.
        }
        let Some((stream, synchronous)) = self.carrier(stream, synchronous) else { return };
        let access = Access {
            allocation: buffer.id,
            extent: self.extent(buffer.range, shape),
            mode: Mode::Write,
            basis: Basis::Exact,
        };
        let action =
            Action::Memset { stream, synchronous, destination: buffer.kind, sync_memops: false };
        let api = if synchronous { "cuMemsetD8_v2" } else { "cuMemsetD8Async" };
        self.call(call, api, action, vec![access]);
    }

    fn allocate(
        &mut self,
        call: Call,
        slot: u8,
        kind: MemoryKind,
        stream: u8,
        size: Size,
        at_old_address: bool,
    ) {
        let stream = match kind {
            MemoryKind::StreamOrdered => match self.stream(stream) {
                Some(stream) => Some(stream),
                None => return,
            },
            _ => None,
        };
        let old = at_old_address.then(|| self.buffer(slot).range);
        let api = match kind {
            MemoryKind::StreamOrdered => "cuMemAllocAsync",
            MemoryKind::Pinned => "cuMemAllocHost_v2",
            MemoryKind::Managed => "cuMemAllocManaged",
            _ => "cuMemAlloc_v2",
        };
        let buffer = self.new_allocation(kind, size, old, api);
        let access = whole(&buffer, Mode::Allocate);
        let action = Action::Allocate { allocation: buffer.id, stream };
        let index = usize::from(slot) % self.buffers.len();
        self.buffers[index] = buffer;
        self.call(Call { fails: false, ..call }, api, action, vec![access]);
    }

    /// The buffer stays in use afterwards, now and then: that is what the hazards are about.
    fn free(&mut self, call: Call, slot: u8, stream: Option<u8>) {
        let buffer = self.buffer(slot).clone();
        let stream = stream.and_then(|stream| self.stream(stream));
        let (api, stream) = match buffer.kind {
            MemoryKind::Pageable => return,
            MemoryKind::Pinned => ("cuMemFreeHost", None),
            _ if stream.is_some() => ("cuMemFreeAsync", stream),
            _ => ("cuMemFree_v2", None),
        };
        let action = Action::Free { allocation: buffer.id, stream };
        self.call(call, api, action, vec![whole(&buffer, Mode::Free)]);
    }

    /// An access to a part of a buffer; whether its memory is managed makes no difference here.
    fn managed(&self, buffer: u8, shape: Shape, mode: Mode) -> Access {
        let buffer = self.buffer(buffer);
        let extent = self.extent(buffer.range, shape);
        Access { allocation: buffer.id, extent, mode, basis: Basis::Exact }
    }

    /// A stream that exists, or exists from now on.
    pub(super) fn stream(&mut self, wanted: u8) -> Option<StreamId> {
        let count = self.streams.len();
        let slot = (0..count)
            .map(|step| (usize::from(wanted) + step) % count)
            .find(|&slot| self.streams[slot].1 != Exists::NoMore)?;
        if self.streams[slot].1 == Exists::NotYet {
            let stream = self.declare_stream(slot);
            let call = Call { thread: 0, fails: false, lasts: 0 };
            self.call(call, "cuStreamCreate", Action::StreamCreate { stream }, vec![]);
        }
        Some(self.streams[slot].0.id)
    }

    /// The stream of a copy or memset: synchronous forms are issued to a default stream, and
    /// become asynchronous where the program has none.
    fn carrier(&mut self, wanted: u8, synchronous: bool) -> Option<(StreamId, bool)> {
        let default_streams: Vec<_> = self
            .streams
            .iter()
            .filter(|(s, _)| matches!(s.kind, StreamKind::Legacy | StreamKind::PerThread))
            .map(|(s, _)| s.id)
            .collect();
        if synchronous && !default_streams.is_empty() {
            Some((default_streams[usize::from(wanted) % default_streams.len()], true))
        } else {
            self.stream(wanted).map(|stream| (stream, false))
        }
    }

    fn context(&self, wanted: u8) -> ContextId {
        ContextId(u32::from(wanted) % self.contexts)
    }

    pub(super) fn event(&self, wanted: u8) -> EventId {
        self.events[usize::from(wanted) % self.events.len()]
    }

    pub(super) fn buffer(&self, wanted: u8) -> &Allocation {
        &self.buffers[usize::from(wanted) % self.buffers.len()]
    }

    /// The part of a buffer that a shape stands for; never empty, never outside.
    pub(super) fn extent(&self, buffer: ByteRange, shape: Shape) -> Extent {
        let size = buffer.len();
        let part = |start: u64, len: u64| {
            let start = buffer.start + start % size;
            let end = buffer.end.min(start + len.max(1));
            Extent::Range(ByteRange::new(start, end))
        };
        match shape {
            Shape::Whole => Extent::Range(buffer),
            Shape::Part { start, len } => {
                part(u64::from(start) * size / 16, u64::from(len) * size / 16)
            }
            Shape::Bytes { start, len } => part(u64::from(start), u64::from(len)),
            Shape::Rows { start, width, gap, rows, slices } => {
                let (width, pitch) = (u64::from(width), u64::from(width + gap));
                let start = u64::from(start) % (size - width);
                let room = (size - start - width) / pitch + 1;
                let rows = u64::from(rows).min(room).min(self.most_runs / u64::from(slices));
                let slice_pitch = rows * pitch + u64::from(gap);
                let fits = start + slice_pitch + (rows - 1) * pitch + width <= size;
                let slices = if slices == 2 && fits { 2 } else { 1 };
                let start = buffer.start + start;
                Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
                    .expect("holds a byte")
            }
        }
    }

    /// At most one access for each allocation and extent.
    pub(super) fn accesses(&self, touches: &[Touch]) -> Vec<Access> {
        let mut accesses: Vec<Access> = Vec::new();
        for touch in touches {
            let buffer = self.buffer(touch.buffer);
            let extent = self.extent(buffer.range, touch.shape);
            if !accesses.iter().any(|a| a.allocation == buffer.id && a.extent == extent) {
                let (mode, basis) = (touch.mode, touch.basis);
                accesses.push(Access { allocation: buffer.id, extent, mode, basis });
            }
        }
        accesses
    }
}

fn answer(is_complete: bool) -> Status {
    if is_complete { Status::SUCCESS } else { Status::NOT_READY }
}

fn whole(buffer: &Allocation, mode: Mode) -> Access {
    let extent = Extent::Range(buffer.range);
    Access { allocation: buffer.id, extent, mode, basis: Basis::Exact }
}
