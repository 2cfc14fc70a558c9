//! Vector clocks: the operations that happen before a point of a stream or a host.
//!
//! Sources: Fidge (1988) and Mattern (1989) for vector clocks; Flanagan and Freund, "FastTrack"
//! (PLDI 2009), for the comparison of one number instead of a whole clock.
//!
//! A timestamp is a global issue index. A stream's operations form a chain, so one number a chain
//! says how far it is known: `entry(chain) >= g` means that the operation issued at `g` in that
//! chain has happened before. A *floor* says the same of all chains of a context at once: a
//! context synchronisation costs one number however many streams there are.
//!
//! Entries live in blocks of 64 behind `Arc`s, copied on write: taking a snapshot copies pointers,
//! and a join skips blocks that are the same on both sides.
//!
//! Invariant (monotone knowledge): a clock that covers operation `n` of a chain also covers
//! whatever that chain knew at `n`, because an entry is only ever raised together with that
//! knowledge. A join with a snapshot that is already covered is therefore free ([`Know::acquire`]).
//!
//! Reads have entries of their own where they are known further than the rest of their chain: the
//! blocks of a kernel may be known to have ended when what they wrote is not yet visible.
//!
//! Hosts have entries apart from the chains, and mostly none at all: an operation issued at `g` is
//! behind everything its own host did before `g`, which needs no entry. Only what one host has
//! learnt of another (another process; another thread, with strict host threads) has one.

mod know;

pub(crate) use know::{Know, Part};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::ContextId;

const BLOCK: usize = 64;
/// Entries of a block that are compared at a time.
const LANES: usize = 4;
type Block = [u64; BLOCK];

/// A chain: operations that are totally ordered. Chains have dense numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Chain {
    /// The chain's slot in the clocks.
    pub(crate) slot: u32,
    /// The context that the chain belongs to.
    pub(crate) context: ContextId,
}

impl Chain {
    /// The context of chains that belong to no context: no synchronisation covers such a chain.
    pub(crate) const NOWHERE: ContextId = ContextId(u32::MAX);
}

/// An agent issues calls and touches memory itself: the host of a process, or one host thread with
/// strict host threads. Agents have dense numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Agent(pub(crate) u32);

impl Agent {
    /// No agent at all.
    pub(crate) const NOBODY: Self = Self(u32::MAX);
}

impl Default for Agent {
    fn default() -> Self {
        Self::NOBODY
    }
}

/// The vector clock of one tier.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// By agent: the issue index up to which the agent's own accesses have happened. `None` where
    /// nothing is known of any agent.
    hosts: Option<Arc<Vec<u64>>>,
    floors: SmallVec<[u64; 2]>,
    blocks: SmallVec<[Option<Arc<Block>>; 2]>,
    /// By slot: the issue index up to which the reads of the chain have happened, where the reads
    /// are known further than the rest of the chain. `None` where there is no such chain.
    reads: Option<Arc<BTreeMap<u32, u64>>>,
    /// Upper bound of all entries.
    highest: u64,
    /// Whose chains have entries in this clock.
    owner: Owner,
}

/// Whose chains have entries in a clock. Where all entries belong to a single context, they are of
/// no use any more once they lie below the context's floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Nobody,
    One(ContextId),
    Several,
}

impl Owner {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nobody, x) | (x, Self::Nobody) => x,
            (x, y) if x == y => x,
            _ => Self::Several,
        }
    }
}

impl Clone for Clock {
    fn clone(&self) -> Self {
        Self {
            hosts: self.hosts.clone(),
            reads: self.reads.clone(),
            // Not by `clone`, which copies element by element.
            floors: SmallVec::from_slice(&self.floors),
            blocks: match &self.blocks[..] {
                [one] => SmallVec::from_buf_and_len([one.clone(), None], 1),
                [one, other] => SmallVec::from_buf([one.clone(), other.clone()]),
                all => all.into(),
            },
            highest: self.highest,
            owner: self.owner,
        }
    }
}

impl Clock {
    /// The issue index up to which the chain is known.
    pub(crate) fn known(&self, chain: Chain) -> u64 {
        self.floor(chain.context).max(self.entry(chain.slot))
    }

    /// As [`Clock::known`], of a chain whose slot it has since `since`: what is known of the slot
    /// from before that is of a chain that is gone.
    pub(crate) fn known_since(&self, chain: Chain, since: u64) -> u64 {
        let entry = Some(self.entry(chain.slot)).filter(|&entry| entry >= since);
        self.floor(chain.context).max(entry.unwrap_or(0))
    }

    /// Whether the operation issued at `g` in `chain` happens before the owner of this clock.
    pub(crate) fn covers(&self, chain: Chain, g: u64) -> bool {
        g <= self.floor(chain.context) || g <= self.entry(chain.slot)
    }

    /// Whether the reads of the operation issued at `g` in `chain` happen before the owner of this
    /// clock.
    pub(crate) fn covers_reads(&self, chain: Chain, g: u64) -> bool {
        self.covers(chain, g) || g <= self.reads_entry(chain.slot)
    }

    fn reads_entry(&self, slot: u32) -> u64 {
        let entry = || self.reads.as_ref()?.get(&slot).copied();
        entry().unwrap_or(0)
    }

    /// Records that the reads of the chain have happened up to `g`.
    pub(crate) fn raise_reads(&mut self, chain: Chain, g: u64) {
        let reads = Arc::make_mut(self.reads.get_or_insert_default());
        let entry = reads.entry(chain.slot).or_default();
        *entry = g.max(*entry);
    }

    fn join_reads(&mut self, other: &Self) {
        let Some(theirs) = &other.reads else { return };
        match &mut self.reads {
            None => self.reads = Some(Arc::clone(theirs)),
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let news = |(slot, &g): (&u32, &u64)| mine.get(slot).is_none_or(|&mine| mine < g);
                if theirs.iter().any(news) {
                    let mine = Arc::make_mut(mine);
                    for (&slot, &g) in &**theirs {
                        let entry = mine.entry(slot).or_default();
                        *entry = g.max(*entry);
                    }
                }
            }
        }
    }

    fn floor(&self, context: ContextId) -> u64 {
        self.floors.get(context.index()).copied().unwrap_or(0)
    }

    fn entry(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        match self.blocks.get(slot / BLOCK) {
            Some(Some(block)) => block[slot % BLOCK],
            _ => 0,
        }
    }

    /// Whether the agent's accesses in an operation issued at `g` happen before the owner of this
    /// clock.
    pub(crate) fn covers_host(&self, agent: Agent, g: u64) -> bool {
        let entry = self.hosts.as_ref().and_then(|hosts| hosts.get(agent.0 as usize));
        entry.is_some_and(|&entry| g <= entry)
    }

    /// Records that everything the agent did up to `g` has happened.
    pub(crate) fn raise_host(&mut self, agent: Agent, g: u64) {
        if agent == Agent::NOBODY || self.covers_host(agent, g) {
            return;
        }
        let hosts = Arc::make_mut(self.hosts.get_or_insert_default());
        let index = agent.0 as usize;
        if hosts.len() <= index {
            hosts.resize(index + 1, 0);
        }
        hosts[index] = g;
    }

    /// The issue index up to which the agent's own accesses are known.
    pub(crate) fn known_host(&self, agent: Agent) -> u64 {
        let entry = self.hosts.as_ref().and_then(|hosts| hosts.get(agent.0 as usize));
        entry.copied().unwrap_or(0)
    }

    fn join_hosts(&mut self, other: &Self) {
        let Some(theirs) = &other.hosts else { return };
        match &mut self.hosts {
            None => self.hosts = Some(Arc::clone(theirs)),
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let news = |(i, &g): (usize, &u64)| mine.get(i).is_none_or(|&mine| mine < g);
                if !theirs.iter().enumerate().any(news) {
                    return;
                }
                let mine = Arc::make_mut(mine);
                if mine.len() < theirs.len() {
                    mine.resize(theirs.len(), 0);
                }
                mine.iter_mut().zip(theirs.iter()).for_each(|(a, &b)| *a = (*a).max(b));
            }
        }
    }

    fn is_below(&self, other: &Self) -> bool {
        self.floors.iter().enumerate().all(|(i, &f)| other.floors.get(i).is_some_and(|&o| f <= o))
    }

    /// Raises the entry of one chain.
    pub(crate) fn raise(&mut self, chain: Chain, g: u64) {
        let slot = chain.slot as usize;
        self.owner = self.owner.and(Owner::One(chain.context));
        if self.blocks.len() <= slot / BLOCK {
            self.blocks.resize(slot / BLOCK + 1, None);
        }
        let block = self.blocks[slot / BLOCK].get_or_insert_with(|| Arc::new([0; BLOCK]));
        if block[slot % BLOCK] < g {
            Arc::make_mut(block)[slot % BLOCK] = g;
            self.highest = self.highest.max(g);
        }
    }

    /// Records that everything issued up to `g` in `context` has happened.
    pub(crate) fn raise_floor(&mut self, context: ContextId, g: u64) {
        let index = context.index();
        if self.floors.len() <= index {
            self.floors.resize(index + 1, 0);
        }
        self.floors[index] = self.floors[index].max(g);
        self.drop_entries_below_the_floor();
    }

    #[inline]
    fn drop_entries_below_the_floor(&mut self) {
        if let Owner::One(context) = self.owner
            && self.highest <= self.floor(context)
        {
            self.blocks.clear();
            self.highest = 0;
            self.owner = Owner::Nobody;
        }
    }

    /// Joins the clock with `other` (pointwise maximum).
    pub(crate) fn join(&mut self, other: &Self) {
        self.join_hosts(other);
        self.join_reads(other);
        if self.floors.len() < other.floors.len() {
            self.floors.resize(other.floors.len(), 0);
        }
        for (mine, theirs) in self.floors.iter_mut().zip(&other.floors) {
            *mine = (*mine).max(*theirs);
        }
        self.drop_entries_below_the_floor();
        let is_covered = match other.owner {
            Owner::Nobody => true,
            Owner::One(context) => other.highest <= self.floor(context),
            Owner::Several => false,
        };
        if is_covered {
            return;
        }
        if self.blocks.len() < other.blocks.len() {
            self.blocks.resize(other.blocks.len(), None);
        }
        for (mine, theirs) in self.blocks.iter_mut().zip(&other.blocks) {
            let Some(theirs) = theirs else { continue };
            match mine {
                None => *mine = Some(Arc::clone(theirs)),
                Some(mine) if Arc::ptr_eq(mine, theirs) => {}
                Some(mine) => join_block(mine, theirs),
            }
        }
        self.highest = self.highest.max(other.highest);
        self.owner = self.owner.and(other.owner);
        self.drop_entries_below_the_floor();
    }
}

impl Clock {
    /// The pointwise minimum. `contexts` holds the context of each chain, by slot.
    fn common(clocks: &[Self], contexts: &[ContextId]) -> Self {
        let least = |of: &dyn Fn(&Self) -> u64| clocks.iter().map(of).min().unwrap_or(0);
        let mut common = Self::default();
        let floors = clocks.iter().map(|clock| clock.floors.len()).min().unwrap_or(0);
        common.floors = (0..floors).map(|i| least(&|clock| clock.floors[i])).collect();
        for (&context, slot) in contexts.iter().zip(0..) {
            let chain = Chain { slot, context };
            let g = least(&|clock| clock.known(chain));
            if g > common.floor(context) {
                common.raise(chain, g);
            }
            if clocks.iter().any(|clock| clock.reads.is_some()) {
                let reads = least(&|clock| clock.known(chain).max(clock.reads_entry(slot)));
                if reads > g {
                    common.raise_reads(chain, reads);
                }
            }
        }
        let agents = |clock: &Self| clock.hosts.as_ref().map_or(0, |hosts| hosts.len());
        let agents = clocks.iter().map(agents).min().unwrap_or(0);
        for agent in (0..agents as u32).map(Agent) {
            common.raise_host(agent, least(&|clock| clock.known_host(agent)));
        }
        common
    }
}

fn join_block(mine: &mut Arc<Block>, theirs: &Arc<Block>) {
    let (has_news, lacks) = compare(mine, theirs);
    match (has_news, lacks) {
        (false, _) => {}
        // Sharing the larger side keeps later joins free; mixing the two makes a block of this
        // clock's own.
        (true, false) => *mine = Arc::clone(theirs),
        (true, true) => {
            for (a, b) in Arc::make_mut(mine).iter_mut().zip(theirs.iter()) {
                // The larger entry, by the sign of the difference as in `compare`.
                let more = b.wrapping_sub(*a);
                *a += more & !(((more as i64) >> 63) as u64);
            }
        }
    }
}

/// Whether any entry of `theirs` is larger, and whether any is smaller.
///
/// The comparison uses the signs of differences, for which vector instructions compare several
/// entries at a time. Issue indices count up one by one, so they never reach half the range of the
/// type.
fn compare(mine: &Block, theirs: &Block) -> (bool, bool) {
    let (mut larger, mut smaller) = ([0; LANES], [0; LANES]);
    let any = |signs: [u64; LANES]| signs.iter().fold(0, |any, sign| any | sign) >> 63 == 1;
    for (mine, theirs) in mine.chunks_exact(16).zip(theirs.chunks_exact(16)) {
        for (a, b) in mine.chunks_exact(LANES).zip(theirs.chunks_exact(LANES)) {
            for lane in 0..LANES {
                larger[lane] |= a[lane].wrapping_sub(b[lane]);
                smaller[lane] |= b[lane].wrapping_sub(a[lane]);
            }
        }
        if any(larger) && any(smaller) {
            break;
        }
    }
    (any(larger), any(smaller))
}

#[cfg(test)]
mod tests;
