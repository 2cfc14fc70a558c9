//! Conditional nodes whose condition no kernel changes.
//!
//! A condition has the value that it was made with at every launch
//! (`CU_GRAPH_COND_ASSIGN_DEFAULT`), so which body runs is known when the graph becomes executable.
//!
//! CUDA Driver API, `cuGraphConditionalHandleCreate`, `CUDA_CONDITIONAL_NODE_PARAMS`.
//!
//! Deliberately absent: conditions that kernels set (`cudaGraphSetConditional`), and therefore loops
//! that run at all.

use std::sync::Arc;

use super::super::sim::Call;
use super::super::state::Driver;
use super::topology::Graph;
use crate::errors::{CuError, Outcome};

/// `CUgraphConditionalNodeType`.
const IF: u32 = 0;
const WHILE: u32 = 1;
const SWITCH: u32 = 2;
/// `CU_GRAPH_COND_ASSIGN_DEFAULT`.
const ASSIGN_DEFAULT: u32 = 1;

/// A conditional node.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalNode {
    /// The handle of its condition.
    pub(crate) condition: u64,
    /// The value of the condition at every launch.
    value: u32,
    /// `CUgraphConditionalNodeType`.
    pub(crate) kind: u32,
    /// Graphs that belong to the node; programs read the list where it lies.
    pub(crate) bodies: Arc<[u64]>,
    pub(crate) context: u64,
}

impl ConditionalNode {
    /// The body that a launch runs.
    pub(super) fn chosen(&self) -> Option<u64> {
        let body = match (self.kind, self.value) {
            (IF, 0) => 1,
            (IF, _) => 0,
            (SWITCH, value) => value as usize,
            _ => return None,
        };
        self.bodies.get(body).copied()
    }
}

impl Driver {
    /// A conditional node with empty bodies of its own.
    pub(super) fn conditional_node(
        &mut self,
        condition: u64,
        kind: u32,
        size: u32,
        context: u64,
    ) -> Outcome<ConditionalNode> {
        let value = *self.conditions.get(&condition).ok_or(CuError::INVALID_VALUE)?;
        let fits = match kind {
            IF => (1..=2).contains(&size),
            WHILE => size == 1,
            SWITCH => size >= 1,
            _ => false,
        };
        if !fits {
            return Err(CuError::INVALID_VALUE);
        }
        if kind == WHILE && value != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        let bodies = (0..size).map(|_| self.graphs.insert(Graph::of_node())).collect();
        Ok(ConditionalNode { condition, value, kind, bodies, context })
    }
}

impl Call {
    /// A condition of a graph.
    pub(crate) fn graph_condition(&self, graph: u64, default: u32, flags: u32) -> Outcome<u64> {
        let mut driver = self.lock();
        driver.graph(graph)?;
        match flags {
            ASSIGN_DEFAULT => {}
            // Without a value before a kernel sets it.
            0 => return Err(CuError::NOT_SUPPORTED),
            _ => return Err(CuError::INVALID_VALUE),
        }
        let condition = driver.fresh_id();
        driver.conditions.insert(condition, default);
        Ok(condition)
    }
}
