//! Tests of the shadow memory by itself.

mod properties;

use super::*;
use crate::clock::Know;
use crate::core::View;
use crate::record::test_support::record;
use streamsan_model::Mode;

/// Behind everything issued before.
const ORDERED: bool = true;
/// Behind nothing.
const UNORDERED: bool = false;

/// Adds an access and returns the operations that it conflicts with.
fn add(shadow: &mut Shadow, ordered: bool, g: u64, mode: Mode, a: u64, b: u64) -> Vec<u64> {
    add_of(shadow, ordered, g, (mode, Basis::Exact), a, b)
}

fn add_of(
    shadow: &mut Shadow,
    ordered: bool,
    g: u64,
    (mode, basis): (Mode, Basis),
    a: u64,
    b: u64,
) -> Vec<u64> {
    let mut new = record(g, mode, basis);
    if let (true, Place::Chain(chain)) = (ordered, new.place) {
        new.view = View { own: Some((chain, g - 1)), ..View::default() };
    }
    let extent = Extent::Range(ByteRange::new(a, b));
    new.access.extent = extent;
    let (new, mut hits) = (Arc::new(new), Vec::new());
    let view = new.view.clone();
    shadow.access(&extent, &new, &view, Limits::new(16), &mut |entry, _| hits.push(entry.op.0));
    hits.sort_unstable();
    hits.dedup();
    hits
}

#[test]
fn an_ordered_write_replaces_what_it_covers() {
    let mut shadow = Shadow::default();
    add(&mut shadow, ORDERED, 1, Mode::Write, 0, 100);
    add(&mut shadow, ORDERED, 2, Mode::Read, 0, 50);
    assert_eq!(shadow.segments(), 2);
    add(&mut shadow, ORDERED, 3, Mode::Write, 0, 100);
    assert_eq!(shadow.segments(), 1, "the segments join again");
    assert_eq!(add(&mut shadow, UNORDERED, 4, Mode::Write, 10, 20), [3]);
}

#[test]
fn unordered_writes_stay_side_by_side() {
    let mut shadow = Shadow::default();
    add(&mut shadow, UNORDERED, 1, Mode::Write, 0, 10);
    assert_eq!(add(&mut shadow, UNORDERED, 2, Mode::Write, 0, 10), [1]);
    assert_eq!(add(&mut shadow, UNORDERED, 3, Mode::Write, 5, 15), [1, 2]);
}

#[test]
fn a_read_replaces_reads_and_leaves_writes_and_atomics() {
    let mut shadow = Shadow::default();
    add(&mut shadow, ORDERED, 1, Mode::Write, 0, 10);
    add(&mut shadow, ORDERED, 2, Mode::Atomic, 0, 10);
    add(&mut shadow, ORDERED, 3, Mode::Read, 0, 10);
    add(&mut shadow, ORDERED, 4, Mode::Read, 0, 10);
    // The write at 1 happens before the others, which stand for it.
    assert_eq!(add(&mut shadow, UNORDERED, 5, Mode::Write, 0, 10), [4]);
    assert_eq!(add(&mut shadow, UNORDERED, 6, Mode::Read, 0, 10), [2, 5]);
}

#[test]
fn disjoint_ranges_do_not_meet() {
    let mut shadow = Shadow::default();
    add(&mut shadow, UNORDERED, 1, Mode::Write, 0, 10);
    assert!(add(&mut shadow, UNORDERED, 2, Mode::Write, 10, 20).is_empty());
}

#[test]
fn a_weaker_access_never_replaces_a_stronger_one() {
    // (earlier, later, whether the earlier one is still reported)
    let table = [
        ((Mode::Write, Basis::Exact), (Mode::MayWrite, Basis::Exact), true),
        ((Mode::Write, Basis::Exact), (Mode::Write, Basis::Inferred), true),
        ((Mode::Write, Basis::Exact), (Mode::Write, Basis::Exact), false),
        ((Mode::MayWrite, Basis::Assumed), (Mode::MayWrite, Basis::Assumed), false),
    ];
    for (earlier, later, kept) in table {
        let mut shadow = Shadow::default();
        add_of(&mut shadow, ORDERED, 1, earlier, 0, 8);
        add_of(&mut shadow, ORDERED, 2, later, 0, 8);
        let hits = add(&mut shadow, UNORDERED, 3, Mode::Write, 0, 8);
        assert_eq!(hits.contains(&1), kept, "{earlier:?} {later:?}");
    }
}

/// Keeps an access that certainly touches only a part of its extent.
fn add_weak(shadow: &mut Shadow, g: u64, mode: Mode, a: u64, b: u64) -> Vec<u64> {
    add_of(shadow, ORDERED, g, (mode, Basis::Anchored), a, b)
}

#[test]
fn an_uncertain_access_splits_nothing() {
    let mut shadow = Shadow::default();
    for g in 1..=100 {
        add(&mut shadow, ORDERED, g, Mode::Write, g * 10, g * 10 + 10);
    }
    add_weak(&mut shadow, 101, Mode::Write, 55, 2000);
    add_weak(&mut shadow, 102, Mode::Write, 45, 2000);
    assert_eq!(shadow.segments(), 101, "the second one replaces the first");
    assert_eq!(add(&mut shadow, UNORDERED, 103, Mode::Write, 40, 60), [4, 5, 102]);
}

#[test]
fn a_certain_access_hides_an_uncertain_one_where_it_lies() {
    let mut shadow = Shadow::default();
    add_weak(&mut shadow, 1, Mode::Write, 0, 100);
    add(&mut shadow, ORDERED, 2, Mode::Write, 20, 40);
    assert_eq!(add(&mut shadow, UNORDERED, 3, Mode::Read, 20, 40), [2]);
    assert_eq!(add(&mut shadow, UNORDERED, 4, Mode::Read, 30, 50), [1, 2]);
    add(&mut shadow, ORDERED, 5, Mode::Write, 0, 100);
    assert_eq!(add(&mut shadow, UNORDERED, 6, Mode::Read, 30, 50), [5]);
}

/// An operation is not compared with itself, and that hides no other conflict.
#[test]
fn a_second_access_of_an_operation_looks_behind_the_first() {
    let mut shadow = Shadow::default();
    add(&mut shadow, UNORDERED, 1, Mode::Write, 0, 10);
    for mode in [Mode::Read, Mode::Write] {
        let weak = (mode, Basis::Anchored);
        assert_eq!(add_of(&mut shadow, UNORDERED, 2, weak, 0, 10), [1], "{mode:?}");
    }
    add(&mut shadow, UNORDERED, 2, Mode::Write, 20, 30);
    assert_eq!(add_of(&mut shadow, UNORDERED, 2, (Mode::Write, Basis::Anchored), 0, 30), [1]);
}

/// Surplus entries go into the segments from the oldest on, so that newer ones replace older ones
/// there.
#[test]
fn what_is_laid_down_replaces_what_it_stands_for() {
    let mut shadow = Shadow::default();
    for g in 1..=100 {
        // No access lies wholly in the next one.
        add_weak(&mut shadow, g, Mode::Write, g, 200);
    }
    let entries = |segment: &Segment| segment.entries().count();
    assert!(shadow.segments.len() > 10, "the oldest ones are laid down");
    assert_eq!(shadow.segments.values().map(entries).max(), Some(1));
}

/// An operation that is behind the launch whose entries were made, and not behind the launch that
/// they stand for now.
#[test]
fn what_is_renewed_is_newer_than_what_it_was() {
    let mut shadow = Shadow::default();
    add(&mut shadow, ORDERED, 1, Mode::Write, 0, 10);
    add_weak(&mut shadow, 2, Mode::Write, 20, 30);
    shadow.renew(OpSeq(1), &record(3, Mode::Write, Basis::Exact));
    let mut new = record(4, Mode::Write, Basis::Anchored);
    let mut know = Know::default();
    let Place::Chain(chain) = new.place else { panic!("not on the host") };
    know.documented.raise(chain, 2);
    new.view.know = Arc::new(know);
    new.access.extent = Extent::Range(ByteRange::new(0, 30));
    let (new, view, mut hits) = (Arc::new(new.clone()), new.view.clone(), Vec::new());
    shadow.access(&new.access.extent, &new, &view, Limits::new(16), &mut |entry, piece| {
        hits.push((entry.op.0, piece));
    });
    assert_eq!(hits, [(3, ByteRange::new(0, 10))]);
}

#[test]
fn too_many_uncertain_accesses_are_laid_down_and_none_is_lost() {
    const COUNT: u64 = 3000;
    let mut shadow = Shadow::default();
    for g in 1..=COUNT {
        // Each access lies partly in the next one, so that none replaces another.
        add_weak(&mut shadow, g, Mode::Write, g * 10, g * 10 + 15);
    }
    add(&mut shadow, ORDERED, COUNT + 1, Mode::Write, 500, 600);
    for g in [1, 30, 80, 1000, 2999, COUNT] {
        let hits = add_of(
            &mut shadow,
            UNORDERED,
            9000,
            (Mode::Read, Basis::Exact),
            g * 10 + 11,
            g * 10 + 15,
        );
        // The later one is the maximal one on common bytes.
        let expected = [(g + 1).min(COUNT)];
        assert_eq!(hits, expected, "{g}");
    }
    let hits = add_of(&mut shadow, UNORDERED, 9001, (Mode::Read, Basis::Exact), 495, 510);
    assert_eq!(hits, [49, COUNT + 1]);
}
