//! The calls that make nodes, make graphs executable, change, launch and end them.

use super::super::resolution::Resolution;
use super::contents::{Contents, Maker};
use super::executables;
use crate::read_back::ReadBack;
use streamsan_model::{Action, ExecutableId, GraphId, OpSeq, StreamId};
use streamsan_wire::{ParamKind, node_kind};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
const DEVICE_LAUNCH: u64 = 4;

/// `CU_EVENT_RECORD_EXTERNAL`, `CU_EVENT_WAIT_EXTERNAL`.
const EXTERNAL: u64 = 1;

fn maker(resolution: &Resolution<'_>, stream: Option<StreamId>) -> Maker {
    let function =
        resolution.call.api.signature().params.iter().position(|p| p.kind == ParamKind::Function);
    let launched = function.map(|index| resolution.call.arg(index));
    let (api, stack) = (resolution.call.api.name().into(), resolution.call.stack);
    Maker { g: OpSeq(resolution.call.g), api, stream, stack, launched, collective: None }
}

/// The call was captured from `stream`: the node that it made is its work.
pub(in super::super) fn captured(resolution: &mut Resolution<'_>, stream: StreamId) {
    let node = resolution.call.read_back.as_ref().and_then(|read| read.captured);
    if let Some(node) = node.filter(|&node| node != 0 && makes_node(resolution)) {
        let mut maker = maker(resolution, Some(stream));
        if resolution.call.of_library && maker.launched.is_some() {
            maker.collective =
                Some(resolution.tables.captured_collectives.launched(resolution.call.thread));
        }
        resolution.tables.makers.insert(node, maker);
    }
}

/// Whether a captured call makes a node. Records of events and waits for them are edges, unless
/// they concern the world outside the capture.
///
/// CUDA driver API, `cuEventRecordWithFlags` and `cuStreamWaitEvent`: `CU_EVENT_RECORD_EXTERNAL`,
/// `CU_EVENT_WAIT_EXTERNAL`.
fn makes_node(resolution: &Resolution<'_>) -> bool {
    match resolution.call.api.name().trim_end_matches("_ptsz") {
        "cuEventRecord" => false,
        "cuEventRecordWithFlags" | "cuStreamWaitEvent" => resolution.call.arg(2) & EXTERNAL != 0,
        _ => true,
    }
}

/// `cuGraphAdd*Node`, `cuGraphAddNode`: the new node's handle is the first out value.
pub(in super::super) fn add_node(resolution: &mut Resolution<'_>) -> Option<Action> {
    let node = resolution.call.out(0)?;
    let maker = maker(resolution, None);
    resolution.tables.makers.insert(node, maker);
    clones(resolution);
    None
}

/// `cuGraphClone`.
pub(in super::super) fn clone(resolution: &mut Resolution<'_>) -> Option<Action> {
    clones(resolution);
    None
}

/// A clone's nodes were made by whoever made the originals.
fn clones(resolution: &mut Resolution<'_>) {
    let call = resolution.call;
    for (original, clone) in call.read_back.iter().flat_map(|read| &read.clones) {
        if let Some(maker) = resolution.tables.makers.get(original).cloned() {
            resolution.tables.makers.insert(*clone, maker);
        }
    }
}

/// The graph that was read back for the call, as the number says.
fn read(resolution: &Resolution<'_>, number: u32) -> Contents {
    let nothing = ReadBack::default();
    let read = resolution.call.read_back.as_deref().unwrap_or(&nothing);
    Contents::new(read, number, &resolution.tables.makers, &maker(resolution, None))
}

/// `cuGraphInstantiate` in its first two versions.
pub(in super::super) fn instantiate(resolution: &mut Resolution<'_>) -> Option<Action> {
    instantiated(resolution, 0)
}

/// `cuGraphInstantiateWithFlags(executable, graph, flags)`.
pub(in super::super) fn instantiate_with_flags(resolution: &mut Resolution<'_>) -> Option<Action> {
    instantiated(resolution, resolution.call.arg(2))
}

/// `cuGraphInstantiateWithParams(executable, graph, params)`: the flags come first in the
/// structure. An upload that it asks for touches nothing.
pub(in super::super) fn instantiate_with_params(resolution: &mut Resolution<'_>) -> Option<Action> {
    let flags = resolution.call.pointee.as_deref().and_then(|params| params.first_chunk::<8>());
    instantiated(resolution, flags.map_or(0, |flags| u64::from_le_bytes(*flags)))
}

fn instantiated(resolution: &mut Resolution<'_>, flags: u64) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let contents = read(resolution, 0);
    let id = resolution.ids.executable();
    resolution.tables.executables.insert(handle, id, contents);
    if flags & DEVICE_LAUNCH != 0 {
        resolution
            .gaps
            .not_understood("cuGraphInstantiate (launches from the device are not seen)");
    }
    let (executable, graph) = executables::current(resolution, handle, false)?;
    Some(Action::GraphInstantiate { executable, graph })
}

/// `cuGraphExecUpdate(executable, graph, ...)`. A refused update changes nothing.
pub(in super::super) fn update(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let contents = read(resolution, 0);
    resolution.tables.executables.update(resolution.call.arg(0), contents);
    let (executable, graph) = known(resolution, false)?;
    Some(Action::GraphUpdate { executable, graph })
}

/// The executable that parameter 0 names, and what it runs now.
fn known(resolution: &mut Resolution<'_>, launched: bool) -> Option<(ExecutableId, GraphId)> {
    let known = executables::current(resolution, resolution.call.arg(0), launched);
    if known.is_none() && resolution.call.succeeded() {
        resolution.gaps.not_understood("(instantiation of a graph, unseen)");
    }
    known
}

/// `cuGraphLaunch(executable, stream)`.
pub(in super::super) fn launch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(1))?;
    let (executable, graph) = known(resolution, true)?;
    Some(Action::GraphLaunch { stream, executable, graph })
}

/// `cuGraphUpload(executable, stream)`.
pub(in super::super) fn upload(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(1))?;
    let executable = resolution.tables.executables.id(resolution.call.arg(0))?;
    Some(Action::GraphUpload { stream, executable })
}

/// `cuGraphExecDestroy(executable)`.
pub(in super::super) fn destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let executable = resolution.tables.executables.remove(resolution.call.arg(0))?;
    Some(Action::GraphDestroy { executable })
}

/// `cuGraphNodeSetEnabled(executable, node, enabled)`.
pub(in super::super) fn set_enabled(resolution: &mut Resolution<'_>) -> Option<Action> {
    let enabled = resolution.call.arg(2) as u32 != 0;
    change(resolution, |node| node.enabled = enabled)
}

/// `cuGraphExecEventRecordNodeSetEvent(executable, node, event)`, and the same for waits.
pub(in super::super) fn set_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let event = resolution.call.arg(2).to_le_bytes();
    change(resolution, |node| node.contents.params = event.into())
}

/// `cuGraphExecChildGraphNodeSetParams(executable, node, graph)`.
pub(in super::super) fn set_child(resolution: &mut Resolution<'_>) -> Option<Action> {
    let mut body = read(resolution, 0);
    change(resolution, |node| {
        if let Some(former) = node.bodies.first() {
            body.take_the_place_of(former);
        }
        node.bodies = vec![body];
    })
}

/// `cuGraphExec*NodeSetParams(executable, node, params, ...)`: the new contents were read before.
pub(in super::super) fn set_params(resolution: &mut Resolution<'_>) -> Option<Action> {
    let read = read(resolution, 0);
    change(resolution, |node| match read.nodes.into_iter().next() {
        Some(mut new) => {
            for (body, former) in new.bodies.iter_mut().zip(&node.bodies) {
                body.take_the_place_of(former);
            }
            let same_kind = new.kind == node.kind;
            node.maker.collective = None;
            node.readable = new.readable && same_kind;
            node.contents = new.contents;
            if node.kind == node_kind::CHILD {
                node.bodies = new.bodies;
            }
        }
        None => node.readable = false,
    })
}

/// Changes a node of an executable; what it then does is resolved before the next launch.
fn change(
    resolution: &mut Resolution<'_>,
    change: impl FnOnce(&mut super::contents::Node),
) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    match resolution.tables.executables.change(resolution.call.arg(0), resolution.call.arg(1)) {
        Some(node) => change(node),
        None => {
            let api = resolution.call.api.name();
            resolution.gaps.not_understood(&format!("{api} (node unknown)"));
        }
    }
    None
}
