//! Sentences that several forms share.

use crate::names::{op, plural};
use crate::{Group, LintGroup, Report, explain, text};
use std::fmt::Write;
use streamsan_model::{FindingAccess, RaceClass, Severity};

impl Report<'_> {
    /// `write-after-read race on 4.0 MiB of `kv_cache``.
    pub(super) fn title(&self, group: &Group) -> String {
        text::headline(self, &group.finding)
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
        let what = access.kernel.as_deref().unwrap_or(&access.api);
        let place = match access.stream {
            Some(stream) => format!("on {}", self.stream(stream)),
            None => "on the host".to_owned(),
        };
        format!("{} by {what} {place} at {}", access.access.mode.description(), op(access.op))
    }

    /// `cuStreamWaitEvent for event 1 "done" in stream 3 "prefetch" at #18,500, ...`.
    pub(super) fn lint_in_words(&self, group: &LintGroup) -> String {
        let lint = &group.lint;
        let mut line = match self.call_without_place(lint.op) {
            Some(call) => format!("{call} at {}", op(lint.op)),
            None => format!("{} at {}", lint.api, op(lint.op)),
        };
        if let Some(related) = lint.related {
            let _ = write!(line, ", {}", self.call(related));
        }
        if let Some(place) = self.place_in_words(lint.stack) {
            let _ = write!(line, ", at {place}");
        }
        format!("{}: {line}", explain::lint(lint.class))
    }

    /// Everything that there is to say of a finding, a line each.
    pub(super) fn in_full(&self, group: &Group) -> Vec<String> {
        let finding = &group.finding;
        let mut lines = Vec::new();
        for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            lines.push(format!("{number} {}", self.access_in_words(side)));
            for (depth, frame) in self.listed(side.stack).iter().enumerate() {
                let word = if depth == 0 { "at" } else { "by" };
                lines.push(format!("    {word} {frame}"));
            }
        }
        lines.push(format!("in {}", self.allocation_in_full(finding.allocation)));
        let allocated = self.stack_of_allocation(finding.allocation);
        lines.extend(self.place_in_words(allocated).map(|place| format!("allocated at {place}")));
        lines.extend(self.why(finding));
        lines.extend(self.fix(finding).map(|fix| format!("fix: {fix}")));
        let edge = finding.proposed_edge;
        lines.extend(edge.and_then(|edge| self.place_of_edge(finding, &edge)));
        lines.push(format!("confidence {}", self.confidence(finding)));
        lines.push(plural(group.count, "occurrence", "occurrences"));
        lines
    }

    /// The words of the verdict line.
    pub(super) fn verdict_in_words(&self) -> String {
        let text = self.render_text(&crate::TextOptions { color: false, max_findings: Some(0) });
        text.lines().last().unwrap_or_default().to_owned()
    }
}
