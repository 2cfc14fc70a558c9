//! The tests of a program that marked them, and the findings that each has made.
//!
//! A finding belongs to the test that issued its later access, since the earlier one was in order
//! until then. A report folds the occurrences of one mistake, so all of them are looked at: one
//! helper with a mistake makes each test racy that calls it. What no test issued, in a set-up of the
//! whole program for example, is told as outside of tests.
//!
//! Deliberately absent: NVTX ranges of other domains, which are told in `ranges` and decide nothing.

use crate::names::seen;
use crate::{Disposition, Group, LintGroup, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streamsan_model::{
    Entities, Finding, Fingerprint, Lint, NvtxKind, NvtxRange, OpSeq, ProcessId, Severity,
};
use streamsan_names::printable;

/// The words for what no test issued.
pub(crate) const OUTSIDE: &str = "outside of tests";
/// Tests that are looked at for the one that a call lies in: those of a process follow each other, and
/// few have one inside.
const NESTED: usize = 16;
/// Tests that the words about a finding name.
const NAMED: usize = 8;

/// A test that ran in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    begin: OpSeq,
    end: Option<OpSeq>,
    name: Arc<str>,
    /// Classes and ids of findings that it allows; `*` for all.
    allowed: Vec<Arc<str>>,
}

impl Test {
    fn holds(&self, g: OpSeq) -> bool {
        self.begin < g && self.end.is_none_or(|end| g < end)
    }
}

/// The tests of a trace, by the process that ran them, in the order of their begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedTests {
    by_process: BTreeMap<ProcessId, Vec<Test>>,
    /// Each name once.
    names: Vec<Arc<str>>,
}

/// Occurrences of a finding in one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTest {
    /// The test; `None` for what no test issued.
    pub test: Option<Arc<str>>,
    /// How many there are.
    pub count: u64,
    /// Whether the test allows the finding.
    pub allowed: bool,
}

impl MarkedTests {
    /// Takes the tests from all ranges of a trace, in the order of their begins.
    pub fn of(ranges: impl IntoIterator<Item = NvtxRange>) -> Self {
        let mut tests = Self::default();
        let mut known = BTreeSet::new();
        for range in ranges {
            let (begin, end, name) = (range.begin, range.end, range.name);
            let of_process = tests.by_process.entry(range.process);
            match range.domain.as_deref() {
                Some(NvtxRange::TESTS) if range.kind != NvtxKind::Mark => {
                    if known.insert(Arc::clone(&name)) {
                        tests.names.push(Arc::clone(&name));
                    }
                    of_process.or_default().push(Test { begin, end, name, allowed: Vec::new() });
                }
                Some(NvtxRange::ALLOWED) if range.kind == NvtxKind::Mark => {
                    let mut running = of_process.or_default().iter_mut().rev().take(NESTED);
                    if let Some(test) = running.find(|test| test.holds(begin)) {
                        test.allowed.push(name);
                    }
                }
                _ => {}
            }
        }
        tests
    }

    /// Whether the program marked none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The innermost test around a call of a process, or of the process that started it.
    fn around(&self, entities: &Entities, process: ProcessId, g: OpSeq) -> Option<&Test> {
        let mut next = Some(process);
        // A damaged trace may name parents in a circle.
        for _ in 0..=entities.processes().count() {
            let at = next?;
            let tests = self.by_process.get(&at).map_or(&[][..], Vec::as_slice);
            let until = tests.partition_point(|test| test.begin < g);
            let mut begun = tests[..until].iter().rev().take(NESTED);
            if let Some(test) = begun.find(|test| test.holds(g)) {
                return Some(test);
            }
            let parent = entities.process(at)?.parent_pid;
            next = entities.processes().find(|other| other.pid == parent).map(|other| other.id);
        }
        None
    }
}

/// The tests by findings, and those that allow each.
#[derive(Debug)]
struct Count<'a> {
    tests: &'a MarkedTests,
    entities: &'a Entities,
    found: BTreeMap<(Fingerprint, Severity), Vec<InTest>>,
}

impl Count<'_> {
    fn add(
        &mut self,
        key: (Fingerprint, Severity),
        class: &str,
        place: (Option<ProcessId>, OpSeq),
    ) {
        let (process, g) = place;
        let test = process.and_then(|process| self.tests.around(self.entities, process, g));
        let id = key.0.to_string();
        let allowed = test.is_some_and(|test| {
            test.allowed.iter().any(|allowed| ["*", class, &id].contains(&&**allowed))
        });
        let name = test.map(|test| Arc::clone(&test.name));
        let places = self.found.entry(key).or_default();
        match places.iter_mut().find(|place| place.test == name) {
            Some(place) => {
                place.count += 1;
                place.allowed &= allowed;
            }
            None => places.push(InTest { test: name, count: 1, allowed }),
        }
    }
}

impl Report<'_> {
    /// Tells of each finding the tests that made it, from all occurrences that the trace has.
    /// `process_of` answers the process of an operation.
    #[must_use]
    pub fn in_tests(
        mut self,
        tests: &MarkedTests,
        (findings, lints): (&[Finding], &[Lint]),
        mut process_of: impl FnMut(OpSeq) -> Option<ProcessId>,
    ) -> Self {
        if tests.is_empty() {
            return self;
        }
        let entities = &*self.input.entities;
        let mut count = Count { tests, entities, found: BTreeMap::new() };
        for finding in findings {
            let (key, g) = (finding.fingerprint_at_sites(entities), finding.second.op);
            let class = finding.class.description();
            count.add((key, finding.severity), class, (process_of(g), g));
        }
        for lint in lints {
            let key = (lint.fingerprint_at_sites(entities), Severity::Lint);
            count.add(key, lint.class.description(), (process_of(lint.op), lint.op));
        }
        for group in &mut self.groups {
            let key = (group.finding.fingerprint, group.finding.severity);
            group.tests = count.found.get(&key).cloned().unwrap_or_default();
        }
        for group in &mut self.lints {
            let key = (group.lint.fingerprint, Severity::Lint);
            group.tests = count.found.get(&key).cloned().unwrap_or_default();
        }
        self.tests.clone_from(&tests.names);
        self.allow_of_tests();
        self
    }

    /// Findings that fail, and that all tests which made them allow, do not fail.
    pub(crate) fn allow_of_tests(&mut self) {
        for group in &mut self.groups {
            if group.fails && are_allowed(&group.tests) {
                (group.fails, group.disposition) = (false, Disposition::Allowed);
            }
        }
        for group in &mut self.lints {
            if group.fails && are_allowed(&group.tests) {
                (group.fails, group.disposition) = (false, Disposition::Allowed);
            }
        }
        self.groups.sort_by_key(|group| !group.fails);
        self.decide();
    }

    /// The tests of the program with what fails in each, in the order in which they ran.
    pub(crate) fn failing_tests(&self) -> Vec<(&str, Vec<Failing<'_>>)> {
        let groups = self.groups.iter().filter(|group| group.fails);
        let groups = groups.map(|group| (&group.tests, What::Finding(group)));
        let lints = self.lints.iter().filter(|group| group.fails);
        let lints = lints.map(|group| (&group.tests, What::Lint(group)));
        let mut failing: BTreeMap<&str, Vec<Failing<'_>>> = BTreeMap::new();
        for (tests, what) in groups.chain(lints) {
            for place in tests.iter().filter(|place| !place.allowed) {
                if let Some(test) = place.test.as_deref() {
                    failing.entry(test).or_default().push(Failing { what, count: place.count });
                }
            }
        }
        let names = self.tests.iter().map(|name| &**name);
        names.map(|name| (name, failing.remove(name).unwrap_or_default())).collect()
    }
}

/// Whether every test that made a finding allows it.
fn are_allowed(tests: &[InTest]) -> bool {
    !tests.is_empty() && tests.iter().all(|place| place.allowed)
}

/// What fails in a test.
#[derive(Debug)]
pub(crate) struct Failing<'a> {
    pub(crate) what: What<'a>,
    /// Occurrences in the test.
    count: u64,
}

/// A finding or a lint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'a> {
    /// A finding.
    Finding(&'a Group),
    /// A lint.
    Lint(&'a LintGroup),
}

impl Failing<'_> {
    /// `RAW [missing-wait] id zq2j6j5f, seen once`.
    pub(crate) fn line(&self) -> String {
        let (kind, class, id) = match self.what {
            What::Finding(Group { finding, .. }) => {
                (finding.kind.description(), finding.class, finding.fingerprint)
            }
            What::Lint(LintGroup { lint, .. }) => ("lint", lint.class, lint.fingerprint),
        };
        format!("{kind} [{}] id {id}, {}", class.description(), seen(self.count))
    }
}

/// `Memsets.InTwoStreams, seen once; Copies.Early, seen 2 times (allowed)`; `None` where the program
/// marked no tests.
pub(crate) fn tests_in_words(tests: &[InTest]) -> Option<String> {
    let said = |place: &InTest| {
        let name = place.test.as_deref().map_or(OUTSIDE.into(), printable);
        let allowed = if place.allowed { " (allowed)" } else { "" };
        format!("{name}, {}{allowed}", seen(place.count))
    };
    let mut named: Vec<String> = tests.iter().take(NAMED).map(said).collect();
    if tests.len() > NAMED {
        named.push(format!("{} more tests", tests.len() - NAMED));
    }
    (!named.is_empty()).then(|| named.join("; "))
}

/// Adds the tests of another trace's group of the same mistake.
pub(crate) fn add_tests(to: &mut Vec<InTest>, more: &[InTest]) {
    for place in more {
        match to.iter_mut().find(|known| known.test == place.test) {
            Some(known) => {
                known.count += place.count;
                known.allowed &= place.allowed;
            }
            None => to.push(place.clone()),
        }
    }
}
