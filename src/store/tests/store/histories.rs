//! The history of an allocation: who used it, with lists of uses and without, in part.

use crate::common;
use crate::query::{finished, many, reader, write};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::Reader;

/// The graphs of the fixed trace by number, and the graphs that a launch of each of them runs.
fn graphs() -> HashMap<GraphId, Arc<Graph>> {
    let graphs = common::entities().into_iter().filter_map(|entity| match entity {
        Entity::Graph(graph) => Some((graph.id, graph)),
        _ => None,
    });
    graphs.collect()
}

fn run_by(graph: GraphId, graphs: &HashMap<GraphId, Arc<Graph>>) -> BTreeSet<GraphId> {
    let mut all = BTreeSet::from([graph]);
    for node in &graphs[&graph].nodes {
        match &node.action {
            NodeAction::Child { graph } => all.extend(run_by(*graph, graphs)),
            NodeAction::Conditional { bodies, .. } => {
                bodies.iter().for_each(|&body| all.extend(run_by(body, graphs)));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn history_of_an_allocation_is_its_accesses() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    let graphs = graphs();
    let (mut seen, mut launched) = (0, 0);
    for lifetime in reader.allocations(100).unwrap() {
        let id = lifetime.allocation.id;
        let history = reader.history(id).unwrap().unwrap();
        let lives = |g: OpSeq| lifetime.allocated.is_none_or(|begin| g >= begin);
        let uses: Vec<(OpSeq, Access)> = common::operations()
            .iter()
            .flat_map(|op| op.accesses.iter().map(|access| (op.g, access.clone())))
            .filter(|(g, access)| access.allocation == id && lives(*g))
            .collect();
        let own = history.uses.iter().filter(|u| u.graph.is_none());
        let found: Vec<_> = own.map(|u| (u.op, u.access.clone())).collect();
        assert_eq!(found, uses);
        assert_eq!(history.allocation, lifetime.allocation);
        seen += uses.len();
        // Launches touch what the nodes of their graphs touch.
        let mut through = BTreeSet::new();
        for op in common::operations().iter().filter(|op| lives(op.g)) {
            let Action::GraphLaunch { graph, .. } = op.action else { continue };
            for graph in run_by(graph, &graphs) {
                let nodes = graphs[&graph].nodes.iter().filter(|node| node.enabled);
                let touched = nodes.flat_map(|node| &node.accesses);
                let touched = touched.filter(|access| access.allocation == id);
                through.extend(touched.map(|access| format!("{} {graph} {access:?}", op.g)));
            }
        }
        let found = history.uses.iter().filter_map(|u| Some((u, u.graph?)));
        let found: Vec<_> =
            found.map(|(u, graph)| format!("{} {graph} {:?}", u.op, u.access)).collect();
        assert_eq!(found.len(), through.len(), "{found:?}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), through);
        assert!(history.uses.is_sorted_by_key(|u| u.op));
        launched += through.len();
    }
    assert!(seen > 0 && launched > 0, "{seen} {launched}");
    assert_eq!(reader.history(AllocationId(9999)).unwrap(), None);
}

/// A trace that is being recorded has no lists: its accesses are searched.
#[test]
fn history_without_lists_is_the_same_but_for_graphs() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let finished = reader(&folders[0]);
    let mut writer = write(&folders[1], &common::items(), &common::findings());
    writer.commit().unwrap();
    let path = folders[1].path().join("trace.db");
    let (opened, followed) = (Reader::open(&path).unwrap(), Reader::follow(&path).unwrap());
    for lifetime in finished.allocations(100).unwrap() {
        let id = lifetime.allocation.id;
        let whole = finished.history(id).unwrap().unwrap();
        assert_eq!(opened.history(id).unwrap().unwrap(), whole);
        let own = whole.uses.iter().filter(|u| u.graph.is_none()).cloned().collect::<Vec<_>>();
        assert_eq!(followed.history(id).unwrap().unwrap().uses, own);
    }
}

/// More uses than are shown, and pieces of lists that are longer than one row.
#[test]
fn long_histories_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut items = many(&vec![(1, 0, 3); 6000]);
    let mut touched = Vec::new();
    for (n, item) in items.iter_mut().enumerate() {
        let TraceItem::Operation(op) = item else { continue };
        let id = AllocationId(if n % 3 == 0 { 0 } else { 1 });
        let access = Access {
            allocation: id,
            extent: Extent::Range(ByteRange::new(1, 2)),
            mode: Mode::Read,
            basis: Basis::Exact,
        };
        op.accesses = vec![access.clone(), access];
        if id == AllocationId(1) {
            touched.push(op.g);
        }
    }
    let reader = finished(&folder, &items, &[]);
    let history = reader.history(AllocationId(1)).unwrap().unwrap();
    assert!(history.more);
    assert_eq!(history.uses.len(), History::USES);
    for (place, used) in history.uses.iter().enumerate() {
        assert_eq!(used.op, touched[place / 2]);
    }
    assert!(reader.history(AllocationId(0)).unwrap().unwrap().more);
}
