//! Building graphs: nodes and dependencies.

use super::super::args::{In, Out};
use super::super::enter::api;
use super::layout::{
    ALLOC_START, AllocParams, BODIES, FillParams, HostParams, KernelParams, KernelParams1, UNION,
    copy_spec, node_spec,
};
use crate::driver::{Call, Edge, EdgeData, NodeKind, NodeSpec};
use crate::errors::{CuError, Outcome};

/// The nodes that a new one depends on, with the data of the edges if the program gave any.
pub(in crate::exports) fn dependencies(
    nodes: In<u64>,
    data: In<EdgeData>,
    count: u64,
) -> Outcome<Vec<(u64, EdgeData)>> {
    let data = |index| if data.is_null() { Ok(EdgeData::default()) } else { data.at(index) };
    (0..count as usize).map(|index| Ok((nodes.at(index)?, data(index)?))).collect()
}

fn edges(from: In<u64>, to: In<u64>, data: In<EdgeData>, count: u64) -> Outcome<Vec<Edge>> {
    dependencies(from, data, count)?
        .into_iter()
        .enumerate()
        .map(|(index, (from, data))| Ok(Edge { from, to: to.at(index)?, data }))
        .collect()
}

/// Where a new node goes.
struct Place {
    node: Out<u64>,
    graph: u64,
    after: In<u64>,
    count: u64,
}

impl Place {
    fn add(&self, call: &Call, spec: &NodeSpec<'_>) -> Outcome<u64> {
        self.add_with(call, spec, In::NULL)
    }

    fn add_with(&self, call: &Call, spec: &NodeSpec<'_>, data: In<EdgeData>) -> Outcome<u64> {
        self.node.check()?;
        let after = dependencies(self.after, data, self.count)?;
        let made = call.graph_add(self.graph, &after, spec)?;
        self.node.set(made)?;
        Ok(made)
    }

    /// Tells the program the address that an allocation node has.
    fn add_alloc(&self, call: &Call, spec: &NodeSpec<'_>, params: u64) -> Outcome {
        let made = self.add(call, spec)?;
        match call.node(made)? {
            NodeKind::Alloc(alloc) => Out::from_address(params + ALLOC_START).set(alloc.start),
            _ => Ok(()),
        }
    }

    /// Tells the program the address that an allocation node has, and the bodies of a conditional one.
    fn add_any(&self, call: &Call, data: In<EdgeData>, params: u64) -> Outcome {
        let mut room = None;
        let spec = node_spec(params, &mut room)?;
        let made = self.add_with(call, &spec, data)?;
        let told = |at: u64| Out::from_address(params + UNION + at);
        match call.node(made)? {
            NodeKind::Alloc(alloc) => told(ALLOC_START).set(alloc.start),
            NodeKind::Conditional(node) => told(BODIES).set(node.bodies.as_ptr() as u64),
            _ => Ok(()),
        }
    }
}

api! { TABLE;
    fn cuGraphCreate(graph: Out<u64>, flags: u32) |call| {
        graph.check()?;
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        graph.set(call.graph_create()?)
    }
    fn cuGraphDestroy(graph: u64) |call| { call.graph_destroy(graph) }
    fn cuGraphClone(clone: Out<u64>, graph: u64) |call| {
        clone.check()?;
        clone.set(call.graph_clone(graph)?)
    }
    fn cuGraphConditionalHandleCreate(
        condition: Out<u64>,
        graph: u64,
        _context: u64,
        default: u32,
        flags: u32,
    ) |call| {
        condition.check()?;
        condition.set(call.graph_condition(graph, default, flags)?)
    }
    fn cuGraphDestroyNode(node: u64) |call| { call.graph_destroy_node(node) }
    fn cuGraphAddDependencies(graph: u64, from: In<u64>, to: In<u64>, count: u64) |call| {
        call.graph_add_edges(graph, &edges(from, to, In::NULL, count)?)
    }
    fn cuGraphAddDependencies_v2(
        graph: u64,
        from: In<u64>,
        to: In<u64>,
        data: In<EdgeData>,
        count: u64,
    ) |call| { call.graph_add_edges(graph, &edges(from, to, data, count)?) }
    fn cuGraphRemoveDependencies(graph: u64, from: In<u64>, to: In<u64>, count: u64) |call| {
        call.graph_remove_edges(graph, &edges(from, to, In::NULL, count)?)
    }
    fn cuGraphRemoveDependencies_v2(
        graph: u64,
        from: In<u64>,
        to: In<u64>,
        data: In<EdgeData>,
        count: u64,
    ) |call| { call.graph_remove_edges(graph, &edges(from, to, data, count)?) }
    fn cuGraphAddKernelNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: In<KernelParams1>,
    ) |call| {
        let params = params.get()?;
        Place { node, graph, after, count }.add(call, &params.spec(&params.passed())).map(|_| ())
    }
    fn cuGraphAddKernelNode_v2(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: In<KernelParams>,
    ) |call| {
        let params = params.get()?;
        let passed = params.first.passed();
        Place { node, graph, after, count }.add(call, &params.spec(&passed)).map(|_| ())
    }
    fn cuGraphAddMemcpyNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: u64,
        context: u64,
    ) |call| {
        Place { node, graph, after, count }.add(call, &copy_spec(params, context)?).map(|_| ())
    }
    fn cuGraphAddMemsetNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: In<FillParams>,
        context: u64,
    ) |call| {
        Place { node, graph, after, count }.add(call, &params.get()?.spec(context)).map(|_| ())
    }
    fn cuGraphAddHostNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: In<HostParams>,
    ) |call| { Place { node, graph, after, count }.add(call, &params.get()?.spec()).map(|_| ()) }
    fn cuGraphAddChildGraphNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        child: u64,
    ) |call| { Place { node, graph, after, count }.add(call, &NodeSpec::Child(child)).map(|_| ()) }
    fn cuGraphAddEmptyNode(node: Out<u64>, graph: u64, after: In<u64>, count: u64) |call| {
        Place { node, graph, after, count }.add(call, &NodeSpec::Empty).map(|_| ())
    }
    fn cuGraphAddEventRecordNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        event: u64,
    ) |call| {
        Place { node, graph, after, count }.add(call, &NodeSpec::EventRecord(event)).map(|_| ())
    }
    fn cuGraphAddEventWaitNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        event: u64,
    ) |call| {
        Place { node, graph, after, count }.add(call, &NodeSpec::EventWait(event)).map(|_| ())
    }
    fn cuGraphAddMemAllocNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: u64,
    ) |call| {
        let spec = In::<AllocParams>::from_address(params).get()?.spec()?;
        Place { node, graph, after, count }.add_alloc(call, &spec, params)
    }
    fn cuGraphAddMemFreeNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        start: u64,
    ) |call| { Place { node, graph, after, count }.add(call, &NodeSpec::Free(start)).map(|_| ()) }
    fn cuGraphAddNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: u64,
    ) |call| { Place { node, graph, after, count }.add_any(call, In::NULL, params) }
    fn cuGraphAddNode_v2(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        data: In<EdgeData>,
        count: u64,
        params: u64,
    ) |call| { Place { node, graph, after, count }.add_any(call, data, params) }
    fn cuGraphAddNode_v3(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        data: In<EdgeData>,
        count: u64,
        params: u64,
    ) |call| { Place { node, graph, after, count }.add_any(call, data, params) }
}
