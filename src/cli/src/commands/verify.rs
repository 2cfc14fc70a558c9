//! Whether a proposed edge does what it is proposed for: the trace again, with it.

use super::trace::Trace;
use crate::error::Error;
use std::collections::{BTreeMap, HashMap};
use streamsan_analysis::{Engine, Options, Sink, WhatIf};
use streamsan_model::{
    AllocationId, Edge, Entities, Finding, Fingerprint, Lint, OpSeq, ProposedEdge, Severity,
    StackId,
};
use streamsan_report::Effect;

/// Occurrences that are held against each other; with more nothing is verified.
const OCCURRENCES: usize = 1_000_000;
/// Edges that are put in at once.
const EDGES: usize = 100_000;

/// A fingerprint with its severity.
type Mistake = (Fingerprint, Severity);

/// A fingerprint as the analysis has it, and the stacks that it gets its call sites from.
type Unsited = (Fingerprint, Severity, [Option<StackId>; 2]);

/// All occurrences of all findings.
#[derive(Default)]
struct Occurrences {
    all: BTreeMap<(OpSeq, OpSeq, AllocationId), Unsited>,
    edges: BTreeMap<(Unsited, AllocationId), Vec<ProposedEdge>>,
    too_many: bool,
}

impl Sink for Occurrences {
    fn edge(&mut self, _: &Edge) {}

    fn finding(&mut self, finding: Finding) {
        if self.all.len() >= OCCURRENCES {
            self.too_many = true;
            return;
        }
        let stacks = [finding.first.stack, finding.second.stack];
        let unsited = (finding.fingerprint, finding.severity, stacks);
        let allocation = finding.allocation;
        self.all.insert((finding.first.op, finding.second.op, allocation), unsited);
        if let Some(edge) = finding.proposed_edge {
            self.edges.entry((unsited, allocation)).or_default().push(edge);
        }
    }

    fn lint(&mut self, _: Lint) {}
}

/// Verifies proposed edges, each by one more analysis.
pub(super) struct Verifier<'a> {
    trace: &'a Trace,
    options: Options,
    entities: Entities,
    before: Occurrences,
    /// The report's names of the mistakes.
    names: HashMap<(Unsited, AllocationId), Mistake>,
}

impl<'a> Verifier<'a> {
    /// Analyses the trace as it is, to compare with.
    ///
    /// # Errors
    ///
    /// A trace that cannot be read.
    pub(super) fn new(trace: &'a Trace, strict: bool) -> Result<Self, Error> {
        let options = trace.options(strict)?;
        let mut before = Occurrences::default();
        let entities = trace.analyse(options.clone(), &mut before)?;
        let mut names = HashMap::new();
        for (&(.., allocation), &unsited) in &before.all {
            names.entry((unsited, allocation)).or_insert_with(|| {
                let (fingerprint, severity, [first, second]) = unsited;
                let allocated = entities.allocation(allocation).and_then(|a| a.stack);
                (fingerprint.at_sites(&entities, &[first, second, allocated]), severity)
            });
        }
        Ok(Self { trace, options, entities, before, names })
    }

    /// The effect of a finding's edges, put in at each of its occurrences; nothing where it has
    /// none, or where there are too many of them to be compared.
    ///
    /// # Errors
    ///
    /// A trace that cannot be read.
    pub(super) fn effect(&self, finding: &Finding) -> Result<Option<Effect>, Error> {
        let mistake = (finding.fingerprint, finding.severity);
        let is_own = |unsited: &Unsited, allocation: AllocationId| {
            self.names.get(&(*unsited, allocation)) == Some(&mistake)
        };
        let edges = self.before.edges.iter();
        let edges = edges.filter(|((unsited, allocation), _)| is_own(unsited, *allocation));
        let edges: Vec<ProposedEdge> = edges.flat_map(|(_, edges)| edges).copied().collect();
        if edges.is_empty() || self.before.too_many || edges.len() > EDGES {
            return Ok(None);
        }
        let mut what_if = WhatIf::new(&self.entities, edges);
        let mut engine = Engine::new(self.options.clone());
        let mut after = Occurrences::default();
        self.trace.items(|item| what_if.feed(&item, |item| engine.feed(item, &mut after)))?;
        engine.finish(&mut after);
        if after.too_many {
            return Ok(None);
        }
        let left: BTreeMap<_, _> = after
            .all
            .iter()
            .map(|(&(first, second, allocation), mistake)| {
                ((what_if.original(first), what_if.original(second), allocation), mistake)
            })
            .collect();
        let mut effect = Effect::default();
        for (pair, unsited) in &self.before.all {
            let own = is_own(unsited, pair.2);
            effect.occurrences += u64::from(own);
            if !left.contains_key(pair) {
                *(if own { &mut effect.removes } else { &mut effect.removes_others }) += 1;
            }
        }
        let appears = left.keys().filter(|pair| !self.before.all.contains_key(pair));
        effect.adds = appears.count() as u64;
        Ok(Some(effect))
    }
}
