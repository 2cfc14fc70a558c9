//! Sentences that several forms share.

use crate::marked::tests_in_words;
use crate::names::{op, plural};
use crate::stacks::LISTED;
use crate::{Group, LintGroup, Report, explain, text};
use std::fmt::Write;
use streamsan_model::{FindingAccess, RaceClass, Severity};
use streamsan_names::printable;

impl Report<'_> {
    /// `write-after-read race on 4.0 MiB of `kv_cache``.
    pub(super) fn title(&self, group: &Group) -> String {
        text::headline(self.part_of(group), &group.finding)
    }

    /// `stale-wait`, or `latent-stale-wait`: what a rule is called.
    pub(super) fn rule(&self, class: RaceClass, severity: Severity) -> String {
        match severity {
            Severity::Race => class.description().to_owned(),
            Severity::Latent | Severity::Lint => {
                format!("{}-{}", severity.description(), class.description())
            }
        }
    }

    /// `read by flash_fwd on stream 7 "decode" at #18,233`.
    pub(super) fn access_in_words(&self, access: &FindingAccess) -> String {
        let place = match access.stream {
            Some(stream) => format!("on {}", self.the_stream(stream)),
            None => "on the host".to_owned(),
        };
        let mode = access.access.mode.weak().description();
        format!("{mode} by {} {place} at {}", self.what(access), op(access.op))
    }

    /// The two accesses of a finding, each with the place of its call where that is known:
    /// `read by flash_fwd on stream 7 "decode" at #18,233, at serve.py:12 in step`.
    pub fn accesses_in_words(&self, group: &Group) -> [String; 2] {
        let own = self.part_of(group);
        [&group.finding.first, &group.finding.second].map(|side| {
            let place = own.place_in_words(side.stack);
            let place = place.map_or(String::new(), |place| format!(", at {place}"));
            format!("{}{place}", own.access_in_words(side))
        })
    }

    /// The sentence on a lint, and its calls.
    pub(super) fn lint_in_words(&self, group: &LintGroup) -> String {
        format!("{}: {}", explain::lint(group.lint.class), self.calls_of_lint(group))
    }

    /// `cuStreamWaitEvent for event "done" in stream "prefetch" at #18,500, ...`.
    pub(super) fn calls_of_lint(&self, group: &LintGroup) -> String {
        let lint = &group.lint;
        let own = self.part_of_lint(group);
        let mut line = match own.call_without_place(lint.op) {
            Some(call) => format!("{call} at {}", op(lint.op)),
            None => format!("{} at {}", own.called(&lint.api, lint.stack), op(lint.op)),
        };
        if let Some(related) = lint.related {
            let _ = write!(line, ", {}", own.call(related));
        }
        if let Some(place) = own.place_in_words(lint.stack) {
            let _ = write!(line, ", at {place}");
        }
        if let Some(library) = &group.library {
            let _ = write!(line, ", inside {}", printable(library));
        }
        if let Some(traces) = self.in_traces(&group.traces) {
            let _ = write!(line, ", {traces}");
        }
        line
    }

    /// Everything that there is to say of a finding, a line each.
    pub(super) fn in_full(&self, group: &Group) -> Vec<String> {
        let (finding, own) = (&group.finding, self.part_of(group));
        let mut lines = Vec::new();
        for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            lines.push(format!("{number} {}", own.access_in_words(side)));
            lines.extend(own.around_in_words(side).map(|around| format!("    in {around}")));
            for (depth, frame) in own.listed(side.stack, LISTED).iter().enumerate() {
                let word = if depth == 0 { "at" } else { "by" };
                lines.push(format!("    {word} {frame}"));
            }
        }
        lines.push(format!("in {}", own.allocation_in_full(finding.allocation)));
        lines.extend(text::first_touch(finding));
        let allocated = own.stack_of_allocation(finding.allocation);
        lines.extend(own.place_in_words(allocated).map(|place| format!("allocated at {place}")));
        lines.push(own.why(finding));
        if let Some(fix) = own.fix(finding) {
            lines.push(format!("fix: {}", fix.sentence));
            lines.extend(fix.steps.iter().map(|step| format!("    {}", step.description())));
        }
        let upstream = group.disposition.upstream();
        lines.extend(tests_in_words(&group.tests).map(|tests| format!("test {tests}")));
        lines.extend(
            upstream.map(|upstream| format!("known upstream in {}", upstream.description())),
        );
        lines.push(format!("confidence {}", own.confidence(finding)));
        let amounts = group.spread.amounts().filter(|_| group.traces.is_empty());
        let amounts = amounts.map_or(String::new(), |amounts| format!(" {amounts}"));
        lines.push(format!("{}{amounts}", plural(group.count, "occurrence", "occurrences")));
        let pairs = own.pairs_in_words(&group.spread);
        lines.extend(pairs.filter(|_| group.traces.is_empty()));
        lines.extend(self.in_traces(&group.traces));
        lines
    }

    /// The words of the verdict line.
    pub(super) fn verdict_in_words(&self) -> String {
        let text =
            self.render_text(&crate::TextOptions { max_findings: Some(0), ..Default::default() });
        text.lines().last().unwrap_or_default().to_owned()
    }
}
