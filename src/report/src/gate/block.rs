//! The suppression that would accept a finding, ready to be put into a file.

use super::lex::{in_one_line, quoted};
use crate::spread::Spread;
use crate::{Group, LintGroup, Report};
use std::fmt::Write;
use streamsan_model::{Allocation, FindingAccess, StackId, StreamId};

impl Report<'_> {
    /// A suppression for a finding, as narrow as the properties allow that are the same in every
    /// run. The reason is left to the reader: the block is refused until it has one.
    pub fn suppression_of(&self, group: &Group) -> String {
        let finding = &group.finding;
        let headline = crate::text::headline(self, finding);
        let mut text = format!("# {}: {}\n", finding.fingerprint, in_one_line(&headline));
        for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            let what = self.what(side);
            if side.kernel.as_deref().is_some_and(|mangled| mangled != what) {
                let _ = writeln!(text, "# {number} is {}", in_one_line(&what));
            }
        }
        // All occurrences are to be accepted.
        let streams = |side: usize| match group.spread.truncated {
            [true, _] => Vec::new(),
            _ => group.spread.pairs.keys().map(|pair| pair[side]).collect(),
        };
        let _ = writeln!(
            text,
            "{}[{}]: {} & {}{} reason=\"\"",
            finding.severity.description(),
            finding.class.description(),
            self.side_clauses(&finding.first, streams(0)),
            self.side_clauses(&finding.second, streams(1)),
            self.memory_clauses(&group.spread)
        );
        text
    }

    /// A suppression for a lint.
    pub fn suppression_of_lint(&self, group: &LintGroup) -> String {
        let lint = &group.lint;
        format!(
            "# {}\nlint[{}]: {}{}{} reason=\"\"\n",
            lint.fingerprint,
            lint.class.description(),
            clause("api", &lint.api),
            self.stream_clause(&[lint.stream]),
            self.stack_clauses(lint.stack)
        )
    }

    fn side_clauses(&self, side: &FindingAccess, streams: Vec<Option<StreamId>>) -> String {
        let what = match &side.kernel {
            Some(kernel) => clause("kernel", kernel),
            None => clause("api", &side.api),
        };
        format!(
            "{what} mode:{}{}{}",
            side.access.mode.weak().description(),
            self.stream_clause(&streams),
            self.stack_clauses(side.stack)
        )
    }

    /// Numbers of streams differ from run to run; their names do not. Nothing for streams of several
    /// names.
    fn stream_clause(&self, streams: &[Option<StreamId>]) -> String {
        let clause = |stream: &Option<StreamId>| {
            let Some(id) = *stream else { return " stream:host".to_owned() };
            let name = self.input.entities.stream(id).and_then(|stream| stream.name.as_ref());
            name.map_or(String::new(), |name| more("stream", name))
        };
        the_same(streams.iter().map(clause))
    }

    /// The call's own function and the name of its file, wherever that lies.
    fn stack_clauses(&self, id: Option<StackId>) -> String {
        let stack = self.stack(id);
        let Some(frame) = stack.as_ref().and_then(|stack| stack.place()) else {
            return String::new();
        };
        let mut text = String::new();
        if let Some(function) = frame.function() {
            text.push_str(&more("fun", function));
        }
        if let Some(name) = frame.file().and_then(|file| file.rsplit('/').next()) {
            let _ = write!(text, " src:{}", quoted(&format!("*{name}")));
        }
        text
    }

    fn memory_clauses(&self, spread: &Spread) -> String {
        let all = || spread.allocations.iter().filter_map(|&id| self.allocation(id));
        let name = |allocation: &Allocation| {
            allocation.name.as_ref().map_or(String::new(), |name| more("memory", name))
        };
        let api = |allocation: &Allocation| more("allocated-by", &allocation.api);
        let names = if spread.truncated[1] { String::new() } else { the_same(all().map(name)) };
        names + &the_same(all().map(api))
    }
}

/// The clause for an access; matches anything where the access has no name.
fn clause(key: &str, name: &str) -> String {
    if name.is_empty() { format!("{key}:*") } else { format!("{key}:{}", quoted(name)) }
}

/// A further clause; empty where there is no name, since a pattern is never empty.
fn more(key: &str, name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {key}:{}", quoted(name)) }
}

/// The common clause, if all clauses are equal.
fn the_same(mut clauses: impl Iterator<Item = String>) -> String {
    let first = clauses.next().unwrap_or_default();
    if clauses.all(|clause| clause == first) { first } else { String::new() }
}
