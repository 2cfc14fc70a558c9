//! Which pending operation runs next, and whether one runs at all.
//!
//! Every policy yields a legal execution: it only ever picks among ready operations. They differ
//! in how much they run that nobody waits for. A policy depends on nothing but its own text and
//! the order of submissions, so a single-threaded program behaves the same in every run.

use std::collections::{BTreeMap, BTreeSet};

use super::queue::{Lane, OpId, Queue};

/// Why an operation is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// A call just submitted work and is about to return.
    Submit,
    /// A call blocks until all of these are done.
    Wait(&'a BTreeSet<OpId>),
    /// A call asked whether these are done, and was told no.
    Poll(&'a BTreeSet<OpId>),
    /// The program cannot go on by itself: it spins or sleeps without calling the driver, or the
    /// operation that it waits for is held up by one outside its past.
    Idle,
}

/// A scheduling policy.
#[derive(Debug)]
pub(crate) enum Policy {
    /// At submission, as soon as the order allows.
    Eager,
    /// At a synchronisation, and then only what is awaited needs.
    Lazy,
    /// Eager, but the stream created as the `n`th runs only when nothing else can satisfy a
    /// synchronisation; 0 names the default streams.
    Starve(u32),
    /// Seeded priorities of the streams with random demotions, after the probabilistic concurrency
    /// testing scheduler of Burckhardt et al. (ASPLOS 2010).
    Random(Priorities),
}

impl Policy {
    /// Reads `eager`, `lazy`, `starve:N` or `random:SEED`.
    pub(crate) fn parse(text: &str) -> Result<Policy, String> {
        let unknown = || {
            format!(
                "STREAMSAN_SIM_POLICY is `{text}`, which is none of eager, lazy, starve:N, \
                 random:SEED; using eager"
            )
        };
        match text.split_once(':') {
            None if text == "eager" || text.is_empty() => Ok(Policy::Eager),
            None if text == "lazy" => Ok(Policy::Lazy),
            Some(("starve", ordinal)) => ordinal.parse().map(Policy::Starve).map_err(|_| unknown()),
            Some(("random", seed)) => seed
                .parse()
                .map(|seed| Policy::Random(Priorities::new(seed)))
                .map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }

    /// Whether the nodes of a graph are to be submitted in another order than they were made in,
    /// as far as their dependencies allow.
    pub(crate) fn reorders_nodes(&self) -> bool {
        matches!(self, Policy::Lazy)
    }

    /// The operation to run now, `None` to run none. Paused operations are the caller's affair.
    pub(crate) fn choose<W>(&mut self, queue: &Queue<W>, moment: Moment<'_>) -> Option<OpId> {
        let oldest = |wanted: &dyn Fn(OpId, Lane) -> bool| {
            queue.ready().find(|(op, lane)| wanted(*op, *lane)).map(|(op, _)| op)
        };
        match (self, moment) {
            (Policy::Eager, Moment::Submit) => oldest(&|_, _| true),
            (Policy::Lazy, Moment::Submit) => None,
            (Policy::Lazy, Moment::Wait(past) | Moment::Poll(past)) => {
                let hasty = queue.hasty().find(|op| past.contains(op));
                hasty.or_else(|| oldest(&|op, _| past.contains(&op)))
            }
            (Policy::Eager, Moment::Wait(past) | Moment::Poll(past)) => {
                oldest(&|op, _| past.contains(&op))
            }
            (Policy::Eager | Policy::Lazy, Moment::Idle) => oldest(&|_, _| true),
            (Policy::Starve(starved), moment) => {
                let fed = |lane: Lane| lane.ordinal != *starved;
                match moment {
                    Moment::Submit => oldest(&|_, lane| fed(lane)),
                    Moment::Wait(past) | Moment::Poll(past) => {
                        oldest(&|op, lane| past.contains(&op) && fed(lane))
                            .or_else(|| oldest(&|op, _| past.contains(&op)))
                    }
                    Moment::Idle => oldest(&|_, lane| fed(lane)).or_else(|| oldest(&|_, _| true)),
                }
            }
            (Policy::Random(priorities), Moment::Submit) => {
                if priorities.one_in(4) {
                    priorities.choose(queue)
                } else {
                    None
                }
            }
            (Policy::Random(priorities), _) => priorities.choose(queue),
        }
    }
}

/// The state of the random policy.
#[derive(Debug)]
pub(crate) struct Priorities {
    state: u64,
    of_stream: BTreeMap<u64, u64>,
    /// Counts down: each demoted stream falls below all before it.
    lowest: u64,
}

impl Priorities {
    fn new(seed: u64) -> Self {
        Priorities { state: seed, of_stream: BTreeMap::new(), lowest: 1 << 32 }
    }

    /// The next number of a splitmix64 sequence.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.next().is_multiple_of(chances)
    }

    fn choose<W>(&mut self, queue: &Queue<W>) -> Option<OpId> {
        let mut best: Option<(u64, OpId, u64)> = None;
        for (op, lane) in queue.ready() {
            let priority = match self.of_stream.get(&lane.stream) {
                Some(priority) => *priority,
                None => {
                    // Above every demoted stream, which are at or below 2^32.
                    let drawn = (1 << 32) + (self.next() >> 1);
                    self.of_stream.insert(lane.stream, drawn);
                    drawn
                }
            };
            if best.is_none_or(|(highest, _, _)| priority > highest) {
                best = Some((priority, op, lane.stream));
            }
        }
        let (_, op, stream) = best?;
        if self.one_in(8) {
            self.lowest -= 1;
            self.of_stream.insert(stream, self.lowest);
        }
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Lane = Lane { stream: 10, ordinal: 1 };
    const SECOND: Lane = Lane { stream: 11, ordinal: 2 };

    /// Two operations in the first stream, one in the second.
    fn queue() -> (Queue<()>, [OpId; 3]) {
        let mut queue = Queue::default();
        let a = queue.push(FIRST, &[], ());
        let b = queue.push(FIRST, &[a], ());
        let c = queue.push(SECOND, &[], ());
        (queue, [a, b, c])
    }

    /// Runs until the policy wants no more.
    fn drain(policy: &mut Policy, queue: &mut Queue<()>, moment: Moment<'_>) -> Vec<OpId> {
        let mut order = Vec::new();
        while let Some(op) = policy.choose(queue, moment) {
            queue.start(op);
            queue.finish(op);
            order.push(op);
        }
        order
    }

    #[test]
    fn eager_runs_all_at_submission_and_lazy_nothing() {
        let (mut pending, [a, b, c]) = queue();
        assert!(drain(&mut Policy::Lazy, &mut pending, Moment::Submit).is_empty());
        assert_eq!(drain(&mut Policy::Eager, &mut pending, Moment::Submit), [a, b, c]);
    }

    #[test]
    fn lazy_runs_only_the_past_of_what_is_awaited() {
        let (mut pending, [a, _, c]) = queue();
        let past = pending.past(&[c]);
        assert_eq!(drain(&mut Policy::Lazy, &mut pending, Moment::Wait(&past)), [c]);
        let past = pending.past(&[a]);
        assert_eq!(drain(&mut Policy::Lazy, &mut pending, Moment::Poll(&past)), [a]);
    }

    #[test]
    fn a_starved_stream_runs_only_for_its_own_sake() {
        let (mut pending, [a, b, c]) = queue();
        let mut policy = Policy::Starve(1);
        assert_eq!(drain(&mut policy, &mut pending, Moment::Submit), [c]);
        let past = pending.past(&[b]);
        assert_eq!(drain(&mut policy, &mut pending, Moment::Wait(&past)), [a, b]);
    }

    #[test]
    fn random_repeats_itself_and_seeds_differ() {
        let run = |seed: u64| {
            let mut policy = Policy::parse(&format!("random:{seed}")).unwrap();
            let mut queue = Queue::default();
            let mut order = Vec::new();
            let mut tails: BTreeMap<u64, OpId> = BTreeMap::new();
            for step in 0..40u64 {
                let lane = Lane { stream: step % 3, ordinal: (step % 3) as u32 };
                let after: Vec<OpId> = tails.get(&lane.stream).copied().into_iter().collect();
                tails.insert(lane.stream, queue.push(lane, &after, ()));
                order.extend(drain(&mut policy, &mut queue, Moment::Submit));
            }
            let targets: Vec<OpId> = tails.values().copied().collect();
            let past = queue.past(&targets);
            order.extend(drain(&mut policy, &mut queue, Moment::Wait(&past)));
            assert_eq!((order.len(), queue.len()), (40, 0));
            order
        };
        assert_eq!(run(1), run(1));
        let orders: BTreeSet<Vec<OpId>> = (0..16).map(run).collect();
        assert!(orders.len() > 8, "{} different orders of 16 seeds", orders.len());
    }

    #[test]
    fn a_policy_that_is_none_is_named_in_the_message() {
        for text in ["eager", "lazy", "starve:0", "starve:7", "random:18446744073709551615"] {
            assert!(Policy::parse(text).is_ok(), "{text}");
        }
        for text in ["fast", "starve", "starve:x", "random:", "random:-1", "lazy:1"] {
            let message = Policy::parse(text).unwrap_err();
            assert!(message.contains(text), "{message}");
        }
    }
}
