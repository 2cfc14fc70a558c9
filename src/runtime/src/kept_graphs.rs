//! Graphs that outlive their destruction where kernels are measured.
//!
//! The Compute Sanitizer API names the node that it launches by the node's handle in the graph that
//! was instantiated, for as long as that graph is there. After `cuGraphDestroy` it names the node by a
//! handle in a copy that nobody else has seen (observed with driver 580.159.04 and the API of CUDA
//! 13.5; not documented). Most programs destroy a graph as soon as it is instantiated. So, in a run
//! that measures, the destruction of such a graph succeeds and is not carried out.
//!
//! Invariants:
//! - Nothing here happens in a run that does not measure.
//! - A graph that holds user objects is destroyed: the program may wait for their destructors
//!   (`cuGraphRetainUserObject`).
//! - At most [`MOST`] graphs are kept; those beyond are destroyed.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use streamsan_wire::{Api, Counted};

use crate::resolve::{self, REAL};

/// Graphs that are kept at most. One takes some kilobytes of the driver's for each node.
const MOST: usize = 1 << 14;

/// The state of a graph of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptGraph {
    Instantiated,
    HoldsUserObjects,
    /// The program has destroyed it.
    Kept,
}

#[derive(Debug, Default)]
struct KeptGraphs {
    graphs: HashMap<u64, KeptGraph>,
    kept: usize,
}

impl KeptGraphs {
    fn instantiated(&mut self, graph: u64) {
        self.graphs.entry(graph).or_insert(KeptGraph::Instantiated);
    }

    fn retains(&mut self, graph: u64) {
        self.graphs.insert(graph, KeptGraph::HoldsUserObjects);
    }

    /// The program destroys a graph: whether the graph is kept.
    fn destroys(&mut self, graph: u64) -> bool {
        match self.graphs.get_mut(&graph) {
            Some(state @ KeptGraph::Instantiated) if self.kept < MOST => {
                *state = KeptGraph::Kept;
                self.kept += 1;
                true
            }
            // Its handle may mean another graph from now on.
            _ => {
                self.graphs.remove(&graph);
                false
            }
        }
    }
}

static GRAPHS: Mutex<Option<KeptGraphs>> = Mutex::new(None);

/// The driver's own functions.
static DESTROY: AtomicUsize = AtomicUsize::new(0);
static RETAIN: AtomicUsize = AtomicUsize::new(0);

fn graphs() -> Option<MutexGuard<'static, Option<KeptGraphs>>> {
    GRAPHS.lock().ok()
}

/// Puts functions of ours in the place of the driver's for the two calls that matter. Called once,
/// before the program has a context.
pub(crate) fn start() {
    let replace = |counted: Counted, kept: &AtomicUsize, own: usize| {
        let Some(real) = resolve::real_counted(counted) else { return };
        kept.store(real, Ordering::Release);
        REAL[resolve::counted_index(counted)].store(own, Ordering::Release);
    };
    if let Some(mut graphs) = graphs() {
        *graphs = Some(KeptGraphs::default());
    }
    replace(Counted::cuGraphDestroy, &DESTROY, destroy as *const () as usize);
    replace(Counted::cuGraphRetainUserObject, &RETAIN, retain as *const () as usize);
}

/// A call has succeeded that may have made an executable of a graph.
pub(crate) fn after(api: Api, words: &[u64]) {
    let is_instantiation = matches!(
        api,
        Api::cuGraphInstantiate
            | Api::cuGraphInstantiate_v2
            | Api::cuGraphInstantiateWithFlags
            | Api::cuGraphInstantiateWithParams
            | Api::cuGraphInstantiateWithParams_ptsz
    );
    if let Some(&graph) = words.get(1)
        && is_instantiation
        && let Some(mut graphs) = graphs()
        && let Some(graphs) = &mut *graphs
    {
        graphs.instantiated(graph);
    }
}

/// `cuGraphDestroy`.
extern "C" fn destroy(graph: u64) -> i32 {
    let keeps = graphs().and_then(|mut graphs| Some(graphs.as_mut()?.destroys(graph)));
    if keeps == Some(true) {
        return 0;
    }
    // SAFETY: the address of the driver's function of this signature.
    let real = unsafe {
        core::mem::transmute::<usize, extern "C" fn(u64) -> i32>(DESTROY.load(Ordering::Acquire))
    };
    real(graph)
}

/// `cuGraphRetainUserObject`.
extern "C" fn retain(graph: u64, object: u64, count: u32, flags: u32) -> i32 {
    if let Some(mut graphs) = graphs()
        && let Some(graphs) = &mut *graphs
    {
        graphs.retains(graph);
    }
    // SAFETY: the address of the driver's function of this signature.
    let real = unsafe {
        core::mem::transmute::<usize, extern "C" fn(u64, u64, u32, u32) -> i32>(
            RETAIN.load(Ordering::Acquire),
        )
    };
    real(graph, object, count, flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instantiated_graphs_without_user_objects_are_kept() {
        let mut graphs = KeptGraphs::default();
        assert!(!graphs.destroys(1));
        graphs.instantiated(2);
        graphs.instantiated(2);
        assert!(graphs.destroys(2));
        // Once more: the driver answers.
        assert!(!graphs.destroys(2));
        graphs.instantiated(3);
        graphs.retains(3);
        assert!(!graphs.destroys(3));
        // A handle that is used again.
        graphs.instantiated(3);
        assert!(graphs.destroys(3));
        // An object may be retained before the graph is instantiated.
        graphs.retains(4);
        graphs.instantiated(4);
        assert!(!graphs.destroys(4));
    }

    #[test]
    fn no_more_than_most_are_kept() {
        let mut graphs = KeptGraphs::default();
        (0..=MOST as u64).for_each(|graph| graphs.instantiated(graph));
        assert_eq!((0..=MOST as u64).filter(|&graph| graphs.destroys(graph)).count(), MOST);
    }
}
