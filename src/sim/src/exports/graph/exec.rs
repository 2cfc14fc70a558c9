//! Executable graphs.

use super::super::args::{In, Out, OutList};
use super::super::enter::{api, twins};
use super::layout::{FillParams, HostParams, KernelParams, KernelParams1, copy_spec, node_spec};
use crate::driver::{Call, DefaultStream, NodeSpec};
use crate::errors::{CuError, Outcome};

/// CUDA_GRAPH_INSTANTIATE_PARAMS.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    stream: u64,
    error_node: u64,
    result: u32,
}

/// CUgraphExecUpdateResultInfo.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct UpdateInfo {
    result: u32,
    node: u64,
    from: u64,
}

const _: () = assert!(size_of::<InstantiateParams>() == 32 && size_of::<UpdateInfo>() == 24);

const UPLOAD: u64 = 2;
/// CUDA_GRAPH_INSTANTIATE_ERROR and _INVALID_STRUCTURE.
const ERROR: u32 = 1;
const INVALID_STRUCTURE: u32 = 2;
/// CU_GRAPH_EXEC_UPDATE_ERROR.
const UPDATE_ERROR: u32 = 1;

fn instantiate(
    call: &Call,
    exec: Out<u64>,
    graph: u64,
    params: (In<InstantiateParams>, Out<InstantiateParams>),
    default: DefaultStream,
) -> Outcome {
    exec.check()?;
    let mut given = params.0.get()?;
    let made = call.graph_instantiate(graph, given.flags);
    given.error_node = 0;
    given.result = match made {
        Ok(_) => 0,
        Err(CuError::INVALID_VALUE) => INVALID_STRUCTURE,
        Err(_) => ERROR,
    };
    params.1.set(given)?;
    let made = made?;
    exec.set(made)?;
    if given.flags & UPLOAD != 0 {
        call.graph_upload(made, given.stream, default)?;
    }
    Ok(())
}

fn update(call: &Call, exec: u64, graph: u64) -> (UpdateInfo, Outcome) {
    match call.exec_update(exec, graph) {
        Ok(Ok(())) => (UpdateInfo { result: 0, node: 0, from: 0 }, Ok(())),
        Ok(Err(failure)) => {
            let info =
                UpdateInfo { result: failure.result, node: failure.node, from: failure.from };
            (info, Err(CuError::GRAPH_EXEC_UPDATE_FAILURE))
        }
        Err(error) => (UpdateInfo { result: UPDATE_ERROR, node: 0, from: 0 }, Err(error)),
    }
}

api! { TABLE;
    fn cuGraphInstantiate(
        exec: Out<u64>,
        graph: u64,
        error_node: Out<u64>,
        _log: OutList<u8>,
        _room: u64,
    ) |call| {
        exec.check()?;
        error_node.set_if_wanted(0);
        exec.set(call.graph_instantiate(graph, 0)?)
    }
    fn cuGraphInstantiate_v2(
        exec: Out<u64>,
        graph: u64,
        error_node: Out<u64>,
        _log: OutList<u8>,
        _room: u64,
    ) |call| {
        exec.check()?;
        error_node.set_if_wanted(0);
        exec.set(call.graph_instantiate(graph, 0)?)
    }
    fn cuGraphInstantiateWithFlags(exec: Out<u64>, graph: u64, flags: u64) |call| {
        exec.check()?;
        exec.set(call.graph_instantiate(graph, flags)?)
    }
    fn cuGraphExecDestroy(exec: u64) |call| { call.exec_destroy(exec) }
    fn cuGraphExecGetFlags(exec: u64, flags: Out<u64>) |call| {
        flags.check()?;
        flags.set(call.exec_flags(exec)?)
    }
    fn cuGraphExecUpdate(
        exec: u64,
        graph: u64,
        error_node: Out<u64>,
        result: Out<u32>,
    ) |call| {
        result.check()?;
        let (info, outcome) = update(call, exec, graph);
        error_node.set_if_wanted(info.node);
        result.set(info.result)?;
        outcome
    }
    fn cuGraphExecUpdate_v2(exec: u64, graph: u64, info: Out<UpdateInfo>) |call| {
        info.check()?;
        let (found, outcome) = update(call, exec, graph);
        info.set(found)?;
        outcome
    }
    fn cuGraphExecKernelNodeSetParams(exec: u64, node: u64, params: In<KernelParams1>) |call| {
        let params = params.get()?;
        call.exec_set(exec, node, &params.spec(&params.passed()))
    }
    fn cuGraphExecKernelNodeSetParams_v2(exec: u64, node: u64, params: In<KernelParams>) |call| {
        let params = params.get()?;
        call.exec_set(exec, node, &params.spec(&params.first.passed()))
    }
    fn cuGraphExecMemcpyNodeSetParams(exec: u64, node: u64, params: u64, context: u64) |call| {
        call.exec_set(exec, node, &copy_spec(params, context)?)
    }
    fn cuGraphExecMemsetNodeSetParams(
        exec: u64,
        node: u64,
        params: In<FillParams>,
        context: u64,
    ) |call| { call.exec_set(exec, node, &params.get()?.spec(context)) }
    fn cuGraphExecHostNodeSetParams(exec: u64, node: u64, params: In<HostParams>) |call| {
        call.exec_set(exec, node, &params.get()?.spec())
    }
    fn cuGraphExecChildGraphNodeSetParams(exec: u64, node: u64, child: u64) |call| {
        call.exec_set(exec, node, &NodeSpec::Child(child))
    }
    fn cuGraphExecEventRecordNodeSetEvent(exec: u64, node: u64, event: u64) |call| {
        call.exec_set(exec, node, &NodeSpec::EventRecord(event))
    }
    fn cuGraphExecEventWaitNodeSetEvent(exec: u64, node: u64, event: u64) |call| {
        call.exec_set(exec, node, &NodeSpec::EventWait(event))
    }
    fn cuGraphExecNodeSetParams(exec: u64, node: u64, params: u64) |call| {
        let mut room = None;
        call.exec_set(exec, node, &node_spec(params, &mut room)?)
    }
    fn cuGraphNodeSetEnabled(exec: u64, node: u64, enabled: u32) |call| {
        call.exec_node_enable(exec, node, enabled != 0)
    }
    fn cuGraphNodeGetEnabled(exec: u64, node: u64, enabled: Out<u32>) |call| {
        enabled.check()?;
        enabled.set(call.exec_node_enabled(exec, node)?.into())
    }
}

twins! { TWINS;
    fn cuGraphInstantiateWithParams / cuGraphInstantiateWithParams_ptsz(
        exec: Out<u64>,
        graph: u64,
        params: u64,
    ) |call, default| {
        let both = (In::from_address(params), Out::from_address(params));
        instantiate(call, exec, graph, both, default)
    }
    fn cuGraphLaunch / cuGraphLaunch_ptsz(exec: u64, stream: u64) |call, default| {
        call.graph_launch(exec, stream, default)
    }
    fn cuGraphUpload / cuGraphUpload_ptsz(exec: u64, stream: u64) |call, default| {
        call.graph_upload(exec, stream, default)
    }
}
