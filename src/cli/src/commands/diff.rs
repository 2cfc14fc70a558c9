//! `streamsan diff`: what came and what went between two traces.

use super::gate::read_gate;
use super::output::{print, print_json};
use super::trace::Concluded;
use super::view::view_both;
use crate::error::Error;
use crate::options::{DiffOptions, GateOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use streamsan_model::{ExitCode, Fingerprint, Severity, Verdict};
use streamsan_names::{printable, printable_path};
use streamsan_report::{Group, Report, reason_in_words};
use streamsan_tui::state::{Change, Changes};

/// A finding of either trace.
struct Entry {
    title: String,
    /// Both accesses; none of a lint, whose title is its call.
    accesses: Vec<String>,
    class: &'static str,
    count: u64,
    fails: bool,
}

type Entries = BTreeMap<(Fingerprint, Severity), Entry>;
type Listed<'a> = (&'a (Fingerprint, Severity), &'a Entry);

/// `streamsan diff`.
///
/// # Errors
///
/// A trace or a suppression file that cannot be read or has a mistake in it.
pub(crate) fn diff(options: &DiffOptions) -> Result<ExitCode, Error> {
    let comparison = Comparison::of(options)?;
    match (options.view, options.json) {
        (true, _) => view_both([&options.before, &options.after], comparison.changes())?,
        (false, true) => print_json(&comparison.as_json()),
        (false, false) => print(&comparison.as_text(&options.after)),
    }
    Ok(comparison.exit_code())
}

/// The findings of two traces.
pub(super) struct Comparison {
    old: Entries,
    new: Entries,
    /// The verdict on the trace from after.
    verdict: Verdict,
    is_complete: bool,
}

impl Comparison {
    /// Judges both traces.
    ///
    /// # Errors
    ///
    /// As [`diff`].
    pub(super) fn of(options: &DiffOptions) -> Result<Self, Error> {
        let gate = read_gate(&GateOptions {
            suppressions: options.suppressions.clone(),
            ..GateOptions::default()
        })?;
        let [before, after] = [&options.before, &options.after];
        let before = Concluded::open(before, false)?;
        let after = Concluded::open(after, false)?;
        let [mut old, mut new] =
            [&before, &after].map(|trace| trace.report(options.threshold.fail_on));
        old.hold_against(&gate);
        new.hold_against(&gate);
        Ok(Self {
            old: entries(&old),
            new: entries(&new),
            verdict: new.verdict().clone(),
            is_complete: is_complete(&new),
        })
    }

    fn came(&self) -> Vec<Listed<'_>> {
        self.new.iter().filter(|(key, _)| !self.old.contains_key(key)).collect()
    }

    fn gone(&self) -> Vec<Listed<'_>> {
        self.old.iter().filter(|(key, _)| !self.new.contains_key(key)).collect()
    }

    fn kept(&self) -> Vec<Listed<'_>> {
        self.new.iter().filter(|(key, _)| self.old.contains_key(key)).collect()
    }

    /// What became of each finding, for the viewer.
    fn changes(&self) -> Changes {
        let all = [(self.came(), Change::New), (self.gone(), Change::Gone)];
        let all = all.into_iter().chain([(self.kept(), Change::Same)]);
        all.flat_map(|(entries, change)| entries.into_iter().map(move |(key, _)| (*key, change)))
            .filter(|((_, severity), _)| *severity != Severity::Lint)
            .collect()
    }

    fn exit_code(&self) -> ExitCode {
        if self.came().iter().any(|(_, entry)| entry.fails) {
            ExitCode::FINDINGS
        } else if !self.is_complete {
            // A race that was not seen may be a new one.
            ExitCode::INCOMPLETE
        } else {
            ExitCode::SUCCESS
        }
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        let list = |entries: &[Listed<'_>]| -> Vec<Value> {
            entries.iter().map(|(key, entry)| as_json(key, entry)).collect()
        };
        let kept = self.kept().into_iter().map(|(key, entry)| {
            let mut value = as_json(key, entry);
            value["count_before"] = json!(self.old[key].count);
            value
        });
        json!({
            "schema": 1,
            "new": list(&self.came()),
            "gone": list(&self.gone()),
            "kept": kept.collect::<Vec<_>>(),
            "complete": self.is_complete,
            "no_cuda": self.verdict == Verdict::NoCuda,
        })
    }

    /// For people; `after` is the file of the second trace.
    fn as_text(&self, after: &Path) -> String {
        let (came, gone, kept) = (self.came(), self.gone(), self.kept());
        let mut text = String::new();
        for (sign, entries) in [('+', &came), ('-', &gone)] {
            for ((id, _), entry) in entries {
                let Entry { title, accesses, class, count, fails } = entry;
                let level = if *fails { "error" } else { "warning" };
                let _ = writeln!(text, "{sign} {level}[{class}]: {title}, seen {count}x, id {id}");
                for (number, access) in accesses.iter().enumerate() {
                    let _ = writeln!(text, "    ({}) {access}", number + 1);
                }
            }
        }
        for (key, entry) in &kept {
            let count = self.old[*key].count;
            if count != entry.count {
                let (id, title) = (key.0, &entry.title);
                let _ = writeln!(text, "= {title}, seen {}x, was {count}x, id {id}", entry.count);
            }
        }
        if let (Verdict::Incomplete(reasons), true) = (&self.verdict, came.is_empty()) {
            for reason in reasons {
                let _ = writeln!(text, "incomplete: {}", reason_in_words(reason));
            }
        }
        if self.verdict == Verdict::NoCuda {
            let after = printable_path(after);
            let _ = writeln!(text, "no CUDA in {after}: {}", Verdict::NO_CUDA_MEANS);
        }
        let _ = writeln!(text, "{} new, {} gone, {} in both", came.len(), gone.len(), kept.len());
        text
    }
}

/// Whether everything was seen that was to be seen.
fn is_complete(report: &Report<'_>) -> bool {
    report.reasons().is_empty()
}

fn as_json((id, severity): &(Fingerprint, Severity), entry: &Entry) -> Value {
    json!({
        "id": id.to_string(),
        "severity": severity.description(),
        "class": entry.class,
        "title": entry.title,
        "count": entry.count,
        "fails": entry.fails,
    })
}

fn entries(report: &Report<'_>) -> Entries {
    let is_open = |group: &&Group| !group.disposition.is_accepted();
    let findings = report.groups().iter().filter(is_open).map(|group| {
        let finding = &group.finding;
        let entry = Entry {
            title: report.headline(group),
            accesses: report.accesses_in_words(group).into(),
            class: finding.class.description(),
            count: group.count,
            fails: group.fails,
        };
        ((finding.fingerprint, finding.severity), entry)
    });
    let lints = report.lints().iter().filter(|group| !group.disposition.is_accepted());
    let lints = lints.map(|group| {
        let entry = Entry {
            title: printable(&group.lint.api).into_owned(),
            accesses: Vec::new(),
            class: group.lint.class.description(),
            count: group.count,
            fails: group.fails,
        };
        ((group.lint.fingerprint, Severity::Lint), entry)
    });
    findings.chain(lints).collect()
}
