//! The engine's public face.

use crate::{Options, Sink, Statistics};
use std::borrow::Borrow;
use streamsan_model::{Edge, Entities, Finding, TraceItem};

/// An incremental analysis of one trace.
#[derive(Debug, Default)]
pub struct Engine {
    entities: Entities,
    statistics: Statistics,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(_options: Options) -> Self {
        Self::default()
    }

    /// Takes the next item of the trace.
    pub fn feed(&mut self, item: &TraceItem, _sink: &mut dyn Sink) {
        match item {
            TraceItem::Entity(entity) => self.entities.declare(entity.clone()),
            TraceItem::Operation(_) => self.statistics.operations += 1,
            TraceItem::Returned { .. } => {}
        }
    }

    /// The trace has ended.
    pub fn finish(&mut self, _sink: &mut dyn Sink) {}

    /// What was seen and spent so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What was declared so far.
    pub fn entities(&self) -> &Entities {
        &self.entities
    }
}

/// The result of a whole trace.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Sorted by the later operation, the earlier operation, the allocation.
    pub findings: Vec<Finding>,
    /// In the order of the operations that complete them.
    pub edges: Vec<Edge>,
    /// What was declared.
    pub entities: Entities,
    /// What was seen and spent.
    pub statistics: Statistics,
}

impl Sink for Analysis {
    fn edge(&mut self, edge: &Edge) {
        self.edges.push(*edge);
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// Analyses a whole trace.
pub fn analyse(items: impl IntoIterator<Item = impl Borrow<TraceItem>>) -> Analysis {
    let mut engine = Engine::new(Options::default());
    let mut analysis = Analysis::default();
    for item in items {
        engine.feed(item.borrow(), &mut analysis);
    }
    engine.finish(&mut analysis);
    analysis.findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
    analysis.statistics = engine.statistics;
    analysis.entities = engine.entities;
    analysis
}
