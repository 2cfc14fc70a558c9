//! The text form. What it says of a finding is in `full`.

mod concise;
mod full;
mod quote;
mod statistics;
mod style;
mod verdict;
mod wrap;

use crate::marked::tests_in_words;
use crate::names::{op, plural, seen, size};
use crate::{Disposition, Group, LintGroup, Report, SourceLine, explain};
pub(crate) use full::{FRAMES, Printing, details, first_touch, memory, occurrences};
pub(crate) use quote::Quote;
pub(crate) use statistics::{Row, tables};
use std::collections::BTreeMap;
use std::fmt::Write;
use streamsan_model::{Confidence, Finding, FindingAccess, RaceClass, Severity};
use streamsan_names::{printable, printable_line};
pub(crate) use style::{Color, Style};
use wrap::{GLUE, columns, wrapped};

/// How much the text form says of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Both accesses, why nothing orders them, and the fix.
    #[default]
    Full,
    /// One line.
    Concise,
    /// Nothing: findings are only counted, by class, allocation and pair of call sites.
    Counted,
}

/// How the text form is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether to use ANSI colours. `NO_COLOR` and the terminal are the caller's to ask.
    pub color: bool,
    /// Columns of the terminal; `None` where there is none, for lines of a fixed width.
    pub columns: Option<usize>,
    /// How much is said of each finding.
    pub detail: Detail,
    /// Number of folded findings of each kind (errors, warnings) that are printed in full, and of
    /// rows of each table of [`Detail::Counted`]; `None` for all.
    pub max_findings: Option<usize>,
    /// Whether lints inside libraries are listed, not only counted. Those that fail the build are
    /// always listed.
    pub list_library_lints: bool,
    /// Whether races known in libraries are listed, not only counted.
    pub list_known_upstream: bool,
}

pub(crate) fn render(
    report: &Report<'_>,
    options: &TextOptions,
    sources: &mut SourceLine<'_>,
) -> String {
    let style = Style { color: options.color };
    let mut text = String::new();
    match options.detail {
        Detail::Full => in_order(report, options, sources, &mut text),
        Detail::Concise => concise::render(report, style, &mut text),
        Detail::Counted => {
            statistics::render(report, options.max_findings.unwrap_or(usize::MAX), &mut text);
        }
    }
    verdict::render(report, style, &mut text);
    text
}

/// Findings that fail in full, then the others in lines.
fn in_order(
    report: &Report<'_>,
    options: &TextOptions,
    sources: &mut SourceLine<'_>,
    text: &mut String,
) {
    let style = Style { color: options.color };
    let limit = options.max_findings.unwrap_or(usize::MAX);
    let (counted, settled): (Vec<&Group>, Vec<&Group>) =
        report.groups.iter().partition(|group| group.disposition == Disposition::Open);
    let (errors, warnings): (Vec<&Group>, Vec<&Group>) =
        counted.into_iter().partition(|group| group.fails);
    for (position, group) in errors.iter().enumerate().take(limit) {
        let same = |other: &&&Group| other.finding.severity == group.finding.severity;
        let number = errors[..=position].iter().filter(same).count();
        let total = errors.iter().filter(same).count();
        Printing::new(options, sources).finding(report, group, Some((number, total)), text);
        text.push('\n');
    }
    let mut is_cut = note_rest(errors.len(), limit, text);
    warn(report, options, &warnings[..warnings.len().min(limit)], text);
    is_cut |= note_rest(warnings.len(), limit, text);
    is_cut |= lints(report, style, options, text);
    is_cut |= settle(report, &settled, options, text);
    if is_cut && limit > 0 {
        tell_how_to_see_the_rest(report, text);
    }
}

/// A finding in full, whether it reaches the threshold or not, with all that is known of it.
pub(crate) fn in_full(
    report: &Report<'_>,
    group: &Group,
    position: Option<(usize, usize)>,
    options: &TextOptions,
    sources: &mut SourceLine<'_>,
) -> String {
    let mut text = String::new();
    let mut printing = Printing::new(options, sources);
    printing.in_detail = true;
    printing.finding(report, group, position, &mut text);
    text
}

/// Lints: a headline for each class, a line for each call. Those inside libraries are one line.
/// Answers whether some were left out.
fn lints(report: &Report<'_>, style: Style, options: &TextOptions, text: &mut String) -> bool {
    let limit = options.max_findings.unwrap_or(usize::MAX);
    let columns = columns(options.columns);
    let mut classes: BTreeMap<RaceClass, Vec<&LintGroup>> = BTreeMap::new();
    let open = || {
        report.lints.iter().filter(|group| {
            group.disposition == Disposition::Open
                && (options.list_library_lints || !group.is_only_counted())
        })
    };
    for group in open().take(limit) {
        classes.entry(group.lint.class).or_default().push(group);
    }
    for (class, groups) in classes {
        let fails = groups.iter().any(|group| group.fails);
        let (word, color) =
            if fails { ("error", Color::Error) } else { ("warning", Color::Warning) };
        let title = style.paint(color, &format!("{word}[{}]", class.description()));
        let plain = format!("{word}[{}]: ", class.description());
        let words = wrapped(&plain, 2, explain::lint(class), columns);
        let _ = write!(text, "{title}: {}", words.strip_prefix(&plain).unwrap_or_default());
        for group in groups {
            let lint = &group.lint;
            let whole = report;
            let report = report.part_of_lint(group);
            let mut line = match report.call_without_place(lint.op) {
                Some(call) => format!("{call} at {}", op(lint.op)),
                None => format!("{} at {}", report.called(&lint.api, lint.stack), op(lint.op)),
            };
            if let Some(related) = lint.related {
                let _ = write!(line, ", {}", report.call(related));
            }
            let line = format!("{line}, {}, id{GLUE}{}", seen(group.count), lint.fingerprint);
            *text += &wrapped("  ", 6, &line, columns);
            let inside =
                group.library.as_ref().map(|library| format!("inside {}", printable(library)));
            let place = report.place_in_words(lint.stack).map(|place| format!("at {place}"));
            let place: Vec<String> = place.into_iter().chain(inside).collect();
            if !place.is_empty() {
                *text += &wrapped("    ", 6, &place.join(", "), columns);
            }
            if let Some(traces) = whole.in_traces(&group.traces) {
                *text += &wrapped("    ", 6, &traces, columns);
            }
            if let Some(tests) = tests_in_words(&group.tests) {
                *text += &wrapped("    ", 6, &format!("test {tests}"), columns);
            }
        }
        text.push('\n');
    }
    let is_cut = note_rest(open().count(), limit, text);
    if let Some(counted) = report.library_lints_in_words()
        && !options.list_library_lints
    {
        let _ = writeln!(text, "note: {counted}; --list-library-lints lists them\n");
    }
    is_cut
}

/// How many findings are left out.
fn note_rest(total: usize, limit: usize, text: &mut String) -> bool {
    let is_cut = total > limit;
    if is_cut {
        let rest = plural((total - limit) as u64, "more finding", "more findings");
        let _ = writeln!(text, "... and {rest}\n");
    }
    is_cut
}

/// The commands that show what is left out.
fn tell_how_to_see_the_rest(report: &Report<'_>, text: &mut String) {
    let trace = report.input.trace.as_deref().map_or_else(|| "TRACE".to_owned(), in_shell);
    for (option, what) in [
        ("--max-findings 0", "prints all"),
        ("--format concise", "prints all in a line each"),
        ("--statistics", "counts them"),
    ] {
        let _ = writeln!(text, "streamsan check {trace} {option:<17} {what}");
    }
    text.push('\n');
}

/// A file's name as a shell takes it.
fn in_shell(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => printable(&format!("'{}'", name.replace('\'', "'\\''"))).into_owned(),
    }
}

/// `write-after-read race on 4.0 KiB of `kv_cache``.
pub(crate) fn headline(report: &Report<'_>, finding: &Finding) -> String {
    if finding.severity == Severity::Lint {
        return explain::lint(finding.class).to_owned();
    }
    let latent = if finding.severity == Severity::Latent { "latent " } else { "" };
    format!(
        "{latent}{} race on {} of {}",
        finding.kind.long_description(),
        size(finding.overlap.len()),
        report.memory(finding.allocation)
    )
}

/// Findings below the threshold: a headline for each class, a line for each finding.
fn warn(report: &Report<'_>, options: &TextOptions, groups: &[&Group], text: &mut String) {
    let style = Style { color: options.color };
    let mut classes: BTreeMap<(Severity, RaceClass, Confidence), Vec<&Group>> = BTreeMap::new();
    for &group in groups {
        let finding = &group.finding;
        classes
            .entry((finding.severity, finding.class, finding.confidence))
            .or_default()
            .push(group);
    }
    for ((severity, class, confidence), groups) in classes {
        let what = match severity {
            Severity::Race => format!("{} race", confidence.description()),
            Severity::Latent => "latent race".to_owned(),
            Severity::Lint => "lint".to_owned(),
        };
        let count = plural(groups.len() as u64, &what, &format!("{what}s"));
        let _ = writeln!(
            text,
            "{}: {count} below the threshold",
            style.paint(Color::Warning, &format!("warning[{}]", class.description()))
        );
        for group in groups {
            *text += &wrapped("  ", 6, &short(report, group), columns(options.columns));
        }
        text.push('\n');
    }
}

/// Findings that a suppression accepts or the baseline knows: a line each. Those that are known
/// upstream are one line.
fn settle(
    report: &Report<'_>,
    groups: &[&Group],
    options: &TextOptions,
    text: &mut String,
) -> bool {
    let limit = options.max_findings.unwrap_or(usize::MAX);
    let why = |disposition: &Disposition| match disposition {
        Disposition::Suppressed { line, reason } => {
            format!(" (line {line}: {})", printable_line(reason))
        }
        Disposition::Upstream(upstream) => format!("\n  {}", upstream.description()),
        Disposition::Known | Disposition::Open | Disposition::Allowed => String::new(),
    };
    let is_listed =
        |group: &&&Group| options.list_known_upstream || group.disposition.upstream().is_none();
    let findings = groups.iter().filter(is_listed);
    let findings = findings.map(|group| (&group.disposition, short(report, group)));
    let lints = report.lints.iter().filter(|group| group.disposition != Disposition::Open);
    let lints = lints.map(|group| {
        let lint = &group.lint;
        let called = report.part_of_lint(group).called(&lint.api, lint.stack);
        let call = format!("{called} at {}, id{GLUE}{}", op(lint.op), lint.fingerprint);
        (&group.disposition, call)
    });
    let all: Vec<_> = findings.chain(lints).collect();
    for (disposition, what) in all.iter().take(limit) {
        let line = format!("{what}{}", why(disposition));
        let head = format!("{}: ", disposition.description());
        let mut parts = line.split('\n');
        *text += &wrapped(&head, 4, parts.next().unwrap_or_default(), columns(options.columns));
        for more in parts {
            *text += &wrapped("  ", 4, more.trim_start(), columns(options.columns));
        }
    }
    let is_cut = note_rest(all.len(), limit, text);
    let counted = report.upstream_in_words().filter(|_| !options.list_known_upstream);
    if let Some(counted) = &counted {
        let _ = writeln!(text, "known upstream: {counted}; --list-known-upstream lists them");
    }
    for unused in report.unused() {
        let _ = writeln!(text, "unused: {}", unused.description());
    }
    if !all.is_empty() || counted.is_some() || !report.unused().is_empty() {
        text.push('\n');
    }
    is_cut
}

fn short(report: &Report<'_>, group: &Group) -> String {
    let (whole, report) = (report, report.part_of(group));
    let finding = &group.finding;
    let side = |access: &FindingAccess| {
        let place = match access.stream {
            _ if finding.class == RaceClass::GraphUnordered => "in a graph".to_owned(),
            Some(stream) => format!("on {}", report.the_stream(stream)),
            None => "by the host".to_owned(),
        };
        format!(
            "{} {} {place} at {}",
            access.access.mode.weak().description().to_uppercase(),
            report.what(access),
            op(access.op)
        )
    };
    let headline = match finding.severity {
        Severity::Lint => explain::lint(finding.class).to_owned(),
        _ => format!(
            "{} on {} of {}",
            finding.kind.long_description(),
            size(finding.overlap.len()),
            report.memory(finding.allocation)
        ),
    };
    let masked = match finding.masked_by {
        Some(g) if g == finding.first.op && finding.class == RaceClass::PageableCopyTail => {
            ", only today's driver finishes the former call before it returns".to_owned()
        }
        Some(g) if g == finding.first.op => {
            ", ordered today only by the former call itself".to_owned()
        }
        Some(g) => format!(", ordered today by {}", report.masking(g)),
        None => String::new(),
    };
    let traces = whole.in_traces(&group.traces).map_or(String::new(), |t| format!(", {t}"));
    let tests = tests_in_words(&group.tests).map_or(String::new(), |t| format!(", test {t}"));
    let amounts = group.spread.amounts().filter(|_| group.traces.is_empty());
    let amounts = amounts.map_or(String::new(), |amounts| format!(" {amounts}"));
    format!(
        "{headline}: {} / {}{masked}, {}{amounts}, id{GLUE}{}{traces}{tests}",
        side(&finding.first),
        side(&finding.second),
        seen(group.count),
        finding.fingerprint
    )
}
