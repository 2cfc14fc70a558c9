//! The bodies of conditional nodes, which drivers before CUDA 13.2 tell only when the node is made.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::driver::{self, Structure};

/// Where `CUgraphNodeParams` keeps its union, in words.
pub(super) const UNION: usize = 2;

/// Words of `CUDA_CONDITIONAL_NODE_PARAMS`: type and size share one, the array of bodies follows.
const TYPE_AND_SIZE: usize = 1;
const BODIES: usize = 2;

/// Most bodies of a node that are followed.
const MOST_BODIES: usize = 1024;
/// Most nodes that are remembered.
const MOST_NODES: usize = 1 << 16;
/// Attempts to get at the table, which another thread or a fork may hold.
const ATTEMPTS: usize = 1 << 16;

/// A conditional node.
#[derive(Clone)]
pub(super) struct Conditional {
    /// Its parameters, as far as they say more than addresses.
    pub(super) words: [u64; 4],
    /// Its bodies.
    pub(super) bodies: Vec<u64>,
}

static KNOWN: Mutex<BTreeMap<u64, Conditional>> = Mutex::new(BTreeMap::new());

fn known() -> Option<MutexGuard<'static, BTreeMap<u64, Conditional>>> {
    for _ in 0..ATTEMPTS {
        if let Ok(table) = KNOWN.try_lock() {
            return Some(table);
        }
        core::hint::spin_loop();
    }
    None
}

/// Reads `CUDA_CONDITIONAL_NODE_PARAMS` that the driver has filled in.
fn read(union: &[u64]) -> Option<Conditional> {
    let words: [u64; 4] = union.get(..4)?.try_into().ok()?;
    let size = (words[TYPE_AND_SIZE] >> 32) as usize;
    let first = words[BODIES] as *const u64;
    if first.is_null() || size > MOST_BODIES {
        return None;
    }
    // SAFETY: the driver's array of `size` graphs, valid as long as the node is.
    let bodies = (0..size).map(|body| unsafe { first.add(body).read() }).collect();
    Some(Conditional { words, bodies })
}

/// A conditional node was made with this `CUgraphNodeParams`.
pub(super) fn remember(node: u64, params: &[u64]) {
    let Some(conditional) = params.get(UNION..).and_then(read) else { return };
    if let Some(mut table) = known()
        && table.len() < MOST_NODES
    {
        table.insert(node, conditional);
    }
}

/// The bodies of a conditional node: from the driver if it tells, else from when it was made.
pub(super) fn of(node: u64) -> Option<Conditional> {
    let mut structure: Structure = [0; 32];
    match driver::any_params(node, &mut structure) {
        Some(()) => read(&structure[UNION..]),
        None => known()?.get(&node).cloned(),
    }
}
