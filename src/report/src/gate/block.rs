//! The suppression that would accept a finding, ready to be put into a file.

use super::lex::quoted;
use crate::{Group, LintGroup, Report, names};
use std::fmt::Write;
use streamsan_model::{AllocationId, FindingAccess, StackId, StreamId};

impl Report<'_> {
    /// A suppression for a finding, as narrow as what is the same in every run allows. The reason
    /// is left to the reader: the block is refused until it has one.
    pub fn suppression_of(&self, group: &Group) -> String {
        let finding = &group.finding;
        let mut text =
            format!("# {}: {}\n", finding.fingerprint, crate::text::headline(self, finding));
        for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            let what = names::what(side);
            if side.kernel.as_deref().is_some_and(|mangled| mangled != what) {
                let _ = writeln!(text, "# {number} is {what}");
            }
        }
        let _ = writeln!(
            text,
            "{}[{}]: {} & {}{} reason=\"\"",
            finding.severity.description(),
            finding.class.description(),
            self.side_clauses(&finding.first),
            self.side_clauses(&finding.second),
            self.memory_clauses(finding.allocation)
        );
        text
    }

    /// The same for a lint.
    pub fn suppression_of_lint(&self, group: &LintGroup) -> String {
        let lint = &group.lint;
        format!(
            "# {}\nlint[{}]: api:{}{}{} reason=\"\"\n",
            lint.fingerprint,
            lint.class.description(),
            quoted(&lint.api),
            self.stream_clause(lint.stream),
            self.stack_clauses(lint.stack)
        )
    }

    fn side_clauses(&self, side: &FindingAccess) -> String {
        let what = match &side.kernel {
            Some(kernel) => format!("kernel:{}", quoted(kernel)),
            None => format!("api:{}", quoted(&side.api)),
        };
        format!(
            "{what} mode:{}{}{}",
            side.access.mode.description(),
            self.stream_clause(side.stream),
            self.stack_clauses(side.stack)
        )
    }

    /// Numbers of streams differ from run to run; their names do not.
    fn stream_clause(&self, stream: Option<StreamId>) -> String {
        let Some(id) = stream else { return " stream:host".to_owned() };
        let name = self.input.entities.stream(id).and_then(|stream| stream.name.as_ref());
        name.map_or(String::new(), |name| format!(" stream:{}", quoted(name)))
    }

    /// The call's own function and the name of its file, wherever that lies.
    fn stack_clauses(&self, id: Option<StackId>) -> String {
        let stack = self.stack(id);
        let Some(frame) = stack.as_ref().and_then(|stack| stack.place()) else {
            return String::new();
        };
        let mut text = String::new();
        if let Some(function) = frame.function() {
            let _ = write!(text, " fun:{}", quoted(function));
        }
        if let Some(name) = frame.file().and_then(|file| file.rsplit('/').next()) {
            let _ = write!(text, " src:{}", quoted(&format!("*{name}")));
        }
        text
    }

    fn memory_clauses(&self, allocation: AllocationId) -> String {
        let Some(allocation) = self.allocation(allocation) else { return String::new() };
        let mut text = String::new();
        if let Some(name) = &allocation.name {
            let _ = write!(text, " memory:{}", quoted(name));
        }
        if !allocation.api.is_empty() {
            let _ = write!(text, " allocated-by:{}", quoted(&allocation.api));
        }
        text
    }
}
