//! A process that makes calls, one after the other.

use crate::call::{Call, FewWords, Origin, Return};
use crate::host_event::{HostEvent, HostReturn};
use crate::kernel_code::{Answer, Question};
use crate::launch::KnownLaunch;
use crate::merge::FirstLaunch;
use crate::resolve::Resolver;
use streamsan_model::{
    Access, Action, Allocation, AllocationId, Basis, ByteRange, Entity, Extent, IncompleteReason,
    Mode, Operation, TraceItem,
};
use streamsan_store::KernelCount;
use streamsan_wire::{Access as Touched, Api, HostCall, ProcessKey, ThreadKey};

/// The context that is current in every call unless another is set.
pub(super) const CONTEXT: u64 = 0xc0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub(super) const INVALID: i32 = 1;

pub(super) struct Bench {
    resolver: Resolver,
    g: u64,
    pub(super) context: u64,
    pub(super) thread: u32,
    /// The process that makes the next calls; its threads are numbered apart.
    pub(super) process: u32,
    pub(super) entities: Vec<Entity>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            resolver: Resolver::new(true),
            g: 0,
            context: CONTEXT,
            thread: 0,
            process: 0,
            entities: Vec::new(),
        }
    }

    /// Nobody tells what kernels touch.
    pub(super) fn without_exact_accesses() -> Self {
        Self { resolver: Resolver::new(false), ..Self::new() }
    }

    /// How many pieces the resolver keeps.
    pub(super) fn kept(&self) -> usize {
        self.resolver.kept()
    }

    /// The kernels to be read.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        self.resolver.questions().0
    }

    /// How many kernels are waited for that were launched.
    pub(super) fn unread(&self) -> usize {
        self.resolver.unread().map_or(0, |(count, _)| count)
    }

    /// Takes the answer of the reader for a kernel; returns what its earlier launches touched.
    pub(super) fn learn(&mut self, answer: Answer) -> Vec<KnownLaunch> {
        self.read(answer);
        self.look_again(usize::MAX)
    }

    /// Takes the answer of the reader for a kernel.
    pub(super) fn read(&mut self, answer: Answer) {
        let mut items = Vec::new();
        self.resolver.learn(answer, &mut items);
        self.declare(items);
    }

    /// Looks at launches again, at most so many.
    pub(super) fn look_again(&mut self, most: usize) -> Vec<KnownLaunch> {
        let mut items = Vec::new();
        let learnt = self.resolver.look_again(most, &mut items);
        self.declare(items);
        learnt
    }

    pub(super) fn give_up(&mut self) {
        let mut items = Vec::new();
        self.resolver.give_up(&mut items);
        self.declare(items);
    }

    /// The gaps of kernels, which are only counted.
    pub(super) fn gaps(&self) -> Vec<KernelCount> {
        self.resolver.gaps().kernels()
    }

    /// A successful call.
    pub(super) fn call(&mut self, api: Api, args: &[u64], outs: &[u64]) -> Operation {
        self.full(api, args, outs, 0, |_| ())
    }

    /// A call that the driver answered with an error.
    pub(super) fn fails(&mut self, api: Api, args: &[u64], result: i32) -> Operation {
        self.full(api, args, &[], result, |_| ())
    }

    fn origin(&self) -> Origin {
        Origin {
            process: ProcessKey(self.process),
            thread: ThreadKey(self.thread + 10 * self.process),
            tid: 100 + self.thread,
        }
    }

    pub(super) fn full(
        &mut self,
        api: Api,
        args: &[u64],
        outs: &[u64],
        result: i32,
        change: impl FnOnce(&mut Call),
    ) -> Operation {
        self.g += 10;
        let mut call = Call {
            context: self.context,
            start_ns: self.g,
            args: FewWords::new(args.iter().copied()),
            returned: Some(Return {
                exit: self.g + 1,
                end_ns: self.g + 1,
                result,
                outs: FewWords::new(outs.iter().copied()),
            }),
            ..Call::bare(self.g, self.origin(), api)
        };
        change(&mut call);
        let mut items = Vec::new();
        self.resolver.call(&call, None, &mut items);
        let Some(TraceItem::Operation(operation)) = items.pop() else {
            panic!("the operation comes last")
        };
        self.declare(items);
        operation
    }

    /// A host thread says something; `result` where that takes time.
    pub(super) fn host(
        &mut self,
        call: HostCall,
        args: &[u64],
        text: &str,
        result: Option<i64>,
    ) -> Option<Operation> {
        self.g += 10;
        let exit = self.g + 1;
        let event = HostEvent {
            g: self.g,
            origin: self.origin(),
            call,
            args: args.into(),
            text: text.into(),
            start_ns: self.g,
            stack: None,
            returned: result.map(|result| HostReturn { exit, end_ns: exit, result }),
        };
        let mut items = Vec::new();
        self.resolver.host(&event, &mut items);
        let operation = match items.pop() {
            Some(TraceItem::Operation(operation)) => Some(operation),
            last => {
                items.extend(last);
                None
            }
        };
        self.declare(items);
        operation
    }

    fn declare(&mut self, items: Vec<TraceItem>) {
        for item in items {
            let TraceItem::Entity(entity) = item else { panic!("{item:?} is no declaration") };
            self.entities.push(entity);
        }
    }

    pub(super) fn kernel(&mut self, function: u64, name: &str, params: Option<&[(u32, u32)]>) {
        self.kernel_from(0, function, name, params);
    }

    /// The driver says where the kernel comes from.
    pub(super) fn kernel_from(
        &mut self,
        home: u64,
        function: u64,
        name: &str,
        params: Option<&[(u32, u32)]>,
    ) {
        let thread = ThreadKey(self.thread);
        let origin = Origin { process: ProcessKey(0), thread, tid: 100 };
        let mut items = Vec::new();
        let first = FirstLaunch {
            origin,
            function,
            name: name.into(),
            params: params.map(Box::from),
            home,
        };
        self.resolver.kernel(&first, &mut items);
        self.declare(items);
    }

    pub(super) fn exact(&mut self, launch: &Operation, touched: &[Touched]) -> Vec<Access> {
        let mut items = Vec::new();
        let found = self.resolver.exact_accesses(ProcessKey(0), launch.g.0, touched, &mut items);
        self.declare(items);
        found.0
    }

    pub(super) fn reasons(&self) -> Vec<IncompleteReason> {
        self.resolver.gaps().reasons()
    }

    /// `cuMemAlloc_v2`.
    pub(super) fn alloc(&mut self, start: u64, len: u64) -> AllocationId {
        self.allocation(Api::cuMemAlloc_v2, start, len)
    }

    /// A successful call with one parameter that is read through.
    pub(super) fn reads(
        &mut self,
        api: Api,
        args: &[u64],
        outs: &[u64],
        pointee: Box<[u8]>,
    ) -> Operation {
        self.full(api, args, outs, 0, |call| call.pointee = Some(pointee))
    }

    /// A successful call with several parameters that are read through, by their indices.
    pub(super) fn lists(&mut self, api: Api, args: &[u64], lists: &[(u32, &[u8])]) -> Operation {
        self.full(api, args, &[], 0, |call| {
            call.inputs = lists.iter().map(|&(tag, bytes)| (tag, bytes.into())).collect();
        })
    }

    /// The declaration of an allocation, the last one.
    pub(super) fn declared(&self, id: AllocationId) -> &Allocation {
        let found = self.entities.iter().rev().find_map(|entity| match entity {
            Entity::Allocation(allocation) if allocation.id == id => Some(allocation),
            _ => None,
        });
        found.expect("declared")
    }

    /// Any call `(out address, bytes, ...)`.
    pub(super) fn allocation(&mut self, api: Api, start: u64, len: u64) -> AllocationId {
        let operation = self.call(api, &[0x10, len], &[start]);
        match operation.action {
            Action::Allocate { allocation, .. } => allocation,
            other => panic!("{other:?} is no allocation"),
        }
    }
}

/// An exact access to a range.
pub(super) fn exact(allocation: AllocationId, start: u64, len: u64, mode: Mode) -> Access {
    let extent = Extent::Range(ByteRange::with_len(start, len));
    Access { allocation, extent, mode, basis: Basis::Exact }
}

/// Words as the bytes of a list.
pub(super) fn words(words: &[u64]) -> Box<[u8]> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A structure of `size` bytes with these words at these offsets.
pub(super) fn structure(size: usize, words: &[(usize, u64)]) -> Box<[u8]> {
    let mut bytes = vec![0; size + 8];
    for &(at, word) in words {
        for (byte, value) in bytes[at..at + 8].iter_mut().zip(word.to_le_bytes()) {
            *byte |= value;
        }
    }
    bytes.truncate(size);
    bytes.into()
}
