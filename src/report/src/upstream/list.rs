//! The list and its syntax.

use super::UpstreamEntry;
use super::entry::Fields;
use crate::GateError;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use streamsan_model::{Entities, Finding};

/// The shipped list.
const SHIPPED: &str = include_str!("../../known-upstream.txt");

/// Races known in libraries.
#[derive(Clone, Debug, Default)]
pub struct KnownUpstream {
    entries: Vec<UpstreamEntry>,
}

impl KnownUpstream {
    /// The list that is shipped.
    ///
    /// # Panics
    /// When the shipped list is no list, which a test rules out.
    pub fn shipped() -> &'static Self {
        static LIST: OnceLock<KnownUpstream> = OnceLock::new();
        LIST.get_or_init(|| Self::parse(SHIPPED).expect("a test reads the shipped list"))
    }

    /// The shipped list as it is written.
    pub const fn shipped_text() -> &'static str {
        SHIPPED
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The first line that does not belong there, or the first line of an entry that lacks a field.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let mut entries = Vec::new();
        let mut names = BTreeSet::new();
        let mut open: Option<Fields> = None;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let goes_on = line.starts_with(char::is_whitespace);
            let name = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            if let Some(name) = name.filter(|_| !goes_on) {
                if !names.insert(name.to_owned()) {
                    return Err(GateError::new(number, format!("there are two entries '{name}'")));
                }
                if let Some(fields) = open.replace(Fields::new(name, number)) {
                    entries.push(fields.entry()?);
                }
                continue;
            }
            let fields = open.as_mut().ok_or_else(|| {
                GateError::new(number, "expected the name of an entry: [name]".to_owned())
            })?;
            if goes_on {
                fields.go_on(number, trimmed)?;
            } else {
                fields.begin(number, trimmed)?;
            }
        }
        if let Some(fields) = open {
            entries.push(fields.entry()?);
        }
        Ok(Self { entries })
    }

    /// Its entries, in the order of the file.
    pub fn entries(&self) -> &[UpstreamEntry] {
        &self.entries
    }

    /// The first entry that knows a pair.
    pub fn entry_of(&self, finding: &Finding, entities: &Entities) -> Option<&UpstreamEntry> {
        // A pair with a side that has no stack belongs to no library.
        finding.first.stack.and(finding.second.stack)?;
        self.entries.iter().find(|entry| entry.knows(finding, entities))
    }
}
