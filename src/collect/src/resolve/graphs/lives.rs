//! The lives of memory that a graph allocates, and which of them an address means at a node.
//!
//! The driver hands an address out again within a graph where the graph's order allows it: each
//! allocation node begins a life of its own, an allocation of its own for the trace. A node means
//! the life that its place in the graph's order lies in: behind the allocation node, and not behind
//! the free. A node that lies in none is a mistake; it is given to the life that makes the mistake
//! plain, so that the check of the graph finds it.
//!
//! CUDA Programming Guide, Graph Memory Nodes, Address Reuse within a Graph: "CUDA may reuse memory
//! within a graph by assigning the same virtual address ranges to different allocations whose
//! lifetimes do not overlap"; API Fundamentals: the lifetime begins where the execution reaches the
//! allocation node.
//!
//! Invariants: a life keeps its allocation for all launches; where no two lives of a graph share a
//! byte nothing is worked out, since the address alone tells.

use super::super::memory::Block;
use super::super::resolution::Resolution;
use super::contents::{Contents, Node};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use streamsan_model::{ByteRange, Entity, MemoryKind, OpSeq, TraceItem};
use streamsan_wire::node_kind::{ALLOCATE, FREE};

/// The lives that were declared, by the handle of the allocation node. A handle that is used again
/// has another maker.
pub(in super::super) type KnownLives = HashMap<u64, (OpSeq, Block)>;

/// The memory that an allocation node hands out.
fn allocated(node: &Node) -> Option<ByteRange> {
    // `CUDA_MEM_ALLOC_NODE_PARAMS`: size and address.
    let range = ByteRange::with_len(node.word(112)?, node.word(104)?);
    (node.kind == ALLOCATE && !range.is_empty()).then_some(range)
}

/// Declares the memory that a graph allocates, before any of its nodes uses it. What is answered
/// tells the lives apart, where the addresses do not.
pub(super) fn declare(resolution: &mut Resolution<'_>, contents: &Contents) -> Option<Lives> {
    let mut flat = Flat::default();
    flat.add(contents, None);
    let mut made: Vec<(usize, ByteRange)> = Vec::new();
    for (at, node) in flat.nodes.iter().enumerate() {
        made.extend(node.node.and_then(allocated).map(|range| (at, range)));
    }
    let mut lives = share_bytes(&made).then(|| Lives::of(&flat, &made));
    // Later calls mean by the address the allocation that is live behind the graph.
    let order = lives.as_ref().map_or_else(|| (0..made.len()).collect(), Lives::by_end);
    let mut blocks: Vec<Option<Block>> = vec![None; made.len()];
    for &life in &order {
        let (at, range) = made[life];
        blocks[life] = flat.nodes[at].node.map(|node| declared(resolution, node, range));
    }
    keep_live(resolution, &order, &blocks);
    if let Some(lives) = &mut lives {
        for (life, block) in lives.all.iter_mut().zip(blocks) {
            life.block = block;
        }
    }
    lives
}

/// Whether any two ranges do.
fn share_bytes(made: &[(usize, ByteRange)]) -> bool {
    let mut ranges: Vec<ByteRange> = made.iter().map(|(_, range)| *range).collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|pair| pair[1].start < pair[0].end)
}

/// The life that begins at the node, declared if it is new.
fn declared(resolution: &mut Resolution<'_>, node: &Node, range: ByteRange) -> Block {
    if let Some(block) = begun(resolution, node) {
        return block;
    }
    let block = resolution.new_block(range, MemoryKind::GraphOrdered, None, None);
    // The call at hand only makes the graph executable.
    if let Some(TraceItem::Entity(Entity::Allocation(made))) = resolution.items.last_mut() {
        made.api = node.maker.api.to_string();
        made.stack = node.maker.stack;
    }
    resolution.tables.lives.insert(node.handle, (node.maker.g, block));
    block
}

/// The life that begins at an allocation node.
pub(super) fn begun(resolution: &Resolution<'_>, node: &Node) -> Option<Block> {
    let (g, block) = resolution.tables.lives.get(&node.handle)?;
    (*g == node.maker.g && Some(block.range) == allocated(node)).then_some(*block)
}

/// Brings those lives back that another graph's have displaced: what is launched last counts.
fn keep_live(resolution: &mut Resolution<'_>, order: &[usize], blocks: &[Option<Block>]) {
    let mut above: BTreeMap<u64, u64> = BTreeMap::new();
    for block in order.iter().rev().filter_map(|&life| blocks[life]) {
        let ByteRange { start, end } = block.range;
        let is_hidden = above.range(..end).next_back().is_some_and(|(_, &other)| other > start);
        if is_hidden {
            continue;
        }
        above.insert(start, end);
        if resolution.tables.memory.find_made(start).is_none_or(|live| live.id != block.id) {
            let (born, returned) =
                (resolution.call.g, resolution.call.returned.map_or(resolution.call.g, |r| r.exit));
            resolution.tables.memory.insert(Block { born, returned, ..block });
        }
    }
}

/// A graph with the graphs inside it in place. One of those stands between two nodes: the node that
/// it belongs to, and one that only passes order on.
#[derive(Default)]
struct Flat<'a> {
    nodes: Vec<FlatNode<'a>>,
    /// Where the nodes have come to stand, in the order in which they are resolved.
    places: Vec<usize>,
}

#[derive(Default)]
struct FlatNode<'a> {
    node: Option<&'a Node>,
    before: Vec<usize>,
}

impl<'a> Flat<'a> {
    /// Adds a graph whose nodes are behind `begin`; answers which nodes its end is behind.
    fn add(&mut self, contents: &'a Contents, begin: Option<usize>) -> Vec<usize> {
        let mut ends = Vec::with_capacity(contents.nodes.len());
        for node in &contents.nodes {
            let first = self.nodes.len();
            self.places.push(first);
            self.nodes.push(FlatNode { node: Some(node), before: begin.into_iter().collect() });
            let mut before: Vec<usize> = Vec::new();
            for body in &node.bodies {
                before.extend(self.add(body, Some(first)));
            }
            if before.is_empty() {
                ends.push((first, first));
            } else {
                ends.push((first, self.nodes.len()));
                self.nodes.push(FlatNode { node: None, before });
            }
        }
        for edge in &contents.edges {
            // A kernel that begins early begins behind the begin of the one before it: that is
            // enough to know what is alive.
            let (Some(from), Some(to)) = (ends.get(edge.from as usize), ends.get(edge.to as usize))
            else {
                continue;
            };
            self.nodes[to.0].before.push(from.1);
        }
        ends.into_iter().map(|(_, end)| end).collect()
    }

    /// The nodes each behind those that it depends on; of several that could come next, the one
    /// that was made first.
    fn in_order(&self) -> Vec<usize> {
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut waiting: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            node.before.iter().for_each(|&before| behind[before].push(at));
            waiting.push(node.before.len());
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..waiting.len()).filter(|&at| waiting[at] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(waiting.len());
        while let Some(Reverse(at)) = ready.pop() {
            order.push(at);
            for &next in &behind[at] {
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        // In damaged records some nodes may wait for each other: they come last.
        order.extend((0..waiting.len()).filter(|&at| waiting[at] != 0));
        order
    }
}

/// A set of lives, by their positions.
#[derive(Clone, Debug, Default)]
struct Set(Vec<u64>);

impl Set {
    fn has(&self, life: usize) -> bool {
        self.0.get(life / 64).is_some_and(|word| word >> (life % 64) & 1 == 1)
    }

    fn add(&mut self, life: usize) {
        if self.0.len() <= life / 64 {
            self.0.resize(life / 64 + 1, 0);
        }
        self.0[life / 64] |= 1 << (life % 64);
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

/// The lives that are known at a node, itself apart.
#[derive(Clone, Debug, Default)]
struct Moment {
    /// Lives whose allocation node is before it.
    begun: Set,
    /// Lives whose free is before it.
    ended: Set,
    /// Lives whose allocation node is behind it.
    ahead: Set,
    /// The call that made the node, where it is one.
    made: Option<OpSeq>,
    /// The life that the node itself begins.
    begins: Option<usize>,
}

/// A life of memory.
#[derive(Clone, Debug)]
struct Life {
    range: ByteRange,
    /// The call that made the allocation node.
    made: Option<OpSeq>,
    /// Whether a node of the graph ends it.
    is_freed: bool,
    /// Its place in the graph's order.
    place: usize,
    block: Option<Block>,
}

/// The lives of a graph of which some share addresses.
#[derive(Clone, Debug)]
pub(in super::super) struct Lives {
    all: Vec<Life>,
    /// Lives by the bytes that they share with others: runs of bytes, with their ends.
    clusters: BTreeMap<u64, (u64, Vec<usize>)>,
    /// The nodes, in the order in which they are resolved.
    moments: Vec<Moment>,
    /// How many of them have been begun with.
    begun: usize,
}

impl Lives {
    fn of(flat: &Flat<'_>, made: &[(usize, ByteRange)]) -> Self {
        let life = |&(at, range): &(usize, ByteRange)| {
            let made = flat.nodes[at].node.map(|node| node.maker.g);
            Life { range, made, is_freed: false, place: 0, block: None }
        };
        let all: Vec<Life> = made.iter().map(life).collect();
        let clusters = clusters(&all);
        let begins: HashMap<usize, usize> =
            made.iter().zip(0..).map(|(&(at, _), life)| (at, life)).collect();
        let mut lives = Self { all, clusters, moments: Vec::new(), begun: 0 };
        let mut moments: Vec<Moment> = flat
            .nodes
            .iter()
            .enumerate()
            .map(|(at, flat)| Moment {
                made: flat.node.map(|node| node.maker.g),
                begins: begins.get(&at).copied(),
                ..Moment::default()
            })
            .collect();
        let order = flat.in_order();
        for &at in order.iter().rev() {
            let Moment { mut ahead, begins, .. } = moments[at].clone();
            begins.into_iter().for_each(|life| ahead.add(life));
            flat.nodes[at].before.iter().for_each(|&before| moments[before].ahead.join(&ahead));
        }
        // The lives that the node itself begins and ends are known behind it.
        let mut behind: Vec<(Set, Set)> = vec![Default::default(); moments.len()];
        for (place, &at) in order.iter().enumerate() {
            let (mut begun, mut ended) = (Set::default(), Set::default());
            for &before in &flat.nodes[at].before {
                begun.join(&behind[before].0);
                ended.join(&behind[before].1);
            }
            let moment = &mut moments[at];
            (moment.begun, moment.ended) = (begun.clone(), ended.clone());
            if let Some(life) = moment.begins {
                lives.all[life].place = place;
                begun.add(life);
            }
            let node = flat.nodes[at].node.filter(|node| node.kind == FREE);
            let freed = node.and_then(|node| node.word(0));
            if let Some(life) = freed.and_then(|address| lives.meant(&moments[at], address)) {
                lives.all[life].is_freed = true;
                ended.add(life);
            }
            behind[at] = (begun, ended);
        }
        let places = flat.places.iter();
        lives.moments = places.map(|&at| std::mem::take(&mut moments[at])).collect();
        lives
    }

    /// The lives, those last that the graph leaves, the later of two behind the earlier.
    fn by_end(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|&life| (!self.all[life].is_freed, self.all[life].place));
        order
    }

    /// From here on addresses are those of the next node.
    pub(super) fn next_node(&mut self) {
        self.begun += 1;
    }

    /// The memory that an address means at the node at hand; `None` where no two lives share it.
    pub(in super::super) fn find(&self, address: u64) -> Option<&Block> {
        let moment = self.moments.get(self.begun.checked_sub(1)?)?;
        self.all.get(self.meant(moment, address)?)?.block.as_ref()
    }

    /// The life that an address means at a node.
    fn meant(&self, moment: &Moment, address: u64) -> Option<usize> {
        let (_, (end, among)) = self.clusters.range(..=address).next_back()?;
        if *end <= address {
            return None;
        }
        let holds = |life: &&usize| self.all[**life].range.contains(address);
        let best = |life: &&usize| (self.rank(**life, moment), self.all[**life].made);
        among.iter().filter(holds).max_by_key(best).copied()
    }

    /// How well a life fits a node that uses its address. One that is alive there fits. Failing
    /// that: one without an order to the node, whose address was known when the node was made (the
    /// program has forgotten an edge); one that has ended (it uses what is freed).
    fn rank(&self, life: usize, moment: &Moment) -> u8 {
        let (begun, ended) = (moment.begun.has(life), moment.ended.has(life));
        let is_unordered = !begun && !moment.ahead.has(life);
        match () {
            () if begun && !ended => 3,
            () if is_unordered && self.all[life].made < moment.made => 2,
            () if ended => 1,
            () => 0,
        }
    }
}

/// Runs of bytes that lives share with each other, with the lives in them.
fn clusters(all: &[Life]) -> BTreeMap<u64, (u64, Vec<usize>)> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&life| all[life].range);
    let mut clusters: Vec<(ByteRange, Vec<usize>)> = Vec::new();
    for life in order {
        let range = all[life].range;
        match clusters.last_mut() {
            Some((run, among)) if range.start < run.end => {
                run.end = run.end.max(range.end);
                among.push(life);
            }
            _ => clusters.push((range, vec![life])),
        }
    }
    let shared = clusters.into_iter().filter(|(_, among)| among.len() > 1);
    shared.map(|(run, among)| (run.start, (run.end, among))).collect()
}
