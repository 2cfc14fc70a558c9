//! Graphs: capture, explicit nodes, executables.

use std::ptr;

use cudarc::driver::sys;

use crate::kernel::{self, Slots};
use crate::{Arg, DeviceRange, Event, Failure, Kernel, Stream};

/// A graph under construction. Not destroyed on drop: a program shows its calls.
#[derive(Debug)]
pub struct Graph(sys::CUgraph);

/// A node of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Node(sys::CUgraphNode);

/// An executable graph.
#[derive(Debug)]
pub struct Executable(sys::CUgraphExec);

fn memset(target: DeviceRange, value: u8) -> sys::CUDA_MEMSET_NODE_PARAMS {
    sys::CUDA_MEMSET_NODE_PARAMS {
        dst: target.address(),
        pitch: 0,
        value: value.into(),
        elementSize: 1,
        width: target.len(),
        height: 1,
    }
}

fn launch(kernel: Kernel, threads: u32, slots: &mut Slots) -> sys::CUDA_KERNEL_NODE_PARAMS_v2 {
    let [columns, rows, layers] = kernel::grid(threads, 1);
    // A library's kernel goes where it counts only without a function.
    let (func, kern) = match kernel {
        Kernel::OfModule(function) => (function, ptr::null_mut()),
        Kernel::OfLibrary(kernel) => (ptr::null_mut(), kernel),
    };
    sys::CUDA_KERNEL_NODE_PARAMS_v2 {
        func,
        gridDimX: columns,
        gridDimY: rows,
        gridDimZ: layers,
        blockDimX: kernel::BLOCK,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: slots.pointers().as_mut_ptr(),
        extra: ptr::null_mut(),
        kern,
        ctx: ptr::null_mut(),
    }
}

fn current_context() -> Result<sys::CUcontext, Failure> {
    let mut context = ptr::null_mut();
    // SAFETY: the out-pointer is valid.
    unsafe { sys::cuCtxGetCurrent(&raw mut context) }.result()?;
    Ok(context)
}

impl Stream {
    /// Begins a capture that other threads do not disturb.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn begin_capture(&self) -> Result<(), Failure> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        Ok(unsafe { sys::cuStreamBeginCapture_v2(self.raw(), mode) }.result()?)
    }

    /// Begins a capture that adds to a graph.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn begin_capture_to(&self, graph: &Graph) -> Result<(), Failure> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let (nodes, data) = (ptr::null(), ptr::null());
        // SAFETY: stream and graph are alive; what is captured depends on no node.
        let status =
            unsafe { sys::cuStreamBeginCaptureToGraph(self.raw(), graph.0, nodes, data, 0, mode) };
        Ok(status.result()?)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn end_capture(&self) -> Result<Graph, Failure> {
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive, the out-pointer is valid.
        unsafe { sys::cuStreamEndCapture(self.raw(), &raw mut graph) }.result()?;
        Ok(Graph(graph))
    }
}

impl Graph {
    /// An empty graph.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create() -> Result<Self, Failure> {
        let mut graph = ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        unsafe { sys::cuGraphCreate(&raw mut graph, 0) }.result()?;
        Ok(Self(graph))
    }

    fn add(
        &self,
        after: &[Node],
        add: impl FnOnce(*mut sys::CUgraphNode, *const sys::CUgraphNode, usize) -> sys::CUresult,
    ) -> Result<Node, Failure> {
        let mut node = ptr::null_mut();
        let after: Vec<sys::CUgraphNode> = after.iter().map(|node| node.0).collect();
        add(&raw mut node, after.as_ptr(), after.len()).result()?;
        Ok(Node(node))
    }

    /// A memset of every byte, behind `after`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_memset(
        &self,
        after: &[Node],
        target: DeviceRange,
        value: u8,
    ) -> Result<Node, Failure> {
        let (params, context) = (memset(target, value), current_context()?);
        // SAFETY: the graph is alive; nodes and parameters live until the call returns.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddMemsetNode(node, self.0, after, count, &raw const params, context)
        })
    }

    /// A launch of at least `threads` threads, in blocks of 64, behind `after`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_kernel(
        &self,
        after: &[Node],
        kernel: Kernel,
        threads: u32,
        arguments: &[Arg],
    ) -> Result<Node, Failure> {
        let mut slots = Slots::new(arguments);
        let params = launch(kernel, threads, &mut slots);
        // SAFETY: the graph is alive and the kernel is loaded; nodes, parameters and arguments live
        // until the call returns.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddKernelNode_v2(node, self.0, after, count, &raw const params)
        })
    }

    /// A node that runs its body in every launch: a condition that no kernel changes, and that is
    /// met. The body is empty and belongs to the node.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_if(&self, after: &[Node]) -> Result<(Node, Self), Failure> {
        let (mut condition, met) = (0, 1);
        let (context, flags) = (current_context()?, sys::CU_GRAPH_COND_ASSIGN_DEFAULT);
        // SAFETY: the graph and the context are alive, the out-pointer is valid.
        unsafe {
            sys::cuGraphConditionalHandleCreate(&raw mut condition, self.0, context, met, flags)
                .result()?;
        }
        // SAFETY: all zeroes is a value of this plain structure of C.
        let mut params: sys::CUgraphNodeParams = unsafe { std::mem::zeroed() };
        params.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle: condition,
            type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            size: 1,
            phGraph_out: ptr::null_mut(),
            ctx: context,
        };
        // SAFETY: the graph is alive; without data the edges are plain ones, and the parameters live
        // until the call returns.
        let node = self.add(after, |node, after, count| unsafe {
            let parameters = &raw mut params;
            sys::cuGraphAddNode_v2(node, self.0, after, ptr::null(), count, parameters)
        })?;
        // SAFETY: the driver has written where its list of one body is, which lives as the node does.
        let body = unsafe { params.__bindgen_anon_1.conditional.phGraph_out.read() };
        Ok((node, Self(body)))
    }

    /// The graph launches another kernel in a node's place.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn set_kernel(
        &self,
        node: Node,
        kernel: Kernel,
        threads: u32,
        arguments: &[Arg],
    ) -> Result<(), Failure> {
        let mut slots = Slots::new(arguments);
        let params = launch(kernel, threads, &mut slots);
        // SAFETY: the node is one of this graph, which is alive; parameters as above.
        Ok(unsafe { sys::cuGraphKernelNodeSetParams_v2(node.0, &raw const params) }.result()?)
    }

    /// Its nodes, in the order in which they were made.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn nodes(&self) -> Result<Vec<Node>, Failure> {
        let mut count = 0;
        // SAFETY: the graph is alive; without a list the driver counts.
        unsafe { sys::cuGraphGetNodes(self.0, ptr::null_mut(), &raw mut count) }.result()?;
        let mut nodes = vec![ptr::null_mut(); count];
        // SAFETY: room for `count` nodes.
        unsafe { sys::cuGraphGetNodes(self.0, nodes.as_mut_ptr(), &raw mut count) }.result()?;
        Ok(nodes.into_iter().map(Node).collect())
    }

    /// A copy of the graph with nodes of its own.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn try_clone(&self) -> Result<Self, Failure> {
        let mut clone = ptr::null_mut();
        // SAFETY: the graph is alive, the out-pointer is valid.
        unsafe { sys::cuGraphClone(&raw mut clone, self.0) }.result()?;
        Ok(Self(clone))
    }

    /// A node that records an event in every launch.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_record(&self, after: &[Node], event: &Event) -> Result<Node, Failure> {
        // SAFETY: graph and event are alive.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddEventRecordNode(node, self.0, after, count, event.raw())
        })
    }

    /// A node that waits for an event in every launch.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_wait(&self, after: &[Node], event: &Event) -> Result<Node, Failure> {
        // SAFETY: graph and event are alive.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddEventWaitNode(node, self.0, after, count, event.raw())
        })
    }

    /// A clone of another graph as one node.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_child(&self, after: &[Node], child: &Self) -> Result<Node, Failure> {
        // SAFETY: both graphs are alive.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddChildGraphNode(node, self.0, after, count, child.0)
        })
    }

    /// A node that allocates `len` bytes, and where they are.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_alloc(&self, after: &[Node], len: usize) -> Result<(Node, DeviceRange), Failure> {
        // SAFETY: all zeroes is a value of this plain structure of C.
        let mut params: sys::CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
        params.poolProps.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        params.bytesize = len;
        // SAFETY: the graph is alive; the parameters live until the call returns.
        let node = self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddMemAllocNode(node, self.0, after, count, &raw mut params)
        })?;
        Ok((node, DeviceRange::at(params.dptr, len)))
    }

    /// A node that frees what another node allocates.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn add_free(&self, after: &[Node], memory: DeviceRange) -> Result<Node, Failure> {
        // SAFETY: the graph is alive.
        self.add(after, |node, after, count| unsafe {
            sys::cuGraphAddMemFreeNode(node, self.0, after, count, memory.address())
        })
    }

    /// Makes it executable.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn instantiate(&self) -> Result<Executable, Failure> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is alive, the out-pointer is valid.
        unsafe { sys::cuGraphInstantiateWithFlags(&raw mut executable, self.0, 0) }.result()?;
        Ok(Executable(executable))
    }

    /// Destroys the graph; executables made of it stay.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: made once, taken here, so destroyed once.
        Ok(unsafe { sys::cuGraphDestroy(self.0) }.result()?)
    }
}

impl Executable {
    /// Launches it in stream order.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn launch(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both are alive.
        Ok(unsafe { sys::cuGraphLaunch(self.0, stream.raw()) }.result()?)
    }

    /// Puts it into memory ahead of a launch.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn upload(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both are alive.
        Ok(unsafe { sys::cuGraphUpload(self.0, stream.raw()) }.result()?)
    }

    /// Later launches set other bytes.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn set_memset(&self, node: Node, target: DeviceRange, value: u8) -> Result<(), Failure> {
        let (params, context) = (memset(target, value), current_context()?);
        // SAFETY: the executable is alive, and the node is one of the graph it was made of.
        let status = unsafe {
            sys::cuGraphExecMemsetNodeSetParams(self.0, node.0, &raw const params, context)
        };
        Ok(status.result()?)
    }

    /// Later launches run another kernel, or the same with other arguments.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn set_kernel(
        &self,
        node: Node,
        kernel: Kernel,
        threads: u32,
        arguments: &[Arg],
    ) -> Result<(), Failure> {
        let mut slots = Slots::new(arguments);
        let params = launch(kernel, threads, &mut slots);
        // SAFETY: the executable is alive, and the node is one of the graph it was made of;
        // parameters and arguments live until the call returns.
        let status =
            unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.0, node.0, &raw const params) };
        Ok(status.result()?)
    }

    /// Later launches leave the node out, or run it again.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn set_enabled(&self, node: Node, enabled: bool) -> Result<(), Failure> {
        // SAFETY: as above.
        Ok(unsafe { sys::cuGraphNodeSetEnabled(self.0, node.0, enabled.into()) }.result()?)
    }

    /// Later launches run `graph`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn update(&self, graph: &Graph) -> Result<(), Failure> {
        // SAFETY: all zeroes is a value of this plain structure of C.
        let mut result: sys::CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
        // SAFETY: both are alive, the out-pointer is valid.
        Ok(unsafe { sys::cuGraphExecUpdate_v2(self.0, graph.0, &raw mut result) }.result()?)
    }

    /// Destroys it.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: made once, taken here, so destroyed once.
        Ok(unsafe { sys::cuGraphExecDestroy(self.0) }.result()?)
    }
}
