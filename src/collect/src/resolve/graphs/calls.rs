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

fn maker(l: &Resolution<'_>, stream: Option<StreamId>) -> Maker {
    let function = l.call.api.signature().params.iter().position(|p| p.kind == ParamKind::Function);
    let launched = function.map(|index| l.call.arg(index));
    let (api, stack) = (l.call.api.name().into(), l.call.stack);
    Maker { g: OpSeq(l.call.g), api, stream, stack, launched, collective: None }
}

/// The call was captured from `stream`: the node that it made is its work.
pub(in super::super) fn captured(l: &mut Resolution<'_>, stream: StreamId) {
    let node = l.call.read_back.as_ref().and_then(|read| read.captured);
    if let Some(node) = node.filter(|&node| node != 0 && makes_node(l)) {
        let mut maker = maker(l, Some(stream));
        if l.call.of_library && maker.launched.is_some() {
            maker.collective = Some(l.tables.captured_collectives.launched(l.call.thread));
        }
        l.tables.makers.insert(node, maker);
    }
}

/// Whether a captured call makes a node. Records of events and waits for them are edges, unless
/// they concern the world outside the capture.
///
/// CUDA driver API, `cuEventRecordWithFlags` and `cuStreamWaitEvent`: `CU_EVENT_RECORD_EXTERNAL`,
/// `CU_EVENT_WAIT_EXTERNAL`.
fn makes_node(l: &Resolution<'_>) -> bool {
    match l.call.api.name().trim_end_matches("_ptsz") {
        "cuEventRecord" => false,
        "cuEventRecordWithFlags" | "cuStreamWaitEvent" => l.call.arg(2) & EXTERNAL != 0,
        _ => true,
    }
}

/// `cuGraphAdd*Node`, `cuGraphAddNode`: the new node's handle is the first out value.
pub(in super::super) fn add_node(l: &mut Resolution<'_>) -> Option<Action> {
    let node = l.call.out(0)?;
    let maker = maker(l, None);
    l.tables.makers.insert(node, maker);
    clones(l);
    None
}

/// `cuGraphClone`.
pub(in super::super) fn clone(l: &mut Resolution<'_>) -> Option<Action> {
    clones(l);
    None
}

/// A clone's nodes were made by whoever made the originals.
fn clones(l: &mut Resolution<'_>) {
    let call = l.call;
    for (original, clone) in call.read_back.iter().flat_map(|read| &read.clones) {
        if let Some(maker) = l.tables.makers.get(original).cloned() {
            l.tables.makers.insert(*clone, maker);
        }
    }
}

/// The graph that was read back for the call, as the number says.
fn read(l: &Resolution<'_>, number: u32) -> Contents {
    let nothing = ReadBack::default();
    let read = l.call.read_back.as_deref().unwrap_or(&nothing);
    Contents::new(read, number, &l.tables.makers, &maker(l, None))
}

/// `cuGraphInstantiate` in its first two versions.
pub(in super::super) fn instantiate(l: &mut Resolution<'_>) -> Option<Action> {
    instantiated(l, 0)
}

/// `cuGraphInstantiateWithFlags(executable, graph, flags)`.
pub(in super::super) fn instantiate_with_flags(l: &mut Resolution<'_>) -> Option<Action> {
    instantiated(l, l.call.arg(2))
}

/// `cuGraphInstantiateWithParams(executable, graph, params)`: the flags come first in the
/// structure. An upload that it asks for touches nothing.
pub(in super::super) fn instantiate_with_params(l: &mut Resolution<'_>) -> Option<Action> {
    let flags = l.call.pointee.as_deref().and_then(|params| params.first_chunk::<8>());
    instantiated(l, flags.map_or(0, |flags| u64::from_le_bytes(*flags)))
}

fn instantiated(l: &mut Resolution<'_>, flags: u64) -> Option<Action> {
    let handle = l.call.out(0)?;
    let contents = read(l, 0);
    let id = l.ids.executable();
    l.tables.executables.insert(handle, id, contents);
    if flags & DEVICE_LAUNCH != 0 {
        l.gaps.not_understood("cuGraphInstantiate (launches from the device are not seen)");
    }
    let (executable, graph) = executables::current(l, handle, false)?;
    Some(Action::GraphInstantiate { executable, graph })
}

/// `cuGraphExecUpdate(executable, graph, ...)`. A refused update changes nothing.
pub(in super::super) fn update(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let contents = read(l, 0);
    l.tables.executables.update(l.call.arg(0), contents);
    let (executable, graph) = known(l, false)?;
    Some(Action::GraphUpdate { executable, graph })
}

/// The executable that parameter 0 names, and what it runs now.
fn known(l: &mut Resolution<'_>, launched: bool) -> Option<(ExecutableId, GraphId)> {
    let known = executables::current(l, l.call.arg(0), launched);
    if known.is_none() && l.call.succeeded() {
        l.gaps.not_understood("(instantiation of a graph, unseen)");
    }
    known
}

/// `cuGraphLaunch(executable, stream)`.
pub(in super::super) fn launch(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = l.stream(l.call.arg(1))?;
    let (executable, graph) = known(l, true)?;
    Some(Action::GraphLaunch { stream, executable, graph })
}

/// `cuGraphUpload(executable, stream)`.
pub(in super::super) fn upload(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = l.stream(l.call.arg(1))?;
    let executable = l.tables.executables.id(l.call.arg(0))?;
    Some(Action::GraphUpload { stream, executable })
}

/// `cuGraphExecDestroy(executable)`.
pub(in super::super) fn destroy(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let executable = l.tables.executables.remove(l.call.arg(0))?;
    Some(Action::GraphDestroy { executable })
}

/// `cuGraphNodeSetEnabled(executable, node, enabled)`.
pub(in super::super) fn set_enabled(l: &mut Resolution<'_>) -> Option<Action> {
    let enabled = l.call.arg(2) as u32 != 0;
    change(l, |node| node.enabled = enabled)
}

/// `cuGraphExecEventRecordNodeSetEvent(executable, node, event)`, and the same for waits.
pub(in super::super) fn set_event(l: &mut Resolution<'_>) -> Option<Action> {
    let event = l.call.arg(2).to_le_bytes();
    change(l, |node| node.contents.params = event.into())
}

/// `cuGraphExecChildGraphNodeSetParams(executable, node, graph)`.
pub(in super::super) fn set_child(l: &mut Resolution<'_>) -> Option<Action> {
    let mut body = read(l, 0);
    change(l, |node| {
        if let Some(former) = node.bodies.first() {
            body.take_the_place_of(former);
        }
        node.bodies = vec![body];
    })
}

/// `cuGraphExec*NodeSetParams(executable, node, params, ...)`: the new contents were read before.
pub(in super::super) fn set_params(l: &mut Resolution<'_>) -> Option<Action> {
    let read = read(l, 0);
    change(l, |node| match read.nodes.into_iter().next() {
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
    l: &mut Resolution<'_>,
    change: impl FnOnce(&mut super::contents::Node),
) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    match l.tables.executables.change(l.call.arg(0), l.call.arg(1)) {
        Some(node) => change(node),
        None => {
            let api = l.call.api.name();
            l.gaps.not_understood(&format!("{api} (node unknown)"));
        }
    }
    None
}
