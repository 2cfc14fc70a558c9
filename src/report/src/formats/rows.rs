//! Findings as rows, for tables: a row for each mistake, lints among them.

use crate::{Disposition, Group, LintGroup, Report};
use streamsan_model::{
    AllocationId, ByteRange, Confidence, ConflictKind, FindingAccess, OpSeq, RaceClass, Severity,
    StackId, StreamId,
};

/// A mistake, with the occurrence that reports show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingRow {
    /// Its id, as reports print it.
    pub id: String,
    /// Race, latent or lint.
    pub severity: Severity,
    /// Its class.
    pub class: RaceClass,
    /// The kind of conflict; `None` of a lint.
    pub kind: Option<ConflictKind>,
    /// The confidence; `None` of a lint.
    pub confidence: Option<Confidence>,
    /// Whether it reaches the threshold and counts.
    pub fails: bool,
    /// Whether it counts, or why it does not.
    pub disposition: Disposition,
    /// Number of occurrences.
    pub count: u64,
    /// The operations of the first and the last occurrence.
    pub ops: [OpSeq; 2],
    /// The headline.
    pub title: String,
    /// The memory that both touch.
    pub memory: Option<MemoryOfRow>,
    /// The two calls; a lint has the second one only where it names another call.
    pub sides: [Option<SideOfRow>; 2],
    /// The call that orders a latent pair today.
    pub masked_by: Option<OpSeq>,
    /// The fix in a sentence.
    pub fix: Option<String>,
}

/// The memory of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOfRow {
    /// The allocation.
    pub allocation: AllocationId,
    /// Its name in backquotes, or its kind.
    pub name: String,
    /// The bytes that both touch.
    pub overlap: ByteRange,
}

/// A call of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideOfRow {
    /// The operation.
    pub op: OpSeq,
    /// Its stream; `None` for the host.
    pub stream: Option<StreamId>,
    /// Its entry point.
    pub api: String,
    /// The mangled name of its kernel.
    pub kernel: Option<String>,
    /// The words for mode and basis of the access.
    pub access: Option<[&'static str; 2]>,
    /// The line of the program that made the call.
    pub place: Option<crate::SourcePlace>,
    /// Its stack.
    pub stack: Option<StackId>,
}

impl Report<'_> {
    /// The reasons of an incomplete run: the stable id of each, and its words.
    pub fn reasons_in_words(&self) -> Vec<(&'static str, String)> {
        let reasons = self.reasons_by(ToString::to_string);
        reasons.map(|(reason, text)| (crate::json::reason_kind(reason), text)).collect()
    }

    /// Driver calls that were seen, and records that were lost; 0 where nobody has counted.
    pub fn calls_seen(&self) -> (u64, u64) {
        self.input.coverage.as_ref().map_or((0, 0), |coverage| (coverage.calls, coverage.dropped))
    }

    /// The findings, then the lints, each as a row.
    pub fn rows(&self) -> Vec<FindingRow> {
        let groups = self.groups.iter().map(|group| self.row(group));
        groups.chain(self.lints.iter().map(|group| self.row_of_lint(group))).collect()
    }

    fn row(&self, group: &Group) -> FindingRow {
        let finding = &group.finding;
        FindingRow {
            id: finding.fingerprint.to_string(),
            severity: finding.severity,
            class: finding.class,
            kind: Some(finding.kind),
            confidence: Some(finding.confidence),
            fails: group.fails,
            disposition: group.disposition.clone(),
            count: group.count,
            ops: [group.first, group.last],
            title: self.title(group),
            memory: Some(MemoryOfRow {
                allocation: finding.allocation,
                name: self.memory(finding.allocation),
                overlap: finding.overlap,
            }),
            sides: [&finding.first, &finding.second].map(|side| Some(self.side_of_row(side))),
            masked_by: finding.masked_by,
            fix: self.fix(finding).map(|fix| fix.sentence),
        }
    }

    fn side_of_row(&self, side: &FindingAccess) -> SideOfRow {
        SideOfRow {
            op: side.op,
            stream: side.stream,
            api: side.api.clone(),
            kernel: side.kernel.clone(),
            access: Some([side.access.mode.description(), side.access.basis.description()]),
            place: self.source_place(side.stack),
            stack: side.stack,
        }
    }

    fn row_of_lint(&self, group: &LintGroup) -> FindingRow {
        let lint = &group.lint;
        let call = |op, stream, api: &str, stack| SideOfRow {
            op,
            stream,
            api: api.to_owned(),
            kernel: None,
            access: None,
            place: self.source_place(stack),
            stack,
        };
        let related = lint.related.map(|op| {
            let other = self.operations.get(&op);
            let stream = other.and_then(|other| other.action.stream());
            call(op, stream, other.map_or("", |other| &other.api), lint.related_stack)
        });
        FindingRow {
            id: lint.fingerprint.to_string(),
            severity: Severity::Lint,
            class: lint.class,
            kind: None,
            confidence: None,
            fails: group.fails,
            disposition: group.disposition.clone(),
            count: group.count,
            ops: [lint.op, lint.op],
            title: crate::explain::lint(lint.class).to_owned(),
            memory: None,
            sides: [Some(call(lint.op, lint.stream, &lint.api, lint.stack)), related],
            masked_by: None,
            fix: None,
        }
    }
}
