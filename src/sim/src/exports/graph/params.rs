//! Reading and replacing the parameters of nodes.

use super::super::args::{In, Out};
use super::super::enter::api;
use super::layout::{
    AllocParams, FillParams, HostParams, KernelParams, KernelParams1, NodeParams, copy_spec,
    describe_copy, node_spec,
};
use crate::driver::{COPY_WORDS, NodeKind, NodeSpec};
use crate::errors::CuError;

/// The last attribute that is known here.
const LAST_ATTRIBUTE: u32 = 18;

api! { TABLE;
    fn cuGraphKernelNodeGetParams(node: u64, params: Out<KernelParams1>) |call| {
        match call.node(node)? {
            NodeKind::Kernel(kernel) => params.set(KernelParams::from(&*kernel).first),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphKernelNodeGetParams_v2(node: u64, params: Out<KernelParams>) |call| {
        match call.node(node)? {
            NodeKind::Kernel(kernel) => params.set(KernelParams::from(&*kernel)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphKernelNodeSetParams(node: u64, params: In<KernelParams1>) |call| {
        let params = params.get()?;
        call.node_set(node, &params.spec(&params.passed()))
    }
    fn cuGraphKernelNodeSetParams_v2(node: u64, params: In<KernelParams>) |call| {
        let params = params.get()?;
        call.node_set(node, &params.spec(&params.first.passed()))
    }
    fn cuGraphKernelNodeGetAttribute(node: u64, attribute: u32, value: Out<[u32; 16]>) |call| {
        if attribute > LAST_ATTRIBUTE {
            return Err(CuError::INVALID_VALUE);
        }
        value.set(call.node_attribute(node, attribute)?.unwrap_or_default())
    }
    fn cuGraphKernelNodeSetAttribute(node: u64, attribute: u32, value: In<[u32; 16]>) |call| {
        if attribute > LAST_ATTRIBUTE {
            return Err(CuError::INVALID_VALUE);
        }
        call.node_set_attribute(node, attribute, value.get()?)
    }
    fn cuGraphKernelNodeCopyAttributes(to: u64, from: u64) |call| {
        call.node_copy_attributes(to, from)
    }
    fn cuGraphMemcpyNodeGetParams(node: u64, params: Out<[u64; COPY_WORDS]>) |call| {
        match call.node(node)? {
            NodeKind::Copy(copy) => params.set(describe_copy(&copy)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphMemcpyNodeSetParams(node: u64, params: u64) |call| {
        let NodeKind::Copy(copy) = call.node(node)? else { return Err(CuError::INVALID_VALUE) };
        call.node_set(node, &copy_spec(params, copy.context)?)
    }
    fn cuGraphMemsetNodeGetParams(node: u64, params: Out<FillParams>) |call| {
        match call.node(node)? {
            NodeKind::Fill(fill) => params.set(FillParams::from(&fill)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphMemsetNodeSetParams(node: u64, params: In<FillParams>) |call| {
        let NodeKind::Fill(fill) = call.node(node)? else { return Err(CuError::INVALID_VALUE) };
        call.node_set(node, &params.get()?.spec(fill.context))
    }
    fn cuGraphHostNodeGetParams(node: u64, params: Out<HostParams>) |call| {
        match call.node(node)? {
            NodeKind::Host(host) => params.set(HostParams::from(&host)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphHostNodeSetParams(node: u64, params: In<HostParams>) |call| {
        call.node_set(node, &params.get()?.spec())
    }
    fn cuGraphChildGraphNodeGetGraph(node: u64, graph: Out<u64>) |call| {
        match call.node(node)? {
            NodeKind::Child(child) => graph.set(child),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphEventRecordNodeGetEvent(node: u64, event: Out<u64>) |call| {
        match call.node(node)? {
            NodeKind::EventRecord(recorded) => event.set(recorded),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphEventRecordNodeSetEvent(node: u64, event: u64) |call| {
        call.node_set(node, &NodeSpec::EventRecord(event))
    }
    fn cuGraphEventWaitNodeGetEvent(node: u64, event: Out<u64>) |call| {
        match call.node(node)? {
            NodeKind::EventWait(awaited) => event.set(awaited),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphEventWaitNodeSetEvent(node: u64, event: u64) |call| {
        call.node_set(node, &NodeSpec::EventWait(event))
    }
    fn cuGraphMemAllocNodeGetParams(node: u64, params: Out<AllocParams>) |call| {
        match call.node(node)? {
            NodeKind::Alloc(alloc) => params.set(AllocParams::from(&alloc)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphMemFreeNodeGetParams(node: u64, start: Out<u64>) |call| {
        match call.node(node)? {
            NodeKind::Free(freed) => start.set(freed),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphNodeSetParams(node: u64, params: u64) |call| {
        let mut room = None;
        call.node_set(node, &node_spec(params, &mut room)?)
    }
    fn cuGraphNodeSetParams_v2(node: u64, params: u64) |call| {
        let mut room = None;
        call.node_set(node, &node_spec(params, &mut room)?)
    }
    fn cuGraphNodeGetParams(node: u64, params: Out<NodeParams>) |call| {
        params.check()?;
        params.set(NodeParams::from(&call.node(node)?))
    }
}
