//! One line: one driver call, whose result must be the one that the line says.

use std::thread;

use streamsan_model::{
    Access, Action, AllocationId, ContextId, Copy, KernelId, Operation, Status, StreamId,
};

use crate::Refusal;
use crate::copies::{self, Side};
use crate::driver::{SUCCESS, address, call};
use crate::kernels::Table;
use crate::machine::Machine;
use crate::plan;

/// No handle of the driver.
const WRONG: u64 = 0xbad0;

/// How often a query is made again until the work is done, as the line says it is.
const MOST_QUERIES: usize = 1000;

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC: u64 = 6;

impl Machine {
    /// Makes the call of one line.
    pub(crate) fn perform(&mut self, operation: &Operation) -> Result<(), Refusal> {
        let name = &*operation.api;
        let expected = operation.status.0;
        let result = if plan::is_query(&operation.action) && expected == SUCCESS {
            self.query(operation)?
        } else {
            self.issue(operation)?
        };
        if result == expected {
            return Ok(());
        }
        Err(Refusal::new(format!("{name} answers {result}, and the trace says {expected}")))
    }

    /// Asks until the answer is yes.
    fn query(&mut self, operation: &Operation) -> Result<i32, Refusal> {
        for _ in 0..MOST_QUERIES {
            let result = self.issue(operation)?;
            if Status(result) != Status::NOT_READY {
                return Ok(result);
            }
            thread::yield_now();
        }
        Ok(Status::NOT_READY.0)
    }

    fn issue(&mut self, operation: &Operation) -> Result<i32, Refusal> {
        let name = &*operation.api;
        let wrong_handle = operation.status == plan::INVALID_HANDLE;
        let event = |machine: &Self, id| if wrong_handle { Ok(WRONG) } else { machine.event(id) };
        match operation.action {
            Action::ContextCreate { context } => {
                self.create_context(context)?;
                self.make_presupposed()?;
                Ok(SUCCESS)
            }
            Action::ContextDestroy { context } => self.destroy_context(context, name),
            Action::ContextSynchronize { context } => {
                self.enter(context)?;
                call(name, &[])
            }
            Action::StreamCreate { stream } => {
                self.create_stream(stream, name)?;
                Ok(SUCCESS)
            }
            Action::StreamDestroy { stream }
            | Action::StreamSynchronize { stream }
            | Action::StreamQuery { stream } => call(name, &[self.stream_in_context(stream)?]),
            Action::StreamWaitEvent { stream, event: waited } => {
                call(name, &[self.stream_in_context(stream)?, event(self, waited)?, 0])
            }
            Action::EventCreate { event } => {
                self.create_event(event)?;
                Ok(SUCCESS)
            }
            Action::EventRecord { event: recorded, stream } => {
                call(name, &[event(self, recorded)?, self.stream_in_context(stream)?])
            }
            Action::EventDestroy { event: one }
            | Action::EventSynchronize { event: one }
            | Action::EventQuery { event: one } => {
                self.enter_event(one)?;
                call(name, &[event(self, one)?])
            }
            Action::EventElapsedTime { start, end } => {
                let mut milliseconds = 0_u64;
                self.enter_event(end)?;
                let (start, end) = (self.event(start)?, self.event(end)?);
                call(name, &[address(&mut milliseconds), start, end])
            }
            Action::ContextRecordEvent { context, event: one }
            | Action::ContextWaitEvent { context, event: one } => {
                self.enter(context)?;
                call(name, &[self.context(context)?, event(self, one)?])
            }
            Action::Allocate { allocation, stream } => {
                self.allocate(allocation, name, stream)?;
                Ok(SUCCESS)
            }
            Action::Free { allocation, stream } => self.free(allocation, stream, name),
            Action::Launch { stream, kernel, .. } => self.launch(operation, stream, kernel),
            Action::Copy(copy) => self.copy(operation, &copy),
            Action::Memset { stream, synchronous, .. } => {
                self.memset(operation, stream, synchronous)
            }
            _ => Err(Refusal::new("no driver call")),
        }
    }

    fn destroy_context(&mut self, id: ContextId, name: &str) -> Result<i32, Refusal> {
        let handle = self.context(id)?;
        let primary = self.entities.context(id).filter(|context| context.primary);
        let result = match primary {
            Some(context) => call(name, &[u64::from(context.device.0)])?,
            None => call(name, &[handle])?,
        };
        self.forget_context(id);
        Ok(result)
    }

    fn free(
        &mut self,
        id: AllocationId,
        stream: Option<StreamId>,
        name: &str,
    ) -> Result<i32, Refusal> {
        let start = self.start(id)?;
        match stream {
            Some(stream) => call(name, &[start, self.stream_in_context(stream)?]),
            None => {
                if let Some(context) = self.entities.allocation(id).and_then(|a| a.context) {
                    self.enter(context)?;
                }
                call(name, &[start])
            }
        }
    }

    fn launch(
        &mut self,
        operation: &Operation,
        stream: StreamId,
        kernel: KernelId,
    ) -> Result<i32, Refusal> {
        let unknown = || Refusal::new("an unknown stream");
        let context = self.entities.stream(stream).ok_or_else(unknown)?.context;
        let handle = self.stream_in_context(stream)?;
        let gone = || Refusal::new("a kernel that is not there");
        let function = *self.functions.get(&(context, kernel)).ok_or_else(gone)?;
        for access in &operation.accesses {
            self.start(access.allocation)?;
        }
        let mut table = Table::of(&operation.accesses, |access, at| {
            self.place(access.allocation, at).unwrap_or_default()
        });
        let mut parameters = [address(&mut table.count), address(&mut table.runs)];
        let parameters = address(&mut parameters);
        // The kernel is declared to run in one thread only.
        let threads = if operation.status == plan::TOO_MANY_RESOURCES { 2 } else { 1 };
        let name = &*operation.api;
        match name {
            "cuLaunchKernel" | "cuLaunchCooperativeKernel" => {
                call(name, &[function, 1, 1, 1, threads, 1, 1, 0, handle, parameters, 0])
            }
            "cuLaunchKernelEx" => {
                let mut attribute = [PROGRAMMATIC, 1, 0, 0, 0, 0, 0, 0, 0];
                let attributes = address(&mut attribute);
                // CUlaunchConfig: six sizes of 32 bits, shared memory, stream, attributes.
                let mut config =
                    [1 | 1 << 32, 1 | threads << 32, 1 | 1 << 32, 0, handle, attributes, 1];
                call(name, &[address(&mut config), function, parameters, 0])
            }
            _ => Err(Refusal::new(format!("{name} is not known here"))),
        }
    }

    /// One side of a copy.
    fn side(&self, access: &Access) -> Result<Side, Refusal> {
        let kind = self.entities.allocation(access.allocation).map(|buffer| buffer.kind);
        Ok(Side {
            address: self.place(access.allocation, access.extent.hull().start)?,
            extent: access.extent,
            kind: kind.ok_or_else(|| Refusal::new("unknown memory"))?,
        })
    }

    fn copy(&mut self, operation: &Operation, copy: &Copy) -> Result<i32, Refusal> {
        let [from, to] = operation.accesses.as_slice() else {
            return Err(Refusal::new("a copy of nothing"));
        };
        let (to, from) = (self.side(to)?, self.side(from)?);
        let stream = self.stream_in_context(copy.stream)?;
        let stream = (!copy.synchronous).then_some(stream);
        let name = &*operation.api;
        let base = name.trim_end_matches("_ptds").trim_end_matches("_v2");
        let base = base.strip_suffix("Async").unwrap_or(base);
        let mut words = match base {
            "cuMemcpy2D" => {
                let mut descriptor = copies::flat(&to, &from, copy.bytes)?;
                return call(name, &[address(&mut descriptor), stream.unwrap_or(0)]);
            }
            "cuMemcpy3D" => {
                let mut descriptor = copies::deep(&to, &from, copy.bytes)?;
                return call(name, &[address(&mut descriptor), stream.unwrap_or(0)]);
            }
            "cuMemcpyPeer" => {
                let none = || Refusal::new("a peer copy without contexts");
                let (source, destination) = copy.peer.ok_or_else(none)?;
                let (source, destination) = (self.context(source)?, self.context(destination)?);
                vec![to.address, destination, from.address, source, copy.bytes]
            }
            "cuMemcpy" | "cuMemcpyHtoD" | "cuMemcpyDtoH" | "cuMemcpyDtoD" => {
                vec![to.address, from.address, copy.bytes]
            }
            _ => return Err(Refusal::new(format!("{name} is not known here"))),
        };
        words.extend(stream);
        call(name, &words)
    }

    fn memset(
        &mut self,
        operation: &Operation,
        stream: StreamId,
        synchronous: bool,
    ) -> Result<i32, Refusal> {
        let [access] = operation.accesses.as_slice() else {
            return Err(Refusal::new("a memset of nothing"));
        };
        let start = self.place(access.allocation, access.extent.hull().start)?;
        let stream = self.stream_in_context(stream)?;
        let [pitch, width, rows] = copies::rows(&access.extent)?;
        let name = &*operation.api;
        let mut words = match name {
            _ if name.starts_with("cuMemsetD8") && rows == 1 => vec![start, 0, width],
            _ if name.starts_with("cuMemsetD2D8") => vec![start, pitch, 0, width, rows],
            _ => return Err(Refusal::new(format!("{name} is not known here"))),
        };
        words.extend((!synchronous).then_some(stream));
        call(name, &words)
    }
}
