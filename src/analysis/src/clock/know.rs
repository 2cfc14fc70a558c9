//! Knowledge in two tiers, each a clock.
//!
//! Invariant: the incidental tier is never asked alone. What documented order knows, incidental order
//! knows too.

use super::{Agent, Chain, Clock};
use std::sync::Arc;
use streamsan_model::{ContextId, Tier};

/// The knowledge of a stream or a host, in both tiers.
///
/// The incidental tier holds only what is known *beyond* the documented tier. Mostly that is a
/// floor or nothing, so carrying the tier costs next to nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Know {
    /// Knowledge by documented order.
    pub(crate) documented: Clock,
    /// Additional knowledge by incidental order; `None` where there is none.
    pub(super) incidental: Option<Arc<Clock>>,
}

impl Know {
    /// Whether documented or incidental order puts the operation `g` of `chain` before the owner of
    /// this knowledge.
    pub(crate) fn covers_incidentally(&self, chain: Chain, g: u64) -> bool {
        let incidentally = || self.incidental.as_ref().is_some_and(|clock| clock.covers(chain, g));
        self.documented.covers(chain, g) || incidentally()
    }

    /// Whether documented or incidental order puts the reads of the operation before.
    pub(crate) fn covers_reads_incidentally(&self, chain: Chain, g: u64) -> bool {
        let incidental = self.incidental.as_ref();
        self.documented.covers_reads(chain, g)
            || incidental.is_some_and(|clock| clock.covers_reads(chain, g))
    }

    /// Whether documented or incidental order puts the agent's accesses up to `g` before the owner
    /// of this knowledge.
    pub(crate) fn covers_host_incidentally(&self, agent: Agent, g: u64) -> bool {
        let incidental = self.incidental.as_ref();
        self.documented.covers_host(agent, g)
            || incidental.is_some_and(|clock| clock.covers_host(agent, g))
    }

    /// Joins with `other`, tier by tier.
    pub(crate) fn join(&mut self, other: &Self) {
        self.documented.join(&other.documented);
        self.join_incidental(other);
    }

    fn join_incidental(&mut self, other: &Self) {
        let Some(theirs) = &other.incidental else { return };
        match &mut self.incidental {
            None => self.incidental = Some(Arc::clone(theirs)),
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => Arc::make_mut(mine).join(theirs),
        }
    }

    /// The incidental tier, for adding to it.
    fn incidental_mut(&mut self) -> &mut Clock {
        Arc::make_mut(self.incidental.get_or_insert_default())
    }

    /// The knowledge that several snapshots have in common. `contexts` holds the context of each
    /// chain, by slot.
    pub(crate) fn common(parts: &[Part], contexts: &[ContextId]) -> Self {
        let of = |part: &Part, tier: Tier| {
            // The incidental tier holds what is known beyond the documented one, so the minimum
            // needs both.
            let mut clock = part.know.documented.clone();
            if tier == Tier::Incidental
                && let Some(incidental) = &part.know.incidental
            {
                clock.join(incidental);
            }
            clock.raise(part.chain, part.g);
            clock
        };
        let common = |tier| {
            let clocks: Vec<Clock> = parts.iter().map(|part| of(part, tier)).collect();
            Clock::common(&clocks, contexts)
        };
        let incidental = Some(Arc::new(common(Tier::Incidental)));
        Self { documented: common(Tier::Documented), incidental }
    }

    /// Adds a snapshot: the operation itself and what its chain knew at that operation.
    pub(crate) fn acquire(&mut self, part: &Part) {
        if !self.documented.covers(part.chain, part.g) {
            self.documented.join(&part.know.documented);
            self.documented.raise(part.chain, part.g);
            self.join_incidental(&part.know);
        }
    }

    /// Like [`Know::acquire`] for shared knowledge, which is copied only if there is something to
    /// add.
    pub(crate) fn acquire_shared(know: &mut Arc<Self>, part: &Part) {
        if !know.documented.covers(part.chain, part.g) {
            Arc::make_mut(know).acquire(part);
        }
    }

    /// Adds a snapshot to the incidental tier only.
    pub(crate) fn acquire_incidentally(&mut self, part: &Part) {
        if !self.covers_incidentally(part.chain, part.g) {
            self.join_incidental(&part.know);
            let incidental = self.incidental_mut();
            incidental.join(&part.know.documented);
            incidental.raise(part.chain, part.g);
        }
    }

    /// Records by documented order that everything issued up to `g` in `context` has happened.
    pub(crate) fn raise_floor(&mut self, context: ContextId, g: u64) {
        self.documented.raise_floor(context, g);
        // By now most of what incidental order had added is known by documented order.
        if let Some(clock) = &self.incidental
            && clock.highest == 0
            && clock.hosts.is_none()
            && clock.reads.is_none()
            && clock.is_below(&self.documented)
        {
            self.incidental = None;
        }
    }

    /// Records by incidental order that everything issued up to `g` in `context` has happened.
    pub(crate) fn raise_floor_incidentally(&mut self, context: ContextId, g: u64) {
        self.incidental_mut().raise_floor(context, g);
    }
}

/// A point in a chain, with the knowledge that the chain had there.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) chain: Chain,
    pub(crate) g: u64,
    pub(crate) know: Arc<Know>,
}
