//! The driver's queries about graphs (CUDA driver API, "Graph Management", "Stream Management").

use core::ptr;

use streamsan_wire::Counted;
use streamsan_wire::node_kind::*;

use crate::resolve;

/// Most nodes or edges of one graph that are asked for.
pub(super) const MOST: usize = 1 << 20;

/// Calls the driver's own function; `None` where the driver lacks it or refuses.
macro_rules! ask {
    ($name:ident($($value:expr => $type:ty),* $(,)?)) => {
        resolve::real_counted(Counted::$name).and_then(|real| {
            // SAFETY: the driver's function with its documented signature, and results that point
            // to writable memory of the documented size.
            let result = unsafe {
                let query: extern "C" fn($($type),*) -> i32 = core::mem::transmute(real);
                query($($value),*)
            };
            (result == 0).then_some(())
        })
    };
}

/// `cuGraphGetNodes`.
pub(super) fn nodes(graph: u64) -> Option<Vec<u64>> {
    let mut count = 0usize;
    ask!(cuGraphGetNodes(graph => u64, ptr::null_mut() => *mut u64, &mut count => *mut usize))?;
    if count > MOST {
        return None;
    }
    let mut nodes = vec![0; count];
    if count > 0 {
        let first = nodes.as_mut_ptr();
        ask!(cuGraphGetNodes(graph => u64, first => *mut u64, &mut count => *mut usize))?;
        nodes.truncate(count);
    }
    Some(nodes)
}

/// The edges of a graph: the node before, the node behind, the edge's data.
pub(super) type Edges = (Vec<u64>, Vec<u64>, Vec<[u8; 8]>);

/// `cuGraphGetEdges_v2`; in drivers before CUDA 12.3, where edges have no data, the first version.
pub(super) fn edges(graph: u64) -> Option<Edges> {
    type Nodes = *mut u64;
    type Data = *mut [u8; 8];
    let mut count = 0usize;
    let (none, no_data): (Nodes, Data) = (ptr::null_mut(), ptr::null_mut());
    let with_data = resolve::real_counted(Counted::cuGraphGetEdges_v2).is_some();
    if with_data {
        ask!(cuGraphGetEdges_v2(
            graph => u64, none => Nodes, none => Nodes, no_data => Data, &mut count => *mut usize,
        ))?;
    } else {
        ask!(cuGraphGetEdges(
            graph => u64, none => Nodes, none => Nodes, &mut count => *mut usize,
        ))?;
    }
    if count > MOST {
        return None;
    }
    let (mut from, mut to, mut data) = (vec![0; count], vec![0; count], vec![[0; 8]; count]);
    if count > 0 {
        let (f, t, d) = (from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr());
        if with_data {
            ask!(cuGraphGetEdges_v2(
                graph => u64, f => Nodes, t => Nodes, d => Data, &mut count => *mut usize,
            ))?;
        } else {
            ask!(cuGraphGetEdges(graph => u64, f => Nodes, t => Nodes, &mut count => *mut usize))?;
        }
        from.truncate(count);
    }
    Some((from, to, data))
}

/// `cuGraphNodeGetType`.
pub(super) fn kind(node: u64) -> Option<i32> {
    let mut kind = -1;
    ask!(cuGraphNodeGetType(node => u64, &mut kind => *mut i32))?;
    Some(kind)
}

/// `cuGraphChildGraphNodeGetGraph`.
pub(super) fn child(node: u64) -> Option<u64> {
    let mut graph = 0;
    ask!(cuGraphChildGraphNodeGetGraph(node => u64, &mut graph => *mut u64))?;
    Some(graph)
}

/// `cuGraphNodeFindInClone`.
pub(super) fn find_in_clone(node: u64, clone: u64) -> Option<u64> {
    let mut found = 0;
    ask!(cuGraphNodeFindInClone(&mut found => *mut u64, node => u64, clone => u64))?;
    Some(found)
}

/// Room for every parameter structure of a node; `CUgraphNodeParams` has 256 bytes.
pub(super) type Structure = [u64; 32];

/// The parameters of a node as the typed query of its kind gives them, and their bytes. `None`
/// where the driver refuses, and for kinds that have no such query.
pub(super) fn params(node: u64, kind: i32, to: &mut Structure) -> Option<usize> {
    let at = to.as_mut_ptr();
    macro_rules! get {
        ($name:ident) => {
            ask!($name(node => u64, at => *mut u64))
        };
    }
    let answered = match kind {
        KERNEL if get!(cuGraphKernelNodeGetParams_v2).is_none() => {
            return get!(cuGraphKernelNodeGetParams).map(|()| KERNEL_BYTES_1);
        }
        KERNEL | EMPTY => Some(()),
        MEMCPY => get!(cuGraphMemcpyNodeGetParams),
        MEMSET => get!(cuGraphMemsetNodeGetParams),
        HOST => get!(cuGraphHostNodeGetParams),
        CHILD => get!(cuGraphChildGraphNodeGetGraph),
        EVENT_WAIT => get!(cuGraphEventWaitNodeGetEvent),
        EVENT_RECORD => get!(cuGraphEventRecordNodeGetEvent),
        SEMAPHORE_SIGNAL => get!(cuGraphExternalSemaphoresSignalNodeGetParams),
        SEMAPHORE_WAIT => get!(cuGraphExternalSemaphoresWaitNodeGetParams),
        ALLOCATE => get!(cuGraphMemAllocNodeGetParams),
        FREE => get!(cuGraphMemFreeNodeGetParams),
        BATCH_MEM_OP => get!(cuGraphBatchMemOpNodeGetParams),
        _ => None,
    };
    answered.and_then(|()| params_bytes(kind))
}

/// `cuGraphNodeGetParams`, since CUDA 13.2: `CUgraphNodeParams`.
pub(super) fn any_params(node: u64, to: &mut Structure) -> Option<()> {
    let at = to.as_mut_ptr();
    ask!(cuGraphNodeGetParams(node => u64, at => *mut u64))
}

/// Whether kernels may change a kernel node (`cuGraphKernelNodeGetAttribute` of
/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`, since CUDA 12.4).
pub(super) fn is_updatable(node: u64) -> bool {
    const DEVICE_UPDATABLE: u32 = 13;
    // The value's union has 64 bytes; whether it is updatable comes first.
    let mut value = [0u32; 16];
    let at = value.as_mut_ptr();
    let asked = ask!(cuGraphKernelNodeGetAttribute(
        node => u64, DEVICE_UPDATABLE => u32, at => *mut u32,
    ));
    asked.is_some() && value[0] != 0
}

/// The answer of `cuStreamGetCaptureInfo` for a stream that captures.
pub(super) struct CaptureInfo {
    pub(super) graph: u64,
    /// The one node that the stream's next call depends on, 0 where there are several or none.
    pub(super) node: u64,
}

const ACTIVE: u32 = 1;

/// `cuStreamGetCaptureInfo_v3`, or `_v2` before CUDA 12.3; `per_thread`: the twin for which
/// handle 0 is the thread's default stream. `None` for a stream that does not capture.
pub(super) fn capture_info(stream: u64, per_thread: bool) -> Option<CaptureInfo> {
    type Dependencies = *mut *const u64;
    let (mut status, mut id, mut graph) = (0u32, 0u64, 0u64);
    let (mut dependencies, mut data) = (ptr::null::<u64>(), ptr::null::<u64>());
    let mut count = 0usize;
    macro_rules! with_data {
        ($name:ident) => {
            ask!($name(
                stream => u64, &mut status => *mut u32, &mut id => *mut u64,
                &mut graph => *mut u64, &mut dependencies => Dependencies,
                &mut data => Dependencies, &mut count => *mut usize,
            ))
        };
    }
    macro_rules! without_data {
        ($name:ident) => {
            ask!($name(
                stream => u64, &mut status => *mut u32, &mut id => *mut u64,
                &mut graph => *mut u64, &mut dependencies => Dependencies,
                &mut count => *mut usize,
            ))
        };
    }
    // The third version fails with CUDA_ERROR_NOT_FOUND nowhere but in drivers that lack it.
    let newest = if per_thread {
        with_data!(cuStreamGetCaptureInfo_v3_ptsz)
    } else {
        with_data!(cuStreamGetCaptureInfo_v3)
    };
    let answered = newest.or_else(|| {
        if per_thread {
            without_data!(cuStreamGetCaptureInfo_v2_ptsz)
        } else {
            without_data!(cuStreamGetCaptureInfo_v2)
        }
    });
    answered?;
    if status != ACTIVE {
        return None;
    }
    let node = match count {
        // SAFETY: the driver's array of `count` nodes is valid until the next call on the capture,
        // which this thread would make.
        1 if !dependencies.is_null() => unsafe { dependencies.read() },
        _ => 0,
    };
    Some(CaptureInfo { graph, node })
}
