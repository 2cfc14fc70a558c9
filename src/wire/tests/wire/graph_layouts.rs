//! Parameter structures of nodes are as long as the runtime copies them, and their fields lie where
//! runtime and collector read them, by the bindings of `cudarc` for CUDA 12.4.

use cudarc::driver::sys;
use std::mem::{offset_of, size_of};
use streamsan_wire::node_kind::{self, *};

#[test]
fn structures_are_as_long_as_they_are_copied() {
    for (kind, bytes) in [
        (KERNEL, size_of::<sys::CUDA_KERNEL_NODE_PARAMS_v2>()),
        (MEMCPY, size_of::<sys::CUDA_MEMCPY3D>()),
        (MEMSET, size_of::<sys::CUDA_MEMSET_NODE_PARAMS_v1>()),
        (HOST, size_of::<sys::CUDA_HOST_NODE_PARAMS_v1>()),
        (CHILD, size_of::<sys::CUgraph>()),
        (EMPTY, 0),
        (EVENT_WAIT, size_of::<sys::CUDA_EVENT_WAIT_NODE_PARAMS>()),
        (EVENT_RECORD, size_of::<sys::CUDA_EVENT_RECORD_NODE_PARAMS>()),
        (SEMAPHORE_SIGNAL, size_of::<sys::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1>()),
        (SEMAPHORE_WAIT, size_of::<sys::CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1>()),
        (ALLOCATE, size_of::<sys::CUDA_MEM_ALLOC_NODE_PARAMS_v1>()),
        (FREE, size_of::<sys::CUDA_MEM_FREE_NODE_PARAMS>()),
        (BATCH_MEM_OP, size_of::<sys::CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>()),
        (CONDITIONAL, size_of::<sys::CUDA_CONDITIONAL_NODE_PARAMS>()),
    ] {
        assert_eq!(node_kind::params_bytes(kind), Some(bytes), "kind {kind}");
    }
    assert_eq!(node_kind::params_bytes(14), None);
    assert_eq!(node_kind::KERNEL_BYTES_1, size_of::<sys::CUDA_KERNEL_NODE_PARAMS_v1>());
    assert_eq!(size_of::<sys::CUgraphNodeParams>(), 256);
    assert_eq!(size_of::<sys::CUgraphEdgeData>(), 8);
    assert_eq!(size_of::<sys::CUDA_GRAPH_INSTANTIATE_PARAMS>(), 32);
}

#[test]
fn fields_lie_where_they_are_read() {
    type Kernel = sys::CUDA_KERNEL_NODE_PARAMS_v2;
    assert_eq!(offset_of!(Kernel, func), 0);
    assert_eq!(offset_of!(Kernel, kernelParams), 8 * 5);
    assert_eq!(offset_of!(Kernel, extra), 8 * 6);
    assert_eq!(offset_of!(Kernel, kern), 8 * 7);
    type Memset = sys::CUDA_MEMSET_NODE_PARAMS_v1;
    assert_eq!(offset_of!(Memset, dst), 0);
    assert_eq!(offset_of!(Memset, pitch), 8);
    assert_eq!(offset_of!(Memset, elementSize), 20);
    assert_eq!(offset_of!(Memset, width), 24);
    assert_eq!(offset_of!(Memset, height), 32);
    type Allocate = sys::CUDA_MEM_ALLOC_NODE_PARAMS_v1;
    assert_eq!(offset_of!(Allocate, bytesize), 104);
    assert_eq!(offset_of!(Allocate, dptr), 112);
    type Batch = sys::CUDA_BATCH_MEM_OP_NODE_PARAMS_v1;
    assert_eq!(offset_of!(Batch, count), 8);
    assert_eq!(offset_of!(Batch, paramArray), 16);
    type Semaphores = sys::CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1;
    assert_eq!(offset_of!(Semaphores, extSemArray), 0);
    assert_eq!(offset_of!(Semaphores, paramsArray), 8);
    assert_eq!(offset_of!(Semaphores, numExtSems), 16);
    type Conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS;
    assert_eq!(offset_of!(Conditional, type_), 8);
    assert_eq!(offset_of!(Conditional, size), 12);
    assert_eq!(offset_of!(Conditional, phGraph_out), 16);
    type Any = sys::CUgraphNodeParams;
    assert_eq!(offset_of!(Any, type_), 0);
    assert_eq!(offset_of!(Any, __bindgen_anon_1), 16);
    assert_eq!(offset_of!(sys::CUDA_MEMCPY_NODE_PARAMS, copyParams), 16);
    assert_eq!(offset_of!(sys::CUgraphEdgeData, type_), 2);
    assert_eq!(offset_of!(sys::CUDA_GRAPH_INSTANTIATE_PARAMS, flags), 0);
    assert_eq!(offset_of!(sys::CUlaunchConfig, hStream), 32);
}
