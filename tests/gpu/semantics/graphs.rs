//! Graphs, and launches that may begin early.

use crate::Check;
use crate::lab::{END, Failure, HOLD, Lab, MARK, MIDDLE, ok};
use cudarc::driver::sys::{self, CUevent, CUgraph, CUgraphExec, CUgraphNode, CUstream};
use std::ptr;

/// A graph that is being captured, then an executable one.
pub(crate) struct Executable {
    graph: CUgraph,
    pub(crate) executable: CUgraphExec,
}

impl Executable {
    /// Captures what `work` issues to `stream`.
    pub(crate) fn capture(
        stream: CUstream,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        use sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as MODE;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive; the pointer leads to a local variable.
        unsafe {
            ok(sys::cuStreamBeginCapture_v2(stream, MODE))?;
            let done = work();
            ok(sys::cuStreamEndCapture(stream, &raw mut graph))?;
            done?;
        }
        Self::of(graph)
    }

    /// Makes a graph executable.
    pub(crate) fn of(graph: CUgraph) -> Result<Self, Failure> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is alive; the pointer leads to a local variable.
        ok(unsafe { sys::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0) })?;
        Ok(Self { graph, executable })
    }

    pub(crate) fn launch(&self, stream: CUstream) -> Result<(), Failure> {
        // SAFETY: both are alive.
        ok(unsafe { sys::cuGraphLaunch(self.executable, stream) })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: nothing runs any more; a failure leaves them to the end of the process.
        unsafe {
            let _ = sys::cuCtxSynchronize();
            let _ = sys::cuGraphExecDestroy(self.executable);
            let _ = sys::cuGraphDestroy(self.graph);
        }
    }
}

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "two launches of one executable graph in two streams",
        documented: "ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            // The mark is of the second launch only when it was cleared behind the first one.
            let graph = Executable::capture(a, || lab.hold(a))?;
            graph.launch(a)?;
            graph.launch(b)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "launches of two executables of one graph in two streams",
        documented: "not ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            let held = Executable::capture(a, || lab.hold(a))?;
            let other = Executable::capture(a, || lab.mark(a))?;
            held.launch(a)?;
            other.launch(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "work behind a graph launch in its stream",
        documented: "ordered",
        trial: |lab| {
            let a = lab.nonblocking()?;
            let graph = Executable::capture(a, || lab.hold(a))?;
            graph.launch(a)?;
            lab.mark(a)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "two nodes without an edge, captured from two streams",
        documented: "not ordered",
        trial: |lab| forked(lab, false),
    },
    Check {
        name: "two nodes with an edge, captured from two streams",
        documented: "ordered",
        trial: |lab| forked(lab, true),
    },
    Check {
        name: "stream that waits for an event recorded by a node before the held one",
        documented: "not ordered with the held node",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            let graph = record_then_hold(lab, event)?;
            graph.launch(a)?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "secondary kernel (programmatic serialization) that does not wait",
        documented: "not ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            primary(lab, stream)?;
            secondary(lab, stream, lab.kernels.mark, MARK)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "secondary kernel that executes the wait",
        documented: "ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            primary(lab, stream)?;
            secondary(lab, stream, lab.kernels.wait_and_mark, MARK)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "ordinary kernel behind a secondary one that does not wait",
        documented: "ordered with both",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            primary(lab, stream)?;
            secondary(lab, stream, lab.kernels.mark, MIDDLE)?;
            lab.mark(stream)?;
            lab.mark_waits()
        },
    },
];

/// A held node and a mark, forked over two streams; joined before the mark or after it.
fn forked(lab: &mut Lab, with_edge: bool) -> Result<bool, Failure> {
    let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
    let (fork, join) = (lab.event()?, lab.event()?);
    let graph = Executable::capture(a, || {
        lab.record(fork, a)?;
        lab.wait(b, fork)?;
        lab.hold(a)?;
        if with_edge {
            lab.record(fork, a)?;
            lab.wait(b, fork)?;
        }
        lab.mark(b)?;
        lab.record(join, b)?;
        lab.wait(a, join)
    })?;
    graph.launch(a)?;
    lab.mark_waits()
}

/// A graph of an event record node and, behind it, a kernel that holds.
fn record_then_hold(lab: &Lab, event: CUevent) -> Result<Executable, Failure> {
    let (mut graph, mut record): (CUgraph, CUgraphNode) = (ptr::null_mut(), ptr::null_mut());
    let mut node: CUgraphNode = ptr::null_mut();
    let arguments = [HOLD.as_nanos() as u64, lab.address(END)];
    let mut pointers = [
        ptr::from_ref(&arguments[0]).cast_mut().cast(),
        ptr::from_ref(&arguments[1]).cast_mut().cast(),
    ];
    // SAFETY: all zeroes is a value of this plain structure of C.
    let mut params: sys::CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.func = lab.kernels.hold;
    params.gridDimX = 1;
    params.gridDimY = 1;
    params.gridDimZ = 1;
    params.blockDimX = 1;
    params.blockDimY = 1;
    params.blockDimZ = 1;
    params.kernelParams = pointers.as_mut_ptr();
    // SAFETY: every pointer leads to a local variable that outlives its call.
    unsafe {
        ok(sys::cuGraphCreate(&raw mut graph, 0))?;
        ok(sys::cuGraphAddEventRecordNode(&raw mut record, graph, ptr::null(), 0, event))?;
        ok(sys::cuGraphAddKernelNode_v2(
            &raw mut node,
            graph,
            &raw const record,
            1,
            &raw const params,
        ))?;
    }
    Executable::of(graph)
}

/// A kernel that lets its dependents begin and holds.
pub(crate) fn primary(lab: &Lab, stream: CUstream) -> Result<(), Failure> {
    let arguments = [HOLD.as_nanos() as u64, lab.address(END)];
    lab.launch(lab.kernels.trigger_and_hold, stream, &arguments)
}

/// A kernel with programmatic stream serialization that marks `word`.
pub(crate) fn secondary(
    lab: &Lab,
    stream: CUstream,
    kernel: sys::CUfunction,
    word: usize,
) -> Result<(), Failure> {
    // SAFETY: all zeroes is a value of this plain structure of C.
    let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    lab.launch_with(kernel, stream, &[lab.address(word)], &mut [attribute])
}
