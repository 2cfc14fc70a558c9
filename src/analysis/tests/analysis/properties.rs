//! The engine against the brute-force reference, and against itself, on random programs.
//!
//! `PROPTEST_CASES` sets the number of programs a property, `PROPTEST_RNG_SEED` other programs.

use crate::brute_force::{
    Order, Pair, Reported, known_operations, maximal_pairs, necessary_pairs, unordered_pairs,
};
use crate::programs::{
    build, hand_over_unfinished, insert_synchronisation, insertion, recipe,
    recipe_of_short_lived_streams, recipe_of_streams_left_behind, recipe_with_long_patterns,
    rename_and_shift, renaming, render,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_analysis::{Engine, HostModel, Options, analyse, analyse_with};
use streamsan_model::{
    Action, Basis, Confidence, ConflictKind, Finding, Mode, RaceClass, Severity, TraceItem,
};

/// The same programs in every run, unless the environment asks for others.
fn config(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(0x5eed);
    }
    config
}

/// The engine's findings without lints, which are not about pairs.
fn pairs_of(items: &[TraceItem]) -> Vec<Finding> {
    let mut findings = analyse(items).findings;
    findings.retain(|finding| finding.severity != Severity::Lint);
    findings
}

/// Every part of every finding is the same; prints only what differs.
fn same_findings(expected: &[Finding], found: &[Finding]) -> TestCaseResult {
    for (expected, found) in expected.iter().zip(found) {
        prop_assert_eq!(expected, found);
    }
    prop_assert_eq!(expected.len(), found.len());
    Ok(())
}

fn order(items: &[TraceItem]) -> Order {
    Order::of(items).expect("random programs keep to what the reference covers")
}

fn same_pairs_as_the_reference(items: &[TraceItem]) -> TestCaseResult {
    findings_agree(&pairs_of(items), &order(items))
}

/// Every maximal pair is found, and farther ones may be beside it, but no ordered one.
fn nothing_missed_nothing_invented(findings: &[Finding], order: &Order) -> TestCaseResult {
    let found: BTreeMap<Pair, Severity> =
        findings.iter().map(|f| (Pair::of(f), f.severity)).collect();
    let unordered = unordered_pairs(order);
    for (pair, severity) in &found {
        prop_assert_eq!(unordered.get(pair), Some(severity), "{:?}", pair);
    }
    for reported in necessary_pairs(order) {
        prop_assert!(found.contains_key(&reported.pair), "missed: {reported:?}");
    }
    Ok(())
}

fn findings_agree(findings: &[Finding], order: &Order) -> TestCaseResult {
    let found: BTreeSet<Reported> = findings.iter().map(Reported::of).collect();
    let (possible, necessary) = (maximal_pairs(order), necessary_pairs(order));
    // Where a read may stand for others, a pair may be told of some bytes, of all, or not at all.
    let is_open = |pair: Pair| {
        let of = |all: &BTreeSet<Reported>| all.iter().find(|r| r.pair == pair).copied();
        of(&possible) != of(&necessary)
    };
    let pairs =
        |all: &BTreeSet<Reported>| -> BTreeSet<Pair> { all.iter().map(|r| r.pair).collect() };
    let (told, may_be_told) = (pairs(&found), pairs(&possible));
    let missed: Vec<_> = necessary
        .iter()
        .filter(|reported| match is_open(reported.pair) {
            true => !told.contains(&reported.pair),
            false => !found.contains(reported),
        })
        .collect();
    let invented: Vec<_> = found
        .iter()
        .filter(|reported| match is_open(reported.pair) {
            true => !may_be_told.contains(&reported.pair),
            false => !possible.contains(reported),
        })
        .collect();
    prop_assert!(
        missed.is_empty() && invented.is_empty(),
        "missed: {missed:#?}\ninvented: {invented:#?}"
    );
    prop_assert_eq!(found.len(), findings.len(), "one finding for a pair and an allocation");
    // The knowledge of a free's stream does not matter: no order allows a use of freed memory.
    let is_compared = |finding: &&Finding| {
        // Some parts of a graph or a batch may be known, or may know others, and other parts not.
        let has_parts = |api: &str| ["cuGraphLaunch", "cuMemcpyBatchAsync"].contains(&api);
        finding.class != RaceClass::UseAfterFree
            && finding.first.access.mode != Mode::Free
            && finding.class != RaceClass::GraphUnordered
            && finding.first.op != finding.second.op
            && !has_parts(&finding.first.api)
            && !has_parts(&finding.second.api)
    };
    // Neither of two overlapping kernels has all of the stream before it.
    for finding in findings.iter().filter(|_| !order.overlaps).filter(is_compared) {
        let (said, is) = known_operations(order, finding);
        prop_assert_eq!(said, is, "{:?} knows {:?}", Reported::of(finding), finding.knows);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn one_thread_reports_exactly_the_maximal_unordered_pairs(recipe in recipe(1)) {
        same_pairs_as_the_reference(&build(&recipe))?;
    }

    #[test]
    fn two_threads_in_overlapping_calls_report_exactly_the_maximal_unordered_pairs(
        recipe in recipe(2),
    ) {
        same_pairs_as_the_reference(&build(&recipe))?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// Streams come and go; their slots in the clocks are used again.
    #[test]
    fn short_lived_streams_report_exactly_the_maximal_unordered_pairs(
        recipe in recipe_of_short_lived_streams(2),
    ) {
        same_pairs_as_the_reference(&build(&recipe))?;
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Every thread knows what it has observed itself and what other threads have told it. Whether
    /// an access that one thread's host access stands for is reported to another thread's access
    /// may vary: host against host is left to other tests.
    #[test]
    fn strict_host_threads_miss_no_pair_and_invent_none(recipe in recipe(3)) {
        let mut items = build(&recipe);
        // Among threads two things are not told: a prefetch that is not behind an allocation by the
        // host, and a batch's read on the host beside its own write to the same bytes.
        items.retain(|item| match item {
            TraceItem::Operation(op) => {
                !matches!(op.action, Action::Prefetch { .. } | Action::Batch(_))
            }
            _ => true,
        });
        let options = Options { host_model: HostModel::Strict, ..Options::default() };
        let mut findings = analyse_with(options, &items).findings;
        findings.retain(|finding| finding.severity != Severity::Lint);
        let order = Order::strict(&items).expect("random programs keep to what it covers");
        nothing_missed_nothing_invented(&findings, &order)?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// A strided pattern of many runs is kept as one entry, which stands for nothing but its like:
    /// farther predecessors may be reported beside the nearest, but no ordered one and none missed.
    #[test]
    fn long_patterns_miss_no_pair_and_invent_none(recipe in recipe_with_long_patterns()) {
        let items = build(&recipe);
        nothing_missed_nothing_invented(&pairs_of(&items), &order(&items))?;
    }

    #[test]
    fn added_synchronisation_never_adds_a_race(recipe in recipe(2), insertion in insertion()) {
        let before = build(&recipe);
        let after = insert_synchronisation(&before, &insertion);
        // A pair may come to light that hid behind a nearer one; it was unordered all along.
        let unordered = unordered_pairs(&order(&before));
        for finding in pairs_of(&after) {
            let was = unordered.get(&Pair::of(&finding));
            prop_assert!(
                was.is_some_and(|was| *was <= finding.severity),
                "{:?} was {was:?} before; after:\n{}",
                Reported::of(&finding),
                render(&after)
            );
        }
    }

    #[test]
    fn names_and_addresses_change_no_fingerprint(recipe in recipe(2), renaming in renaming()) {
        let items = build(&recipe);
        let (renamed, new_id) = rename_and_shift(&items, &renaming);
        let (plain, other) = (analyse(&items).findings, analyse(&renamed).findings);
        let mut fingerprints: Vec<_> = plain.iter().map(|f| f.fingerprint).collect();
        let mut others: Vec<_> = other.iter().map(|f| f.fingerprint).collect();
        fingerprints.sort();
        others.sort();
        prop_assert_eq!(fingerprints, others, "\n{}", render(&renamed));
        let follow = |finding: &Finding| {
            let reported = Reported::of(finding);
            let allocation = new_id(finding.allocation);
            let pair = Pair { allocation, ..reported.pair };
            (pair, reported.kind, reported.severity)
        };
        let plain: BTreeSet<_> = plain.iter().map(follow).collect();
        let other: BTreeSet<_> =
            other.iter().map(Reported::of).map(|r| (r.pair, r.kind, r.severity)).collect();
        prop_assert_eq!(plain, other, "\n{}", render(&renamed));
    }

    #[test]
    fn calls_handed_over_while_they_run_change_nothing(
        recipe in recipe(2),
        choice in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let items = build(&recipe);
        let live = hand_over_unfinished(&items, &choice);
        let (stored, live_result) = (analyse(&items), analyse(&live));
        same_findings(&stored.findings, &live_result.findings)?;
        let sorted = |mut edges: Vec<streamsan_model::Edge>| {
            edges.sort_by_key(|e| (e.to, e.from, e.kind, e.tier));
            edges
        };
        prop_assert_eq!(sorted(stored.edges), sorted(live_result.edges), "\n{}", render(&live));
    }

    #[test]
    fn equal_traces_give_equal_results(recipe in recipe(2)) {
        let items = build(&recipe);
        let (once, again) = (analyse(&items), analyse(&items));
        same_findings(&once.findings, &again.findings)?;
        prop_assert_eq!(&once.edges, &again.edges);
        prop_assert_eq!(once.statistics, again.statistics);
    }

    /// Pruning and its timing are an economy: they may not show.
    #[test]
    fn pruning_changes_nothing(
        recipe in prop_oneof![recipe(2), recipe_of_short_lived_streams(2)],
        prune_interval in 1..20u64,
    ) {
        let items = build(&recipe);
        let mut engine = Engine::new(Options { prune_interval, ..Options::default() });
        let mut pruned = streamsan_analysis::Analysis::default();
        for item in &items {
            engine.feed(item, &mut pruned);
        }
        engine.finish(&mut pruned);
        pruned.findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
        same_findings(&analyse(&items).findings, &pruned.findings)?;
    }
}

/// For each later operation and allocation, the worst that is found.
fn worst(findings: &[Finding]) -> BTreeMap<(u64, u32), (Severity, Confidence)> {
    let mut worst = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.severity != Severity::Lint) {
        let side = (finding.second.op.0, finding.allocation.0);
        let entry = worst.entry(side).or_insert((finding.severity, finding.confidence));
        entry.0 = finding.severity.min(entry.0);
        entry.1 = finding.confidence.max(entry.1);
    }
    worst
}

/// How a program fares where few unordered accesses of a byte are kept: how many pairs less are
/// found, and whether anything was dropped.
fn with_few_kept(items: &[TraceItem]) -> (Vec<Finding>, u64) {
    let options = Options { antichain_cap: 5, ..Options::default() };
    let mut analysis = analyse_with(options, items);
    analysis.findings.retain(|finding| finding.severity != Severity::Lint);
    (analysis.findings, analysis.statistics.antichain_overflows)
}

proptest! {
    #![proptest_config(config(300))]

    /// Much work of destroyed streams is kept as one access. That makes no operation's verdict
    /// milder and invents no pair.
    #[test]
    fn folding_makes_nothing_milder(recipe in recipe_of_streams_left_behind()) {
        let items = build(&recipe);
        let all = pairs_of(&items);
        let (few, dropped) = with_few_kept(&items);
        let unordered = unordered_pairs(&order(&items));
        for finding in &few {
            prop_assert_eq!(unordered.get(&Pair::of(finding)), Some(&finding.severity));
        }
        if dropped == 0 {
            prop_assert_eq!(worst(&all), worst(&few));
        }
    }
}

/// The property above is one of programs in which much is kept as one.
#[test]
fn streams_left_behind_are_folded() {
    let mut runner = TestRunner::new(config(1));
    let (mut folded, mut less) = (0, 0);
    for _ in 0..200 {
        let recipe = recipe_of_streams_left_behind().new_tree(&mut runner).expect("no filters");
        let items = build(&recipe.current());
        let (few, dropped) = with_few_kept(&items);
        let kept = items.iter().filter(|item| match item {
            TraceItem::Operation(op) => matches!(op.action, Action::Launch { .. }),
            _ => false,
        });
        folded += u32::from(dropped == 0 && kept.count() > 15);
        less += u32::from(dropped == 0 && few.len() < pairs_of(&items).len());
    }
    assert!(folded > 20 && less > 5, "{folded} {less}");
}

/// The property of short-lived streams is one of programs in which slots are used again, with and
/// without races.
#[test]
fn short_lived_streams_use_slots_again() {
    let mut runner = TestRunner::new(config(1));
    let (mut reused, mut racy, mut clean) = (0, 0, 0);
    for _ in 0..200 {
        let recipe = recipe_of_short_lived_streams(2);
        let items = build(&recipe.new_tree(&mut runner).expect("no filters").current());
        let options = Options { prune_interval: 1, ..Options::default() };
        let analysis = analyse_with(options, &items);
        let streams = items.iter().filter(|item| match item {
            TraceItem::Operation(op) => matches!(op.action, Action::StreamCreate { .. }),
            _ => false,
        });
        reused += u32::from(streams.count() as u64 > analysis.statistics.chains + 2);
        match analysis.findings.iter().any(|finding| finding.severity == Severity::Race) {
            true => racy += 1,
            false => clean += 1,
        }
    }
    assert!(reused > 10 && racy > 10 && clean > 0, "{reused} {racy} {clean}");
}

/// The properties above hold of programs that race in every way, or they would say little.
#[test]
fn random_programs_hold_every_kind_of_pair() {
    let mut runner = TestRunner::new(config(1));
    let mut seen = BTreeSet::new();
    let (mut clean, mut racy, mut bases) = (0, 0, BTreeSet::new());
    for _ in 0..300 {
        let program = recipe(2).new_tree(&mut runner).expect("no filters").current();
        let items = build(&program);
        let order = order(&items);
        bases.extend(order.accesses.iter().map(|access| access.access.basis));
        let pairs = maximal_pairs(&order);
        if pairs.is_empty() {
            clean += 1;
        } else {
            racy += 1;
        }
        assert!(pairs.len() <= unordered_pairs(&order).len());
        seen.extend(pairs.into_iter().map(|reported| (reported.severity, reported.kind)));
    }
    for severity in [Severity::Race, Severity::Latent] {
        for &kind in ConflictKind::ALL {
            // An allocation's own wait cannot order the work behind the allocation.
            if (severity, kind) != (Severity::Latent, ConflictKind::UseBeforeAlloc) {
                assert!(seen.contains(&(severity, kind)), "no {severity:?} {kind:?} in {seen:?}");
            }
        }
    }
    assert_eq!(bases, BTreeSet::from(Basis::ALL));
    assert!(clean > 0 && racy > 100, "{clean} clean and {racy} racy programs");
}
