//! Baselines: the findings of an earlier run, by fingerprint.
//!
//! A baseline is a text file with one finding a line, sorted, so that a version control system
//! shows which findings came and went. Only the first two words of a line count; the rest describes
//! the finding to a reader.

use super::GateError;
use super::lex::words;
use crate::Report;
use std::collections::BTreeMap;
use std::fmt::Write;
use streamsan_model::{Fingerprint, Severity};

const HEAD: &str = "# streamsan baseline, version 1";

/// The findings that are known already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// By the printed part of the fingerprint; the line as it stands in the file.
    pub(super) known: BTreeMap<(u64, Severity), String>,
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is none of a baseline.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let mut lines = text.lines();
        if lines.next().map(str::trim_end) != Some(HEAD) {
            let message = format!("this is no baseline; one begins with '{HEAD}'");
            return Err(GateError::new(1, message));
        }
        let mut known = BTreeMap::new();
        for (index, line) in lines.enumerate() {
            let number = index + 2;
            let words = words(line, number)?;
            let Some(id) = words.first() else { continue };
            let id = Fingerprint::parse(&id.text)
                .ok_or_else(|| GateError::new(number, format!("'{}' is no id", id.text)))?;
            let severity = words.get(1).and_then(|word| word.text.parse().ok());
            let severity = severity.ok_or_else(|| {
                GateError::new(number, "the second word is race, latent or lint".to_owned())
            })?;
            known.insert((id, severity), line.trim().to_owned());
        }
        Ok(Self { known })
    }

    /// Everything in a report that is neither suppressed nor known upstream.
    pub fn of(report: &Report<'_>) -> Self {
        let mut known = BTreeMap::new();
        for group in report.groups.iter().filter(|g| !g.disposition.is_accepted()) {
            let finding = &group.finding;
            let side = |access: &streamsan_model::FindingAccess| {
                let name = access.kernel.as_deref().unwrap_or(&access.api);
                format!("{} {}", access.access.mode.weak().description(), super::lex::quoted(name))
            };
            let line = format!(
                "{} {} {} {} {} / {}",
                finding.fingerprint,
                finding.severity.description(),
                finding.class.description(),
                finding.kind.description(),
                side(&finding.first),
                side(&finding.second)
            );
            known.insert((finding.fingerprint.short(), finding.severity), line);
        }
        for group in report.lints.iter().filter(|g| !g.disposition.is_accepted()) {
            let lint = &group.lint;
            let (severity, class) = (Severity::Lint, lint.class.description());
            let word = severity.description();
            let api = super::lex::quoted(&lint.api);
            let line = format!("{} {word} {class} {api}", lint.fingerprint);
            known.insert((lint.fingerprint.short(), severity), line);
        }
        Self { known }
    }

    /// The file.
    pub fn render(&self) -> String {
        let mut lines: Vec<&String> = self.known.values().collect();
        lines.sort();
        let mut text = format!("{HEAD}\n");
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Whether a finding is in it.
    pub(super) fn knows(&self, fingerprint: Fingerprint, severity: Severity) -> bool {
        self.known.contains_key(&(fingerprint.short(), severity))
    }
}
