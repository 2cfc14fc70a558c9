//! From the conflicts of one operation to findings: one finding for each pair of operations and
//! allocation.
//!
//! Invariant: a finding does not depend on how the shadow memory has split the accesses, nor on the
//! order in which the pieces of the conflict were found.

use crate::Sink;
use crate::clock::Chain;
use crate::conflict::{confidence, hull};
use crate::core::Core;
use crate::host::Host;
use crate::memory::{Conflict, Scope};
use crate::record::{AccessRecord, Place};
use streamsan_model::{
    Confidence, Finding, FindingAccess, Fingerprint, Mode, OpSeq, RaceClass, Severity,
};

impl Core {
    /// Reports the conflicts of the current operation.
    #[cold]
    pub(crate) fn conclude(&mut self, sink: &mut dyn Sink) {
        let mut conflicts = std::mem::take(&mut self.memory.conflicts);
        // The knowledge of the other hosts at this moment counts as well.
        if let Some(now) = conflicts.first().map(|conflict| conflict.later.op) {
            self.hosts.iter_mut().for_each(|host| host.catch_up(now));
        }
        // How two accesses are split depends on what else the shadow memory holds. The choice among
        // the pieces must not depend on it.
        conflicts.sort_by_key(|c| {
            let (earlier, later) = (&c.earlier, &c.later);
            let pair = (later.op, later.access.allocation, earlier.op);
            (pair, c.kind, later.id, earlier.id, c.overlap)
        });
        let same = |a: &Conflict, b: &Conflict| {
            a.later.access.allocation == b.later.access.allocation
                && (a.earlier.op, a.later.op) == (b.earlier.op, b.later.op)
        };
        for pair in conflicts.chunk_by(same) {
            let finding = self.finding(pair);
            self.ended.name_finding(&finding);
            self.statistics.findings += 1;
            sink.finding(finding);
        }
        conflicts.clear();
        // Keeps the room for the next operation.
        self.memory.conflicts = conflicts;
    }

    /// Makes one finding from all conflicting pieces of a pair, the strongest kind first. The
    /// finding shows the best-known accesses of that kind and has their confidence.
    fn finding(&self, pieces: &[Conflict]) -> Finding {
        let known = |c: &Conflict| confidence(&c.earlier, &c.later, c.overlap);
        let of_kind = pieces.iter().take_while(|c| c.kind == pieces[0].kind);
        let best = of_kind.clone().map(known).max();
        let mut strongest = of_kind.filter(|c| best == Some(known(c)));
        let strongest = strongest.next().unwrap_or(&pieces[0]);
        let (earlier, later) = (&strongest.earlier, &strongest.later);
        let overlap = pieces.iter().map(|c| c.overlap).reduce(hull).unwrap_or(strongest.overlap);
        let mut severity =
            if pieces.iter().all(|c| c.latent) { Severity::Latent } else { Severity::Race };
        let mut masked_by = match severity {
            Severity::Latent => self.masked_by(strongest),
            _ => None,
        };
        let mut confidence = pieces.iter().map(known).max().unwrap_or(Confidence::Possible);
        let (mut class, mut nearest) = match strongest.scope {
            Scope::Operations => self.classify(strongest.kind, earlier, later),
            Scope::Graph(class) => (class, None),
            Scope::Parts => (RaceClass::MissingWait, None),
        };
        if strongest.scope == Scope::Operations {
            if let Some(wait) = self.outside.between(earlier, later) {
                // The awaited agent is not known: it may be the other side.
                (confidence, nearest) = (Confidence::Possible, Some(wait));
            } else if self.is_told_by_process(earlier, later) {
                confidence = Confidence::Possible;
            }
        }
        if severity == Severity::Latent
            && masked_by.is_none()
            && let Some(pool) = self.masked_by_pool(strongest)
        {
            severity = Severity::Lint;
            (class, nearest, masked_by) = (RaceClass::PooledStreamAlias, None, Some(pool));
        }
        let (first, second) = (self.side(earlier), self.side(later));
        let allocation = self.entities.allocation(later.access.allocation);
        let fingerprint = Fingerprint::of([
            class.description(),
            strongest.kind.description(),
            &first.api,
            first.kernel.as_deref().unwrap_or(""),
            &second.api,
            second.kernel.as_deref().unwrap_or(""),
            allocation.map_or("", |a| a.kind.description()),
            allocation.map_or("", |a| a.api.as_str()),
        ]);
        let proposed_edge = match strongest.scope {
            Scope::Operations => self.proposal(class, earlier, later),
            // In a captured graph, an event makes the edge.
            Scope::Graph(_) if earlier.stream.is_some() && later.stream.is_some() => {
                self.proposal(class, earlier, later).filter(|edge| edge.in_stream.is_some())
            }
            Scope::Graph(_) | Scope::Parts => None,
        };
        Finding {
            fingerprint,
            severity,
            class,
            kind: strongest.kind,
            confidence,
            allocation: later.access.allocation,
            overlap,
            // For freed memory the knowledge does not matter; the stream that freed it may be gone.
            knows: match earlier.access.mode {
                Mode::Free => None,
                _ if class == RaceClass::UseAfterFree => None,
                _ => self.knows(strongest),
            },
            nearest,
            masked_by,
            proposed_edge,
            first,
            second,
        }
    }

    /// The issue index up to which the later side knows the earlier side's stream. `None` where
    /// that index is older than the stream, whose slot had another owner then.
    fn knows(&self, conflict: &Conflict) -> Option<OpSeq> {
        if conflict.scope != Scope::Operations {
            return None;
        }
        let stream = self.stream(conflict.earlier.stream?)?;
        // Some operations of a stream are not in its chain: kernels with programmatic
        // serialization, and nodes of graphs whose end an event tells.
        let known = |chain: Chain| {
            let since = self.slot_since.get(chain.slot as usize).copied().unwrap_or(0);
            conflict.later.view.known_since(chain, since)
        };
        let in_its_chain = known(stream.chain);
        let of_earlier = match conflict.earlier.place {
            Place::Chain(chain) => known(chain),
            Place::Host(_) => 0,
        };
        let knows = of_earlier.max(in_its_chain.min(conflict.earlier.op.0.saturating_sub(1)));
        (knows >= stream.first).then_some(OpSeq(knows))
    }

    /// Whether one process knew that the earlier side was done and may have told the other process.
    /// How processes talk to each other cannot be seen.
    fn is_told_by_process(&self, earlier: &AccessRecord, later: &AccessRecord) -> bool {
        let of_process = |host: &&Host| host.process == Some(earlier.process);
        earlier.process != later.process
            && self.hosts.iter().filter(of_process).any(|host| match earlier.place {
                Place::Host(_) => true,
                Place::Chain(chain) => host.know.documented.covers(chain, earlier.op.0),
            })
    }

    fn side(&self, record: &AccessRecord) -> FindingAccess {
        FindingAccess {
            op: record.op,
            stream: record.stream,
            api: self.api_names.name(record.api).to_string(),
            kernel: record
                .kernel
                .and_then(|kernel| Some(self.entities.kernel(kernel)?.name.clone())),
            access: record.access.clone(),
            stack: record.stack,
        }
    }
}
