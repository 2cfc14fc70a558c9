use super::*;

const C0: ContextId = ContextId(0);
const C1: ContextId = ContextId(1);

fn chain(slot: u32) -> Chain {
    Chain { slot, context: C0 }
}

fn clock(entries: &[(u32, u64)]) -> Clock {
    let mut clock = Clock::default();
    for &(slot, g) in entries {
        clock.raise(chain(slot), g);
    }
    clock
}

#[test]
fn join_is_the_pointwise_maximum() {
    // (left, right, slot, expected)
    type Entries = &'static [(u32, u64)];
    let table: [(Entries, Entries, u32, u64); 5] = [
        (&[(0, 3)], &[(0, 5)], 0, 5),
        (&[(0, 5)], &[(0, 3)], 0, 5),
        (&[(0, 5), (1, 1)], &[(0, 3), (1, 9)], 1, 9),
        (&[], &[(200, 7)], 200, 7),
        (&[(200, 7)], &[], 200, 7),
    ];
    for (left, right, slot, expected) in table {
        let mut joined = clock(left);
        joined.join(&clock(right));
        assert_eq!(joined.known(chain(slot)), expected, "{left:?} {right:?}");
    }
}

#[test]
fn a_floor_covers_its_context_only() {
    let mut clock = Clock::default();
    clock.raise(Chain { slot: 1, context: C1 }, 4);
    clock.raise_floor(C0, 10);
    assert!(clock.covers(chain(0), 10) && !clock.covers(chain(0), 11));
    assert!(!clock.covers(Chain { slot: 0, context: C1 }, 1));
    assert!(clock.covers(Chain { slot: 1, context: C1 }, 4));
}

#[test]
fn a_floor_drops_entries_below_it() {
    let mut clock = clock(&[(1, 4)]);
    clock.raise_floor(C0, 10);
    assert!(clock.blocks.is_empty());
    assert!(clock.covers(chain(1), 10));
}

#[test]
fn common_knowledge_is_the_pointwise_minimum() {
    let part = |slot, g, entries: &[(u32, u64)]| {
        let know = Know { documented: clock(entries), incidental: None };
        Part { chain: chain(slot), g, know: Arc::new(know) }
    };
    let mut parts = [part(0, 5, &[(2, 3), (70, 9)]), part(1, 6, &[(2, 4), (70, 8)])];
    Arc::make_mut(&mut parts[1].know).documented.raise_floor(C0, 2);
    let common = Know::common(&parts, &[C0; 71]).documented;
    let table = [(0, 2), (1, 0), (2, 3), (3, 0), (70, 8)];
    for (slot, expected) in table {
        assert_eq!(common.known(chain(slot)), expected, "slot {slot}");
    }
}

/// Who is behind several parts knows of each chain the reads that all of them know.
#[test]
fn common_knowledge_of_reads_is_the_pointwise_minimum() {
    let part = |slot, entries: &[(u32, u64)], reads: &[(u32, u64)]| {
        let mut clock = clock(entries);
        reads.iter().for_each(|&(slot, g)| clock.raise_reads(chain(slot), g));
        let know = Know { documented: clock, incidental: None };
        Part { chain: chain(slot), g: 20, know: Arc::new(know) }
    };
    let parts = [part(0, &[(2, 3)], &[(2, 9), (3, 4)]), part(1, &[(2, 5)], &[(2, 7)])];
    let common = Know::common(&parts, &[C0; 4]).documented;
    assert!(common.covers_reads(chain(2), 7) && !common.covers_reads(chain(2), 8));
    assert!(common.covers(chain(2), 3) && !common.covers(chain(2), 4));
    assert!(!common.covers_reads(chain(3), 1));
}

#[test]
fn incidental_knowledge_of_reads_counts_as_incidental() {
    let mut start = Know::default();
    start.documented.raise_reads(chain(1), 7);
    let part = Part { chain: chain(0), g: 5, know: Arc::new(start) };
    let mut know = Know::default();
    know.acquire_incidentally(&part);
    know.raise_floor(C0, 6);
    assert!(know.covers_reads_incidentally(chain(1), 7));
    assert!(!know.covers_incidentally(chain(1), 7));
    assert!(!know.documented.covers_reads(chain(1), 7));
}

#[test]
fn hosts_join_like_chains() {
    let (mut left, mut right) = (Clock::default(), Clock::default());
    left.raise_host(Agent(0), 5);
    right.raise_host(Agent(2), 7);
    right.raise_host(Agent(0), 3);
    left.join(&right);
    assert!(left.covers_host(Agent(0), 5) && !left.covers_host(Agent(0), 6));
    assert!(left.covers_host(Agent(2), 7) && !left.covers_host(Agent(1), 1));
    left.raise_host(Agent::NOBODY, 9);
    assert!(!left.covers_host(Agent::NOBODY, 1));
}

#[test]
fn a_covered_snapshot_changes_nothing() {
    let part = Part { chain: chain(0), g: 5, know: Arc::new(Know::default()) };
    let mut know = Know { documented: clock(&[(0, 9)]), incidental: None };
    know.acquire(&part);
    assert_eq!(know.documented.known(chain(0)), 9);
}

#[test]
fn incidental_knowledge_does_not_count_as_documented() {
    let part = Part { chain: chain(0), g: 5, know: Arc::new(Know::default()) };
    let mut know = Know::default();
    know.acquire_incidentally(&part);
    assert!(know.covers_incidentally(chain(0), 5));
    assert!(!know.documented.covers(chain(0), 5));
}
