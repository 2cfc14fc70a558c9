//! The control-flow graph of a lowered kernel: blocks, dominators, loops.
//!
//! Stage: lowering, behind both front ends. The loops are those of back edges in reverse postorder.
//! A loop whose header does not dominate its latches is not natural, and little is assumed about
//! it. Sources: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), for
//! dominators; natural loops as in Aho, Lam, Sethi and Ullman, "Compilers" (2006), section 9.6.
//!
//! Invariants: block 0 is the entry; the last block is a virtual exit without steps. Blocks that
//! cannot be reached have no number in the order and are never visited.

use crate::access::domain::budget::{Budget, TooLarge};
use crate::access::lower::steps::{Flat, Flow};

/// A basic block.
#[derive(Debug, Default, Clone)]
pub(in crate::access) struct Block {
    /// Steps `first..end`.
    pub(in crate::access) first: usize,
    pub(in crate::access) end: usize,
    /// The target of a guarded branch comes first, then where it falls through.
    pub(in crate::access) successors: Vec<usize>,
    pub(in crate::access) predecessors: Vec<usize>,
}

/// The control-flow graph with its dominators, post-dominators and loops.
#[derive(Debug)]
pub(in crate::access) struct Graph {
    pub(in crate::access) blocks: Vec<Block>,
    /// Reachable blocks in reverse postorder.
    pub(in crate::access) order: Vec<usize>,
    /// Place in `order`; `usize::MAX` where not reachable.
    pub(in crate::access) rank: Vec<usize>,
    /// Immediate dominators.
    pub(in crate::access) dominator: Vec<usize>,
    /// Immediate post-dominators; `usize::MAX` where the exit is never reached.
    pub(in crate::access) post_dominator: Vec<usize>,
    /// Loops by header, outer ones first where they nest.
    pub(in crate::access) loops: Vec<Loop>,
}

/// A loop: the blocks from which its header is reached again.
#[derive(Debug)]
pub(in crate::access) struct Loop {
    pub(in crate::access) header: usize,
    /// Membership by block.
    pub(in crate::access) body: Vec<bool>,
    /// Blocks with an edge back to the header.
    pub(in crate::access) latches: Vec<usize>,
    /// Whether the header dominates every latch.
    pub(in crate::access) natural: bool,
    /// The block with the only edge out of the loop, where every iteration comes by once.
    pub(in crate::access) sole_exit: Option<usize>,
}

impl Graph {
    /// # Errors
    /// When the kernel is too large.
    pub(in crate::access) fn new(flat: &Flat<'_>, budget: &Budget) -> Result<Graph, TooLarge> {
        let steps = &flat.steps;
        let mut leader = vec![false; steps.len() + 1];
        leader[0] = true;
        leader[steps.len()] = true;
        for &label in &flat.labels {
            if label <= steps.len() {
                leader[label] = true;
            }
        }
        for (at, step) in steps.iter().enumerate() {
            if matches!(step.flow, Flow::To(_) | Flow::Out) {
                leader[at + 1] = true;
            }
        }
        let mut block_of = vec![0; steps.len() + 1];
        let mut blocks: Vec<Block> = Vec::new();
        for at in 0..=steps.len() {
            if leader[at] {
                if let Some(last) = blocks.last_mut() {
                    last.end = at;
                }
                blocks.push(Block { first: at, end: at, ..Block::default() });
            }
            block_of[at] = blocks.len() - 1;
        }
        // The last block starts behind the last step: the virtual exit.
        let exit = blocks.len() - 1;
        for number in 0..exit {
            let last = &steps[blocks[number].end - 1];
            let mut out = Vec::new();
            match &last.flow {
                Flow::On | Flow::Bind => out.push(number + 1),
                Flow::To(labels) => {
                    for &label in labels {
                        let at = flat.labels[label as usize];
                        out.push(if at <= steps.len() { block_of[at] } else { exit });
                    }
                    if last.guard.is_some() || labels.is_empty() {
                        out.push(number + 1);
                    }
                }
                Flow::Out => {
                    out.push(exit);
                    if last.guard.is_some() {
                        out.push(number + 1);
                    }
                }
            }
            for &next in &out {
                if !blocks[next].predecessors.contains(&number) {
                    blocks[next].predecessors.push(number);
                }
            }
            // Each is searched among the others.
            budget.work(out.len().saturating_mul(out.len()));
            budget.memory(2 * size_of::<usize>() * out.len());
            budget.check()?;
            blocks[number].successors = out;
        }
        let successors = |b: usize| &blocks[b].successors[..];
        let predecessors = |b: usize| &blocks[b].predecessors[..];
        let order = reverse_postorder(blocks.len(), 0, &successors);
        let rank = ranks(blocks.len(), &order);
        let dominator = dominators(&order, &rank, &predecessors);
        let backwards = reverse_postorder(blocks.len(), exit, &predecessors);
        let backward_rank = ranks(blocks.len(), &backwards);
        let post_dominator = dominators(&backwards, &backward_rank, &successors);
        for block in &mut blocks {
            block.predecessors.retain(|&p| rank[p] != usize::MAX);
        }
        let mut graph = Graph { blocks, order, rank, dominator, post_dominator, loops: Vec::new() };
        graph.find_loops(budget)?;
        Ok(graph)
    }

    /// Whether every path from the entry to `b` goes through `a`.
    pub(in crate::access) fn dominates(&self, a: usize, mut b: usize) -> bool {
        loop {
            if a == b {
                return true;
            }
            let up = self.dominator[b];
            if up == b || up == usize::MAX {
                return false;
            }
            b = up;
        }
    }

    /// Whether every path from `b` to the exit goes through `a`.
    pub(in crate::access) fn post_dominates(&self, a: usize, mut b: usize) -> bool {
        loop {
            if a == b {
                return true;
            }
            let up = self.post_dominator[b];
            if up == b || up == usize::MAX {
                return false;
            }
            b = up;
        }
    }

    /// Whether the edge goes back in the order: the header of a loop is its target.
    pub(in crate::access) fn is_back(&self, from: usize, to: usize) -> bool {
        self.rank[from] >= self.rank[to]
    }

    fn find_loops(&mut self, budget: &Budget) -> Result<(), TooLarge> {
        for &header in &self.order {
            let latches: Vec<usize> = self.blocks[header]
                .predecessors
                .iter()
                .copied()
                .filter(|&p| self.is_back(p, header))
                .collect();
            if latches.is_empty() {
                continue;
            }
            budget.work(self.blocks.len());
            budget.memory(self.blocks.len());
            budget.check()?;
            let natural = latches.iter().all(|&latch| self.dominates(header, latch));
            let mut body = vec![false; self.blocks.len()];
            body[header] = true;
            let mut work = latches.clone();
            while let Some(block) = work.pop() {
                if !body[block] {
                    body[block] = true;
                    work.extend(&self.blocks[block].predecessors);
                }
            }
            self.loops.push(Loop { header, body, latches, natural, sole_exit: None });
        }
        for at in 0..self.loops.len() {
            self.loops[at].sole_exit = self.sole_exit(&self.loops[at]);
        }
        Ok(())
    }

    fn sole_exit(&self, l: &Loop) -> Option<usize> {
        let blocks = self.blocks.iter().enumerate().filter(|&(from, _)| l.body[from]);
        let mut exits = blocks.flat_map(|(from, block)| {
            block.successors.iter().filter(|&&to| !l.body[to]).map(move |_| from)
        });
        let (Some(from), None) = (exits.next(), exits.next()) else { return None };
        let inner = self
            .loops
            .iter()
            .any(|other| other.header != l.header && l.body[other.header] && other.body[from]);
        let every = l.latches.iter().all(|&latch| self.dominates(from, latch));
        (l.natural && every && !inner).then_some(from)
    }
}

fn reverse_postorder<'a>(
    count: usize,
    start: usize,
    next: &impl Fn(usize) -> &'a [usize],
) -> Vec<usize> {
    let mut seen = vec![false; count];
    let mut order = Vec::new();
    let mut stack = vec![(start, next(start).to_vec())];
    seen[start] = true;
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(to) if !seen[to] => {
                seen[to] = true;
                stack.push((to, next(to).to_vec()));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

fn ranks(count: usize, order: &[usize]) -> Vec<usize> {
    let mut rank = vec![usize::MAX; count];
    for (at, &block) in order.iter().enumerate() {
        rank[block] = at;
    }
    rank
}

/// Immediate dominators (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm").
fn dominators<'a>(
    order: &[usize],
    rank: &[usize],
    predecessors: &impl Fn(usize) -> &'a [usize],
) -> Vec<usize> {
    let mut dominator = vec![usize::MAX; rank.len()];
    let Some(&root) = order.first() else { return dominator };
    dominator[root] = root;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &order[1..] {
            let mut new = usize::MAX;
            for &p in predecessors(block) {
                if dominator[p] == usize::MAX {
                    continue;
                }
                if new == usize::MAX {
                    new = p;
                    continue;
                }
                let mut a = p;
                while a != new {
                    while rank[a] > rank[new] {
                        a = dominator[a];
                    }
                    while rank[new] > rank[a] {
                        new = dominator[new];
                    }
                }
            }
            if dominator[block] != new {
                dominator[block] = new;
                changed = true;
            }
        }
    }
    dominator
}
