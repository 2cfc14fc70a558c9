//! A process that makes calls, one after the other.

use crate::collect::call::{Call, FewWords, Origin, Return};
use crate::collect::resolve::Resolver;
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Entity, Extent, IncompleteReason, Mode,
    Operation, TraceItem,
};
use streamsan_wire::{Access as Touched, Api, ProcessKey, ThreadKey};

/// The context that is current in every call unless another is set.
pub(super) const CONTEXT: u64 = 0xc0;
/// `CUDA_ERROR_INVALID_VALUE`.
pub(super) const INVALID: i32 = 1;

pub(super) struct Bench {
    resolver: Resolver,
    g: u64,
    pub(super) context: u64,
    pub(super) thread: u32,
    pub(super) entities: Vec<Entity>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            resolver: Resolver::new(true),
            g: 0,
            context: CONTEXT,
            thread: 0,
            entities: Vec::new(),
        }
    }

    /// A successful call.
    pub(super) fn call(&mut self, api: Api, args: &[u64], outs: &[u64]) -> Operation {
        self.full(api, args, outs, 0, |_| ())
    }

    /// A call that the driver answered with an error.
    pub(super) fn fails(&mut self, api: Api, args: &[u64], result: i32) -> Operation {
        self.full(api, args, &[], result, |_| ())
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
            g: self.g,
            process: ProcessKey(0),
            thread: ThreadKey(self.thread),
            tid: 100 + self.thread,
            api,
            context: self.context,
            start_ns: self.g,
            args: FewWords::new(args.iter().copied()),
            pointee: None,
            inputs: Vec::new(),
            kernel_params: None,
            launch_attributes: None,
            returned: Some(Return {
                exit: self.g + 1,
                end_ns: self.g + 1,
                result,
                outs: FewWords::new(outs.iter().copied()),
            }),
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

    fn declare(&mut self, items: Vec<TraceItem>) {
        for item in items {
            let TraceItem::Entity(entity) = item else { panic!("{item:?} is no declaration") };
            self.entities.push(entity);
        }
    }

    pub(super) fn kernel(&mut self, function: u64, name: &str, params: Option<&[(u32, u32)]>) {
        let thread = ThreadKey(self.thread);
        let origin = Origin { process: ProcessKey(0), thread, tid: 100 };
        let mut items = Vec::new();
        self.resolver.kernel(origin, function, name, params.map(Box::from), &mut items);
        self.declare(items);
    }

    pub(super) fn exact(&mut self, launch: &Operation, touched: &[Touched]) -> Vec<Access> {
        let mut items = Vec::new();
        let found = self.resolver.exact_accesses(ProcessKey(0), launch.g.0, touched, &mut items);
        self.declare(items);
        found
    }

    pub(super) fn reasons(&self) -> Vec<IncompleteReason> {
        self.resolver.gaps().reasons()
    }

    /// `cuMemAlloc_v2`.
    pub(super) fn alloc(&mut self, start: u64, len: u64) -> AllocationId {
        self.allocation(Api::cuMemAlloc_v2, start, len)
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
