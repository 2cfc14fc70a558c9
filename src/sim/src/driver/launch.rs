//! Kernel launches.

use std::sync::Arc;

use super::device::{MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, MULTIPROCESSORS};
use super::function::{FunctionRef, blocks_that_fit};
use super::graph::NodeKind;
use super::sim::{Call, say};
use super::state::Driver;
use super::stream::DefaultStream;
use super::work::{Turn, Work};
use crate::errors::{CuError, Outcome};
use crate::exports::runtime::{self, Mode};
use crate::memory::{AddressMap, DeviceView};
use streamsan_interp::{
    AccessLog, Execution, FaultKind, KernelId, Launch, LaunchFault, Program, Progress,
};

/// A launch, as the program gave it, without its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchSpec {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) stream: u64,
    pub(crate) default: DefaultStream,
    pub(crate) cooperative: bool,
    /// It may start before the kernel ahead of it in the stream is done.
    pub(crate) programmatic: bool,
    /// Events that fire while the kernel runs, 0 for none: when all of its blocks have triggered,
    /// and when all have started.
    pub(crate) events: [u64; 2],
    /// The first of them fires when all blocks have started, too.
    pub(crate) at_block_start: bool,
}

impl LaunchSpec {
    /// A launch in the legacy stream with nothing special about it.
    pub(crate) fn new(
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
    ) -> LaunchSpec {
        LaunchSpec {
            function,
            grid,
            block,
            dynamic_shared,
            stream: 0,
            default: DefaultStream::Legacy,
            cooperative: false,
            programmatic: false,
            events: [0; 2],
            at_block_start: false,
        }
    }
}

/// Reads the parameters of a launch from the program, given where each one goes: offset and bytes,
/// and the bytes of the whole block.
pub(crate) trait Parameters {
    fn read(&self, layout: &[(u32, u32)], size: u32) -> Outcome<Vec<u8>>;
}

/// Instructions of one turn. A kernel that needs more lets the program and other work go on in
/// between, so that it can wait for them.
const TURN: u64 = 1 << 24;
/// Instructions of a launch at most.
const LIMIT: u64 = 1 << 35;

/// A launch that was checked, ready to run any number of times.
#[derive(Clone, Debug)]
pub(super) struct KernelTemplate {
    program: Arc<Program>,
    kernel: KernelId,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    /// The parameter block.
    pub(super) parameters: Arc<[u8]>,
    globals: Arc<[u64]>,
    pub(super) cooperative: bool,
    device: u32,
    peers: u32,
}

impl KernelTemplate {
    /// Whether the kernel executes the wait for the launches that it depends on.
    pub(super) fn waits_for_primary(&self) -> bool {
        self.program.kernel_info(self.kernel).grid_wait
    }

    /// Offset and bytes of each parameter.
    pub(super) fn layout(&self) -> &[(u32, u32)] {
        &self.program.kernel_info(self.kernel).params
    }
}

/// A kernel on its way.
#[derive(Debug)]
pub(super) struct KernelRun {
    of: KernelTemplate,
    /// The node of the graph that it is launched for, or 0.
    node: u64,
    /// Present between two turns.
    execution: Option<Execution>,
    accesses: AccessLog,
    used: u64,
}

impl Driver {
    /// Checks a launch against the function and the device.
    fn check_launch(&self, spec: &LaunchSpec, function: u64) -> Outcome {
        let function = self.functions.get(function).ok_or(CuError::INVALID_HANDLE)?;
        let info = function.code.program.kernel_info(function.kernel);
        let within = |sizes: [u32; 3], limits: [u32; 3]| {
            sizes.iter().zip(limits).all(|(size, limit)| (1..=limit).contains(size))
        };
        let threads = spec.block.iter().map(|size| u64::from(*size)).product::<u64>();
        if !within(spec.grid, MAX_GRID)
            || !within(spec.block, MAX_BLOCK)
            || threads > u64::from(MAX_THREADS_PER_BLOCK)
        {
            return Err(CuError::INVALID_VALUE);
        }
        if threads > u64::from(info.max_threads) {
            return Err(CuError::LAUNCH_OUT_OF_RESOURCES);
        }
        let allowed = u64::try_from(function.configured.dynamic_shared).unwrap_or(0);
        let dynamic = u64::from(spec.dynamic_shared);
        if dynamic > allowed {
            return Err(CuError::INVALID_VALUE);
        }
        let blocks = spec.grid.iter().map(|size| u128::from(*size)).product::<u128>();
        let fit = blocks_that_fit(info, threads as u32, dynamic);
        if spec.cooperative && blocks > fit.unsigned_abs() as u128 * u128::from(MULTIPROCESSORS) {
            return Err(CuError::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        Ok(())
    }
}

impl Driver {
    /// Checks a launch in a context and reads its parameters.
    pub(super) fn prepare_launch(
        &mut self,
        spec: &LaunchSpec,
        context: u64,
        parameters: &dyn Parameters,
    ) -> Outcome<KernelTemplate> {
        let handle = match self.launchable(spec.function) {
            FunctionRef::Function(handle) => handle,
            FunctionRef::Kernel(handle) => self.kernel_function(handle, context)?,
        };
        self.check_launch(spec, handle)?;
        let entry = self.usable(context)?;
        let (device, peers) = (entry.device, entry.peers);
        let function = self.functions.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        if function.context != context {
            return Err(CuError::INVALID_HANDLE);
        }
        let info = function.code.program.kernel_info(function.kernel);
        let bytes = parameters.read(&info.params, info.params_size)?;
        Ok(KernelTemplate {
            program: Arc::clone(&function.code.program),
            kernel: function.kernel,
            grid: spec.grid,
            block: spec.block,
            dynamic_shared: spec.dynamic_shared,
            parameters: bytes.into(),
            globals: Arc::clone(&function.globals),
            cooperative: spec.cooperative,
            device,
            peers,
        })
    }
}

impl Call {
    pub(crate) fn launch(&self, spec: &LaunchSpec, parameters: &dyn Parameters) -> Outcome {
        let mut driver = self.lock();
        let stream = driver.resolve(spec.stream, spec.default)?;
        let context = driver.streams.get(&stream).ok_or(CuError::INVALID_HANDLE)?.context;
        if driver.is_capturing(stream)? {
            let kernel = driver.kernel_node(spec, context, parameters)?;
            for event in spec.events.into_iter().filter(|event| *event != 0) {
                driver.check_fired_event(event, context)?;
            }
            let kind = NodeKind::Kernel(Box::new(kernel));
            let node = driver.capture_launch(stream, kind, spec.programmatic)?;
            driver.capture_fired(stream, node, spec);
            return Ok(());
        }
        let template = driver.prepare_launch(spec, context, parameters)?;
        for event in spec.events.into_iter().filter(|event| *event != 0) {
            driver.check_fired_event(event, context)?;
        }
        let waits = template.waits_for_primary();
        let programmatic = spec.programmatic && !waits;
        let work = Work::Kernel(Box::new(KernelRun::new(template)));
        driver.submit_kernel(stream, work, (programmatic, waits), spec.events);
        drop(self.sim.submitted(driver));
        Ok(())
    }
}

impl Call {
    /// `cuLaunchCooperativeKernelMultiDevice`: one launch a device, in streams that are no default
    /// streams. Each kernel is behind what all of the streams hold, and what the streams are given
    /// next is behind all kernels, unless `before` or `behind` is false.
    pub(crate) fn launch_multi(
        &self,
        launches: &[(LaunchSpec, &dyn Parameters)],
        before: bool,
        behind: bool,
    ) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        let (mut ready, mut devices) = (Vec::new(), Vec::new());
        for (spec, parameters) in launches {
            if spec.stream <= 2 {
                return Err(CuError::INVALID_VALUE);
            }
            let stream = driver.resolve(spec.stream, spec.default)?;
            driver.refuse_capture(stream)?;
            let context = driver.streams.get(&stream).ok_or(CuError::INVALID_HANDLE)?.context;
            let device = driver.usable(context)?.device;
            if devices.contains(&device) {
                return Err(CuError::INVALID_DEVICE);
            }
            devices.push(device);
            ready.push((stream, driver.prepare_launch(spec, context, *parameters)?));
        }
        let mut ahead = Vec::new();
        for (stream, _) in ready.iter().filter(|_| before) {
            ahead.extend(driver.stream_targets(*stream));
        }
        let (mut streams, mut ops) = (Vec::new(), Vec::new());
        for (stream, template) in ready {
            let work = Work::Kernel(Box::new(KernelRun::new(template)));
            ops.push(driver.submit(stream, work, &ahead));
            streams.push(stream);
        }
        for stream in streams.into_iter().filter(|_| behind) {
            driver.submit(stream, Work::Marker, &ops);
        }
        drop(self.sim.submitted(driver));
        Ok(())
    }
}

impl KernelRun {
    pub(super) fn new(of: KernelTemplate) -> KernelRun {
        KernelRun { of, node: 0, execution: None, accesses: AccessLog::default(), used: 0 }
    }

    /// The kernel of a graph's node.
    pub(super) fn of_node(of: KernelTemplate, node: u64) -> KernelRun {
        KernelRun { node, ..KernelRun::new(of) }
    }

    /// Runs one turn. At the end, and only then, the accesses go to the runtime.
    pub(super) fn run(&mut self, map: &Arc<AddressMap>, tag: u64) -> Turn {
        let view = DeviceView::new(Arc::clone(map), self.of.device, self.of.peers);
        let result = match self.turn(&view) {
            Ok(Progress::Paused) => return Turn::Paused,
            Ok(Progress::Finished) => Ok(()),
            Err(fault) => {
                say(&fault.to_string());
                Err(status(&fault.kind))
            }
        };
        self.report(tag);
        Turn::Done(5_000 + self.used / 100, result)
    }

    fn turn(&mut self, view: &DeviceView) -> Result<Progress, LaunchFault> {
        let mut execution = match self.execution.take() {
            Some(execution) => execution,
            None => {
                let launch = Launch {
                    kernel: self.of.kernel,
                    grid: self.of.grid,
                    block: self.of.block,
                    dynamic_shared: self.of.dynamic_shared,
                    params: &self.of.parameters,
                    global_addresses: &self.of.globals,
                    cooperative: self.of.cooperative,
                };
                Execution::new(&self.of.program, &launch)?
            }
        };
        let progress = execution.step(&self.of.program, view, &mut self.accesses, TURN)?;
        if progress == Progress::Paused {
            self.used += TURN;
            if self.used >= LIMIT {
                return Err(execution.timeout(&self.of.program));
            }
            self.execution = Some(execution);
        }
        Ok(progress)
    }

    fn report(&mut self, tag: u64) {
        let mut accesses = std::mem::take(&mut self.accesses);
        let before_wait = accesses.before_wait.take().map(|log| *log);
        let mut list = Vec::new();
        for (log, early) in
            before_wait.into_iter().map(|log| (log, true)).chain([(accesses, false)])
        {
            let AccessLog { weak, strong, .. } = log;
            let sets = [
                (weak.reads, Mode::Read),
                (weak.writes, Mode::Write),
                (weak.atomics, Mode::Atomic),
                (strong.reads, Mode::StrongRead),
                (strong.writes, Mode::StrongWrite),
                (strong.atomics, Mode::StrongAtomic),
            ];
            for (set, mode) in sets {
                list.extend(set.ranges().into_iter().map(|range| (range, mode, early)));
            }
        }
        let kernel = &self.of.program.kernel_info(self.of.kernel).name;
        runtime::report_accesses((tag, self.node), kernel, &list);
    }
}

/// The status that a fault leaves in its context.
fn status(kind: &FaultKind) -> CuError {
    match kind {
        FaultKind::IllegalAddress { .. } => CuError::ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress { .. } => CuError::MISALIGNED_ADDRESS,
        FaultKind::Trap => CuError::LAUNCH_FAILED,
        FaultKind::InvalidProgramCounter => CuError::INVALID_PC,
        FaultKind::Timeout | FaultKind::Deadlock => CuError::LAUNCH_TIMEOUT,
        FaultKind::Assert(_) => CuError::ASSERT,
        FaultKind::Unsupported(_) => CuError::NOT_SUPPORTED,
    }
}
