//! The report: the common source of every form of output.

use crate::{
    Coverage, Effect, Folded, Group, HtmlInput, KnownUpstream, LintGroup, Settled, SourceLine,
    TextOptions, Unused, formats, json, text,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{
    Entities, Fingerprint, HostAccesses, IncompleteReason, NvtxRange, OpSeq, Operation, QueryError,
    Severity, StreamNames, Threshold, Verdict,
};
use streamsan_names::{printable, printable_json, printable_line, printable_text};

/// Characters of an id that stand for all of it, at least.
const SHORTEST_ID: usize = 3;

/// The input of a report.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// All findings.
    pub findings: Folded,
    /// The entities of the trace.
    pub entities: &'a Entities,
    /// The threshold from which on findings fail the build.
    pub threshold: Threshold,
    /// The reasons why the run was not seen completely.
    pub reasons: Vec<IncompleteReason>,
    /// The coverage of the recording; `None` for text traces.
    pub coverage: Option<Coverage>,
    /// Races known in libraries, which count for nothing; `None` to count them like any other.
    pub upstream: Option<&'a KnownUpstream>,
    /// Where the trace lies, as the user named it; printed as given, in the text form only.
    pub trace: Option<String>,
}

/// The input that a report keeps, beside what became of the findings.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    /// The trace's, or a copy of those that the findings name.
    pub(crate) entities: Cow<'a, Entities>,
    pub(crate) threshold: Threshold,
    pub(crate) reasons: Vec<IncompleteReason>,
    pub(crate) coverage: Option<Coverage>,
    pub(crate) trace: Option<String>,
}

impl Facts<'_> {
    /// The driver calls that were seen; `None` where they are not counted.
    pub(crate) fn calls(&self) -> Option<u64> {
        self.coverage.as_ref().map(|coverage| coverage.calls)
    }
}

/// A verdict with everything that explains it.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) groups: Vec<Group>,
    pub(crate) lints: Vec<LintGroup>,
    pub(crate) unused: Vec<Unused>,
    /// Whether a baseline says what was there before.
    pub(crate) has_baseline: bool,
    pub(crate) input: Facts<'a>,
    /// The effects of the proposed edges.
    pub(crate) effects: BTreeMap<(Fingerprint, Severity), Effect>,
    pub(crate) operations: BTreeMap<OpSeq, Operation>,
    /// The ranges around the accesses of findings, where there are any.
    pub(crate) ranges: BTreeMap<OpSeq, Vec<NvtxRange>>,
    pub(crate) stream_names: StreamNames,
    /// The reports of the single traces, in a report over several.
    pub(crate) parts: Vec<Report<'a>>,
    /// The directory that paths of source files are shown relative to.
    pub(crate) directory: Option<String>,
    /// The tests that the program marked, in the order in which they ran.
    pub(crate) tests: Vec<Arc<str>>,
    /// The second run's answers to the questions that the first one left open.
    pub(crate) settled: Option<Settled>,
}

/// The verdict over what fails, what was not seen, and the driver calls that were (`None`: not
/// counted).
pub(crate) fn decide_verdict(
    groups: &[Group],
    lints: &[LintGroup],
    reasons: &[IncompleteReason],
    calls: Option<u64>,
) -> Verdict {
    let fails = groups.iter().any(|group| group.fails) || lints.iter().any(|group| group.fails);
    Verdict::of(fails, reasons.to_vec(), calls)
}

impl<'a> Report<'a> {
    /// Orders the findings and decides. `operation` looks up the operations that findings refer to
    /// beside their own two (the nearest event, the masking call); where it answers `None`, only
    /// their number is printed.
    pub fn new(input: Input<'a>, mut operation: impl FnMut(OpSeq) -> Option<Operation>) -> Self {
        let Input { findings, entities, threshold, reasons, coverage, upstream, trace } = input;
        let groups = findings.ordered(threshold, entities, upstream);
        let stream_of = |g| operation(g).and_then(|operation| operation.action.stream());
        let lints = findings.lints.ordered(threshold, entities, stream_of);
        let entities = Cow::Borrowed(entities);
        let input = Facts { entities, threshold, reasons, coverage, trace };
        let verdict = decide_verdict(&groups, &lints, &input.reasons, input.calls());
        let has_processes = input.entities.processes().nth(1).is_some();
        let mut operations = BTreeMap::new();
        for group in &groups {
            let finding = &group.finding;
            let edge = finding.proposed_edge;
            let ends = edge.into_iter().flat_map(|e| [e.record_after_op, e.wait_before_op]);
            // Which process made the two calls matters only where there are several.
            let ends = ends
                .filter(|&g| has_processes || (g != finding.first.op && g != finding.second.op));
            let named = [finding.knows, finding.nearest, finding.masked_by];
            for g in named.into_iter().flatten().chain(ends) {
                if !operations.contains_key(&g)
                    && let Some(found) = operation(g)
                {
                    operations.insert(g, found);
                }
            }
        }
        for group in &lints {
            for g in [Some(group.lint.op), group.lint.related].into_iter().flatten() {
                if !operations.contains_key(&g)
                    && let Some(found) = operation(g)
                {
                    operations.insert(g, found);
                }
            }
        }
        Self {
            verdict,
            stream_names: StreamNames::of(&input.entities, printable),
            groups,
            lints,
            unused: Vec::new(),
            has_baseline: false,
            input,
            effects: BTreeMap::new(),
            operations,
            ranges: BTreeMap::new(),
            parts: Vec::new(),
            directory: None,
            tests: Vec::new(),
            settled: None,
        }
    }

    /// Decides the verdict again, after something has changed what fails.
    pub(crate) fn decide(&mut self) {
        let calls = self.input.calls();
        self.verdict = decide_verdict(&self.groups, &self.lints, &self.input.reasons, calls);
    }

    /// Shows paths of source files below a directory relative to it.
    #[must_use]
    pub fn relative_to(mut self, directory: Option<String>) -> Self {
        self.directory = directory;
        self
    }

    /// The overall verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The reasons why the run was not seen completely.
    pub fn reasons(&self) -> &[IncompleteReason] {
        &self.input.reasons
    }

    /// How far the host's own loads and stores were watched, where something needed watching.
    pub(crate) fn host_accesses(&self) -> Option<&HostAccesses> {
        self.input.coverage.as_ref()?.host_accesses.as_ref()
    }

    /// The same in words: `host accesses: watched - ...`, in a line that hides nothing.
    pub(crate) fn host_accesses_in_words(&self) -> Option<String> {
        let told = self.host_accesses()?.description();
        Some(format!("host accesses: {}", printable_line(&told)))
    }

    /// A finding in a line: `write-after-read race on 4.0 MiB of `kv_cache``.
    pub fn headline(&self, group: &Group) -> String {
        text::headline(self.part_of(group), &group.finding)
    }

    /// A finding with all that is known of it, whatever its disposition; not its number among others,
    /// which a report of one occurrence does not know.
    pub fn render_in_full(&self, group: &Group, options: &TextOptions) -> String {
        printable_text(&text::in_full(self, group, None, options, &mut |_, _| None)).into_owned()
    }

    /// The folded findings, in the order in which they are reported.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The findings that a user means: by id, by the beginning of an id, or by the number that the
    /// text form gives to a race. A race and a latent race of one mistake have one id.
    pub fn groups_named(&self, name: &str) -> Vec<&Group> {
        let whole = |g: &&Group| g.finding.fingerprint.to_string() == name;
        let named: Vec<_> = self.groups.iter().filter(whole).collect();
        if !named.is_empty() {
            return named;
        }
        let mut races = self.groups.iter().filter(|g| g.finding.severity == Severity::Race);
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(race) = number.and_then(|number| races.nth(number)) {
            return vec![race];
        }
        let begins = |g: &&Group| g.finding.fingerprint.to_string().starts_with(name);
        let named: Vec<_> = self.groups.iter().filter(begins).collect();
        let same = named.iter().all(|g| g.finding.fingerprint == named[0].finding.fingerprint);
        if name.len() >= SHORTEST_ID && same { named } else { Vec::new() }
    }

    /// The folded lints that explain no race, in the order in which they are reported.
    pub fn lints(&self) -> &[LintGroup] {
        &self.lints
    }

    /// The text form, without lines of sources.
    pub fn render_text(&self, options: &TextOptions) -> String {
        self.render_text_with(options, &mut |_, _| None)
    }

    /// The text form with the lines of the calls, where `sources` answers them.
    pub fn render_text_with(&self, options: &TextOptions, sources: &mut SourceLine<'_>) -> String {
        printable_text(&text::render(self, options, sources)).into_owned()
    }

    /// The JSON form, schema 1; `docs/report-format.md` describes it.
    pub fn render_json(&self) -> String {
        printable_json(&json::render(self)).into_owned()
    }

    /// SARIF 2.1.0, written by `version` of the command.
    pub fn render_sarif(&self, version: &str) -> String {
        printable_json(&formats::sarif::render(self, version)).into_owned()
    }

    /// GitLab's code quality.
    pub fn render_code_quality(&self) -> String {
        printable_json(&formats::code_quality::render(self)).into_owned()
    }

    /// JUnit XML.
    pub fn render_junit(&self) -> String {
        printable_text(&formats::junit::render(self)).into_owned()
    }

    /// One HTML file of the trace.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub fn render_html(&self, input: HtmlInput<'_>) -> Result<String, QueryError> {
        formats::html::render(self, input)
    }

    /// Annotations of GitHub Actions: workflow commands, a line each.
    pub fn render_github(&self) -> String {
        printable_text(&formats::github::annotations(self)).into_owned()
    }

    /// The summary of a step of GitHub Actions: Markdown.
    pub fn render_github_summary(&self) -> String {
        printable_text(&formats::github::summary(self)).into_owned()
    }
}
