//! The collector's parts without rings and processes, for benchmarks: calls go in by hand.
//!
//! Not part of the crate's interface: the feature `measure` exists for `benches`.

use crate::call::{Call, FewWords, LoadedImage, Origin, Return};
use crate::kernel_code::Answer;
use crate::listener::Silent;
use crate::merge::{FirstLaunch, Merge, Policy, Ready};
use crate::recorder::{Recorder, Recording};
use crate::resolve::Resolver;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use streamsan_analysis::HostModel;
use streamsan_kernels::access::analyse_kernel;
use streamsan_kernels::ptx;
use streamsan_kernels::reader::CodeForm;
use streamsan_model::TraceItem;
use streamsan_store::{Coverage, Error, Meta, Writer};
use streamsan_wire::{Api, ImageOrigin, ProcessKey, ThreadKey};

const CONTEXT: u64 = 0xc0;
const MODULE: u64 = 0xd0;
const FUNCTION: u64 = 0xf00;
const STREAMS: [u64; 2] = [0x510, 0x520];
const EVENTS: [u64; 2] = [0xe10, 0xe20];
const FIRST: u64 = 0x10_0000;
const SECOND: u64 = 0x20_0000;
const BYTES: u64 = 0x1000;
const THREADS: u64 = 32;
/// Offset and size of the kernel's parameters.
const LAYOUT: [(u32, u32); 2] = [(0, 8), (8, 8)];

/// Each thread copies a word from the first buffer to the second one.
const COPY: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 first, .param .u64 second)
{
    .reg .b32 %w, %i;
    .reg .b64 %a, %b, %o;
    ld.param.u64 %a, [first];
    ld.param.u64 %b, [second];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.s64 %a, %a, %o;
    add.s64 %b, %b, %o;
    ld.global.u32 %w, [%a];
    st.global.u32 [%b], %w;
    ret;
}
";

/// Whether launches are known by the code of their kernel, or by their words for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// The code was read before the first launch.
    Code,
    /// The code was not seen being loaded.
    Words,
}

fn call(g: u64, api: Api, args: &[u64], outs: &[u64]) -> Call {
    let (process, thread) = (ProcessKey(0), ThreadKey(0));
    let outs = FewWords::new(outs.iter().copied());
    Call {
        api,
        context: CONTEXT,
        start_ns: g,
        args: FewWords::new(args.iter().copied()),
        tid: 100,
        thread,
        returned: Some(Return { exit: g + 1, end_ns: g + 1, result: 0, outs }),
        ..Call::at(g, process)
    }
}

fn launch(g: u64, stream: u64, threads: u64, first: u64) -> Call {
    let params: Vec<u8> = [first, SECOND].iter().flat_map(|word| word.to_le_bytes()).collect();
    let args = [FUNCTION, 1, 1, 1, threads, 1, 1, 0, stream, 0x10, 0];
    Call { kernel_params: Some(params.into()), ..call(g, Api::cuLaunchKernel, &args, &[]) }
}

/// A program with two buffers, two streams, two events and a kernel.
fn prepare(resolver: &mut Resolver, known_by: KnownBy, items: &mut Vec<TraceItem>) -> u64 {
    let mut calls = vec![
        call(2, Api::cuDevicePrimaryCtxRetain, &[0x10, 0], &[CONTEXT, 1 | 9 << 8]),
        call(4, Api::cuMemAlloc_v2, &[0x10, BYTES], &[FIRST]),
        call(6, Api::cuMemAlloc_v2, &[0x10, BYTES], &[SECOND]),
        call(8, Api::cuStreamCreate, &[0x10, 1], &[STREAMS[0], 1]),
        call(10, Api::cuStreamCreate, &[0x10, 1], &[STREAMS[1], 2]),
        call(12, Api::cuEventCreate, &[0x10, 2], &[EVENTS[0]]),
        call(14, Api::cuEventCreate, &[0x10, 2], &[EVENTS[1]]),
    ];
    if known_by == KnownBy::Code {
        let (origin, path) = (ImageOrigin::Copied, Box::default());
        let image = LoadedImage { origin, hash: 7, offset: 0, size: 100, path };
        let load = call(16, Api::cuModuleLoadData, &[0x10, 0x20], &[MODULE]);
        calls.push(Call { images: vec![image], ..load });
        let look_up = call(18, Api::cuModuleGetFunction, &[0x10, MODULE, 0x20], &[FUNCTION]);
        calls.push(Call { pointee: Some(b"kernel".as_slice().into()), ..look_up });
    }
    calls.iter().for_each(|call| resolver.call(call, None, items));
    let origin = Origin { process: ProcessKey(0), thread: ThreadKey(0), tid: 100 };
    let (name, params) = ("kernel".into(), Some(LAYOUT.as_slice().into()));
    resolver.kernel(&FirstLaunch { origin, function: FUNCTION, name, params, home: 0 }, items);
    for question in resolver.questions().0 {
        let read = ptx::parse(COPY).ok().and_then(|module| analyse_kernel(&module, "kernel"));
        let access = read.and_then(Result::ok).expect("the kernel is read");
        let outcome = Ok((Arc::new(access), CodeForm::Ptx));
        resolver.learn(Answer { code: question.code, image: Some(0), outcome }, items);
    }
    20
}

/// Resolves launches, and nothing else.
pub struct Launches {
    resolver: Resolver,
    items: Vec<TraceItem>,
    g: u64,
}

impl std::fmt::Debug for Launches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launches").field("g", &self.g).finish_non_exhaustive()
    }
}

impl Launches {
    /// A program that is about to launch its kernel.
    #[must_use]
    pub fn new(known_by: KnownBy) -> Self {
        let (mut resolver, mut items) = (Resolver::new(false), Vec::new());
        let g = prepare(&mut resolver, known_by, &mut items);
        Self { resolver, items, g }
    }

    /// Resolves one launch of a block of `threads` threads on the first buffer from byte `offset`
    /// on. Answers how many accesses the launch has.
    pub fn launch(&mut self, threads: u64, offset: u64) -> usize {
        self.items.clear();
        self.g += 2;
        let call = launch(self.g, STREAMS[0], threads, FIRST + offset);
        self.resolver.call(&call, None, &mut self.items);
        match self.items.last() {
            Some(TraceItem::Operation(operation)) => operation.accesses.len(),
            _ => 0,
        }
    }
}

/// The way of records behind the rings: merge, resolve, engine and store.
pub struct Pipeline {
    merge: Merge,
    resolver: Resolver,
    recorder: Recorder,
    items: Vec<TraceItem>,
    g: u64,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("g", &self.g).finish_non_exhaustive()
    }
}

struct Everything;

impl Policy for Everything {
    fn needs_return(&self, _: Api) -> bool {
        false
    }

    fn has_ended(&self, _: ProcessKey) -> bool {
        false
    }
}

impl Pipeline {
    /// Records of a round: six calls, each with its entry and its return.
    pub const RECORDS: u64 = 12;

    /// A program that is about to begin its loop; `trace` is where it is recorded.
    ///
    /// # Errors
    /// When the trace cannot be created.
    pub fn new(trace: &Path, meta: &Meta) -> Result<Self, Error> {
        let writer = Writer::create(trace, meta)?;
        let listener = Arc::new(Silent);
        let mut recorder =
            Recorder::new(trace, writer, false, None, HostModel::default(), listener);
        let (mut resolver, mut items) = (Resolver::new(false), Vec::new());
        let g = prepare(&mut resolver, KnownBy::Code, &mut items);
        items.drain(..).for_each(|item| recorder.item(&item));
        Ok(Self { merge: Merge::default(), resolver, recorder, items, g })
    }

    /// Two streams that wait for each other's kernel: launch, record, wait, and back.
    pub fn round(&mut self) {
        for (this, other) in [(0, 1), (1, 0)] {
            let (stream, event) = (STREAMS[this], EVENTS[this]);
            let next = |n: u64| self.g + 2 * n;
            let calls = [
                launch(next(1), stream, THREADS, FIRST),
                call(next(2), Api::cuEventRecord, &[event, stream], &[]),
                call(next(3), Api::cuStreamWaitEvent, &[STREAMS[other], event, 0], &[]),
            ];
            self.g = next(3);
            calls.into_iter().for_each(|call| self.take(call));
        }
    }

    fn take(&mut self, mut call: Call) {
        let now = Instant::now();
        let (g, thread, returned) = (call.g, call.thread, call.returned.take());
        self.merge.begin(call, 0, now);
        if let Some(returned) = returned {
            self.items.extend(self.merge.end(thread, g, returned));
        }
        while let Some(Ready::Call(call)) = self.merge.next(now, &Everything) {
            self.resolver.call(&call, None, &mut self.items);
        }
        self.items.drain(..).for_each(|item| self.recorder.item(&item));
    }

    /// Makes safe what was taken, and concludes.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.recorder.finish(false, Coverage::default(), Vec::new())
    }
}
