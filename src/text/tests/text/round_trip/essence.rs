//! The meaning of items, apart from lines, numbers and addresses.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use streamsan_model::{
    Access, Action, ByteRange, Entities, Entity, Extent, GraphId, NodeAction, OpSeq, Operation,
    SignalObject, SignalOperation, StreamId, TraceItem,
};

/// The meaning of operations, apart from lines, numbers of entities and addresses. A graph is shown
/// where an operation refers to it; calls that only build one are left out.
pub(crate) fn operations(items: &[TraceItem]) -> Vec<String> {
    let mut entities = Entities::default();
    let mut lines = Vec::new();
    for item in items {
        match item {
            TraceItem::Entity(entity) => entities.declare(entity.clone()),
            TraceItem::Operation(operation) => {
                lines.extend(operation_text(&entities, operation));
            }
            TraceItem::Returned { .. } | TraceItem::Range(_) => {}
        }
    }
    renumbered(&lines)
}

fn operation_text(entities: &Entities, operation: &Operation) -> Option<String> {
    let mut operation = operation.clone();
    operation.accesses.iter_mut().for_each(|access| shift(entities, access));
    let mut text = String::new();
    match &mut operation.action {
        Action::Other | Action::Captured { .. } => return None,
        Action::GraphInstantiate { graph, .. }
        | Action::GraphUpdate { graph, .. }
        | Action::GraphLaunch { graph, .. } => {
            text = graph_text(entities, *graph);
            *graph = GraphId(0);
        }
        Action::Signals(signals) => {
            let signals = Arc::make_mut(signals);
            signals.operations.iter_mut().for_each(|one| shift_word(entities, one));
        }
        _ => {}
    }
    Some(format!("{operation:?} {text}"))
}

fn graph_text(entities: &Entities, id: GraphId) -> String {
    let graph = entities.graph(id).expect("declared before");
    let mut text = String::new();
    for node in &graph.nodes {
        let mut node = node.clone();
        node.made_by = OpSeq::START;
        node.captured_from = None;
        node.accesses.iter_mut().for_each(|access| shift(entities, access));
        match &mut node.action {
            NodeAction::Copy(copy) => copy.stream = StreamId(0),
            NodeAction::Child { graph } => {
                text += &graph_text(entities, *graph);
                *graph = GraphId(0);
            }
            NodeAction::Conditional { bodies, .. } => {
                for body in bodies {
                    text += &graph_text(entities, *body);
                    *body = GraphId(0);
                }
            }
            NodeAction::Signals { operations } => {
                operations.iter_mut().for_each(|one| shift_word(entities, one));
            }
            _ => {}
        }
        text += &format!("{node:?} ");
    }
    text + &format!("{:?}", graph.edges)
}

/// Addresses relative to the begin of the allocation.
fn shift(entities: &Entities, access: &mut Access) {
    let start = entities.allocation(access.allocation).expect("declared before").range.start;
    match &mut access.extent {
        Extent::Range(range) => *range = ByteRange::new(range.start - start, range.end - start),
        Extent::Strided(pattern) => pattern.start -= start,
    }
}

fn shift_word(entities: &Entities, operation: &mut SignalOperation) {
    let (SignalOperation::Signal { object, .. } | SignalOperation::Wait { object, .. }) = operation;
    if let SignalObject::Memory { allocation, address, .. } = object {
        *address -= entities.allocation(*allocation).expect("declared before").range.start;
    }
}

/// Ids, which are a letter or `#` and a number, by the order in which they come.
fn renumbered(lines: &[String]) -> Vec<String> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let is_id = |word: &str| {
        let mut chars = word.chars();
        let kind = chars.next().is_some_and(|c| c == '#' || c.is_ascii_lowercase());
        kind && !chars.as_str().is_empty() && chars.all(|c| c.is_ascii_digit())
    };
    let mut rename = |word: &str| -> String {
        if !is_id(word) {
            return word.to_owned();
        }
        let next = numbers.len();
        let number = numbers.entry(word.to_owned()).or_insert(next);
        format!("{}{number}", &word[..1])
    };
    let is_word = |c: char| c == '#' || c == '_' || c.is_alphanumeric();
    lines
        .iter()
        .map(|line| {
            let (mut out, mut word) = (String::new(), String::new());
            for c in line.chars().chain([' ']) {
                if is_word(c) {
                    word.push(c);
                } else {
                    out.push_str(&rename(&std::mem::take(&mut word)));
                    out.push(c);
                }
            }
            out
        })
        .collect()
}

/// Entities, a kind at a time: the kinds need not come in the same order. Graphs name lines, which
/// are others; operations tell them.
pub(crate) fn entities(items: &[TraceItem]) -> Vec<impl PartialEq + Debug> {
    let mut entities: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Entity(Entity::Graph(_)) => None,
            TraceItem::Entity(entity) => Some(entity.clone()),
            _ => None,
        })
        .collect();
    entities.sort_by_key(|entity| match entity {
        Entity::Process(_) => 0,
        Entity::Thread(_) => 1,
        Entity::Context(_) => 2,
        Entity::Stream(_) => 3,
        Entity::Event(_) => 4,
        Entity::Allocation(_) => 5,
        Entity::Graph(_) => 7,
        Entity::Kernel(_) => 6,
        Entity::Module(_) | Entity::KernelCode(_) | Entity::Frame(_) | Entity::Stack(_) => 8,
    });
    entities
}
