//! The list of findings: sorted, filtered, with a place in it.

use super::Label;
use crate::IsKnownUpstream;
use crate::names;
use crate::traces::{Opened, Traces};
use std::collections::HashMap;
use streamsan_model::{Entities, Finding, FindingAccess, Fingerprint, Severity, Tally, Threshold};

/// The order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Issue order of the later access.
    #[default]
    Issue,
    /// Severity, then confidence, the gravest first.
    Gravity,
    /// Class of the mistake.
    Class,
    /// Names of the kernels.
    Kernel,
    /// Occurrences of one mistake together.
    Mistake,
}

impl SortBy {
    const ALL: [Self; 5] = [Self::Issue, Self::Gravity, Self::Class, Self::Kernel, Self::Mistake];

    /// The words of the list's headline.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Issue => "issue order",
            Self::Gravity => "severity and confidence",
            Self::Class => "class",
            Self::Kernel => "kernel",
            Self::Mistake => "mistake",
        }
    }

    /// The next one.
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&by| by == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }
}

/// The place of a finding among the shown ones, all counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrence {
    /// The mistake, in the order in which their first occurrences are shown.
    pub mistake: usize,
    /// Which of its occurrences.
    pub number: usize,
    /// Number of its occurrences.
    pub of: usize,
}

/// The shown findings: order, filter and selection.
#[derive(Clone, Debug, Default)]
pub struct FindingList {
    /// Places in the list of the findings of all traces, in the order in which they are shown.
    pub shown: Vec<usize>,
    /// The order.
    pub sort: SortBy,
    /// Words that all must be in a finding's line.
    pub words: Vec<String>,
    /// Of each shown finding, which mistake it is an occurrence of, and which one.
    pub occurrences: Vec<Occurrence>,
    /// Number of mistakes that are shown.
    pub mistakes: usize,
    /// The line that is selected.
    pub cursor: usize,
    /// All findings, counted as the report counts them at its own threshold.
    pub tally: Tally,
    /// Of each finding, whether it is known upstream and does not count.
    pub upstream: Vec<bool>,
    /// Of each trace, its mistakes, counted in the same way.
    pub by_trace: Vec<Tally>,
}

/// The name of a side: its kernel, or its call.
pub(crate) fn side_name(side: &FindingAccess, entities: &Entities) -> String {
    match &side.kernel {
        Some(kernel) => names::gist(kernel),
        None => names::call_at(entities, &side.api, side.stack),
    }
}

/// Everything that a filter can be about, in lower case.
fn words_of(finding: &Finding, open: &Opened) -> String {
    let side = |side: &FindingAccess| {
        let kernel = side.kernel.as_deref().map(names::full).unwrap_or_default();
        let name = side_name(side, &open.overview.entities);
        format!("{name} {kernel} {} {}", side.api, open.side(side.stream))
    };
    format!(
        "{} {} {} {} {} {} {}",
        finding.class.description(),
        finding.kind.description(),
        finding.severity.description(),
        finding.confidence.description(),
        finding.fingerprint,
        side(&finding.first),
        side(&finding.second)
    )
    .to_lowercase()
}

impl FindingList {
    /// Makes the list anew.
    pub fn update(
        &mut self,
        open: &Traces,
        labels: &[Label],
        is_known_upstream: Option<IsKnownUpstream>,
    ) {
        let titles: Vec<String> = labels.iter().map(|label| label.title.to_lowercase()).collect();
        let findings: Vec<(usize, &Finding)> = open.findings().collect();
        // A mistake occurs often, on few paths.
        let mut known = HashMap::new();
        let is_known = |&(trace, finding): &(usize, &Finding)| {
            let entities = &open.of(trace).overview.entities;
            let stacks = [finding.first.stack, finding.second.stack];
            let known = known.entry((trace, finding.fingerprint, stacks));
            *known.or_insert_with(|| is_known_upstream.is_some_and(|is| is(finding, entities)))
        };
        self.upstream = findings.iter().map(is_known).collect();
        let tally = |of: Option<usize>| {
            let judged = findings.iter().zip(self.upstream.iter().copied());
            let judged = judged.filter(|((trace, _), _)| of.is_none_or(|of| of == *trace));
            Tally::of(judged.map(|((_, finding), known)| (*finding, known)), Threshold::default())
        };
        self.by_trace = (0..labels.len()).map(|trace| tally(Some(trace))).collect();
        self.tally = tally(None);
        let selected = self.shown.get(self.cursor).copied();
        self.shown = (0..findings.len())
            .filter(|&place| {
                if self.words.is_empty() {
                    return true;
                }
                let (trace, finding) = findings[place];
                let text = words_of(finding, open.of(trace)) + " " + &titles[trace];
                self.words.iter().all(|word| text.contains(word))
            })
            .collect();
        match self.sort {
            SortBy::Issue => {}
            SortBy::Gravity => self.shown.sort_by_key(|&place| {
                let (_, finding) = findings[place];
                (finding.severity, std::cmp::Reverse(finding.confidence))
            }),
            SortBy::Class => self.shown.sort_by_key(|&place| findings[place].1.class.description()),
            SortBy::Kernel => self.shown.sort_by_cached_key(|&place| {
                let (trace, finding) = findings[place];
                let entities = &open.of(trace).overview.entities;
                (side_name(&finding.first, entities), side_name(&finding.second, entities))
            }),
            SortBy::Mistake => self.shown.sort_by_key(|&place| findings[place].1.fingerprint),
        }
        self.count_mistakes(&findings);
        let place = selected.and_then(|s| self.shown.iter().position(|&place| place == s));
        self.cursor = place.unwrap_or(0).min(self.shown.len().saturating_sub(1));
    }

    fn count_mistakes(&mut self, findings: &[(usize, &Finding)]) {
        // The number of each mistake, and of its occurrences so far.
        let mut known: HashMap<(Fingerprint, Severity), [usize; 2]> = HashMap::new();
        let key = |place: usize| (findings[place].1.fingerprint, findings[place].1.severity);
        self.occurrences.clear();
        for &place in &self.shown {
            let next = known.len() + 1;
            let [mistake, number] = known.entry(key(place)).or_insert([next, 0]);
            *number += 1;
            self.occurrences.push(Occurrence { mistake: *mistake, number: *number, of: 0 });
        }
        for (occurrence, &place) in self.occurrences.iter_mut().zip(&self.shown) {
            occurrence.of = known[&key(place)][1];
        }
        self.mistakes = known.len();
    }

    /// Words of an input, divided by spaces or commas; `class:` and the like before a word are
    /// understood and mean nothing.
    pub fn set_words(&mut self, text: &str) {
        self.words = text
            .split([' ', ','])
            .map(|word| word.rsplit_once(':').map_or(word, |(_, word)| word).to_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
    }
}
