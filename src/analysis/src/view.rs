//! The view of an access: everything that happens before it.
//!
//! Invariant: a view is taken when the operation is issued and does not change afterwards, so that
//! an edge which is learnt later orders nothing earlier.

use crate::clock::{Agent, Chain, Know};
use crate::record::{AccessRecord, Place};
use crate::shadow::Order;
use std::sync::Arc;
use streamsan_model::{Mode, OpSeq};

/// The view of an access: everything that happens before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The access's own chain, and the issue index up to which the access is behind that chain;
    /// `None` on the host.
    pub(crate) own: Option<(Chain, u64)>,
    /// The agent that issues the access, or the host on which it happens. The access is behind
    /// everything that this agent did before.
    pub(crate) agent: Agent,
    pub(crate) know: Arc<Know>,
}

impl Order for View {
    fn covers(&self, place: Place, op: OpSeq) -> bool {
        match place {
            // Issued work is behind what its host did before.
            Place::Host(agent) => {
                agent == self.agent || self.know.documented.covers_host(agent, op.0)
            }
            Place::Chain(chain) => {
                self.own.is_some_and(|(own, upto)| own == chain && op.0 <= upto)
                    || self.know.documented.covers(chain, op.0)
            }
        }
    }

    fn covers_access(&self, place: Place, op: OpSeq, mode: Mode) -> bool {
        let reads_are_done = || match place {
            Place::Chain(chain) => self.know.documented.covers_reads(chain, op.0),
            Place::Host(_) => false,
        };
        self.covers(place, op) || mode.weak() == Mode::Read && reads_are_done()
    }
}

impl View {
    /// Whether incidental order puts the earlier access before this one.
    pub(crate) fn covers_incidentally(&self, earlier: &AccessRecord) -> bool {
        match earlier.place {
            Place::Host(agent) => {
                agent == self.agent || self.know.covers_host_incidentally(agent, earlier.op.0)
            }
            Place::Chain(chain) if earlier.access.mode.weak() == Mode::Read => {
                self.know.covers_reads_incidentally(chain, earlier.op.0)
            }
            Place::Chain(chain) => self.know.covers_incidentally(chain, earlier.op.0),
        }
    }

    /// As [`View::known`], of a chain whose slot it has since `since`.
    pub(crate) fn known_since(&self, chain: Chain, since: u64) -> u64 {
        match self.own {
            Some((own, upto)) if own == chain => upto,
            _ => self.know.documented.known_since(chain, since),
        }
    }

    /// The issue index up to which the chain is known by documented order.
    pub(crate) fn known(&self, chain: Chain) -> u64 {
        match self.own {
            Some((own, upto)) if own == chain => upto,
            _ => self.know.documented.known(chain),
        }
    }
}
