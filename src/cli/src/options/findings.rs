//! Options of the commands that look at findings.

use super::arguments::words;
use super::{ReportFormat, ThresholdOption};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use streamsan_report::{Detail, TextOptions};

/// The lists that findings are held against, and how many findings are printed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GateOptions {
    /// Findings that are accepted, with a reason each
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Option<PathBuf>,
    /// Fail when a suppression matches nothing or has expired, too
    #[arg(long, requires = "suppressions")]
    pub(crate) strict_suppressions: bool,
    /// Findings that were there before: only others fail
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write what is found now into the file of --baseline
    #[arg(long, requires = "baseline")]
    pub(crate) update_baseline: bool,
    /// Count races that are known in libraries like any other; `streamsan known-upstream` prints
    /// which these are
    #[arg(long)]
    pub(crate) no_known_upstream: bool,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextForm {
    /// With both accesses, why nothing orders them, and a fix.
    #[default]
    Full,
    /// In a line each.
    Concise,
}

/// Which findings are printed, and with which lines of sources.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listed {
    /// How findings are printed: full, or concise for a line each
    #[arg(long, value_enum, value_name = "FORM", default_value_t, hide_possible_values = true)]
    pub(crate) format: TextForm,
    /// Print how many findings there are by class, allocation and pair of call sites instead
    #[arg(long)]
    pub(crate) statistics: bool,
    /// Print at most this many findings of each kind in full; 0 prints all, and files always get all
    #[arg(long, value_name = "N", default_value_t = Listed::default().max_findings)]
    max_findings: usize,
    /// List the lints whose calls all lie inside libraries too, which are only counted otherwise
    #[arg(long)]
    list_library_lints: bool,
    /// List the races that are known in libraries and not the program's to mend, too
    #[arg(long)]
    list_known_upstream: bool,
    /// Print lines of source files below this directory; may be given several times. Without it,
    /// those below the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) source_root: Vec<PathBuf>,
}

impl Default for Listed {
    fn default() -> Self {
        Self {
            format: TextForm::Full,
            statistics: false,
            max_findings: 10,
            list_library_lints: false,
            list_known_upstream: false,
            source_root: Vec::new(),
        }
    }
}

impl Listed {
    /// Whether anything was asked for that only text can say.
    pub(crate) fn is_of_text(&self) -> bool {
        self.statistics || self.format != TextForm::Full
    }

    /// The parts that the text form prints.
    pub(crate) fn text(&self, color: bool, columns: Option<usize>) -> TextOptions {
        TextOptions {
            color,
            columns,
            detail: match (self.statistics, self.format) {
                (true, _) => Detail::Counted,
                (false, TextForm::Concise) => Detail::Concise,
                (false, TextForm::Full) => Detail::Full,
            },
            max_findings: Some(self.max_findings).filter(|&limit| limit > 0),
            list_library_lints: self.list_library_lints,
            list_known_upstream: self.list_known_upstream,
        }
    }
}

/// What a trace is exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    /// A form of the report.
    Report(ReportFormat),
    /// Tables in Parquet files.
    Parquet,
}

impl ExportFormat {
    const PARQUET: &'static str = "parquet";

    fn words() -> impl Iterator<Item = &'static str> {
        let reports = ReportFormat::ALL.iter().map(|format| format.description());
        reports.chain([Self::PARQUET])
    }
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::PARQUET { Ok(Self::Parquet) } else { text.parse().map(Self::Report) }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "The form goes to standard output.\n\nExit code:\n  \
    0  written, whatever was found\n  \
    2  usage or syntax error\n  \
    5  a trace cannot be read or is too new; the tables of the others are written")]
pub(crate) struct ExportOptions {
    /// The trace; with --format parquet several traces, or directories of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// text, json, sarif, junit, html, github, github-summary, codequality, perfetto or dot; or
    /// parquet, tables for engines that ask across many traces
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = words(ExportFormat::words()).try_map(|word| word.parse::<ExportFormat>()),
        hide_possible_values = true
    )]
    pub(crate) format: ExportFormat,
    /// Write into a file instead; tables go into this directory
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,
    /// parquet: traces that are read at the same time; all processors that may be used, unless given
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// text and html: quote lines of source files below this directory; may be given several times.
    /// Without it, those below the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) source_root: Vec<PathBuf>,
    /// Analyse the trace once more for each finding, to see whether the proposed edge removes it
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Findings are compared by their ids, which are the same in every run of a \
    program.\n\nExit code:\n  \
    0  nothing new in B\n  \
    1  a finding of B at or above --fail-on is not in A\n  \
    2  usage or syntax error\n  \
    3  nothing new, but not everything was seen in B\n  \
    5  a trace cannot be read or is too new")]
pub(crate) struct DiffOptions {
    /// The trace from before
    #[arg(value_name = "A")]
    pub(crate) before: PathBuf,
    /// The trace from after
    #[arg(value_name = "B")]
    pub(crate) after: PathBuf,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    /// Findings that are accepted, with a reason each; they are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Show both traces beside each other in the viewer instead, with what is new, gone and the same
    #[arg(long, conflicts_with = "json")]
    pub(crate) view: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Put what is printed into the file of --suppressions, and say why in \
    reason=\"...\".\n\nExit code:\n  \
    0  printed\n  \
    2  there is no such finding\n  \
    5  the trace cannot be read or is too new")]
pub(crate) struct SuppressOptions {
    /// The trace
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Ids of findings as reports print them, their beginnings, or numbers of races; all that fail
    /// when none is named
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code:\n  \
    0  explained\n  \
    2  there is no such finding or class\n  \
    5  the trace cannot be read or is too new")]
pub(crate) struct ExplainOptions {
    /// The trace; or the class of a finding (missing-wait, use-after-free, ...), of which the page is
    /// printed. A file of that name, where there is one, is taken for a trace
    #[arg(value_name = "FILE|CLASS")]
    pub(crate) file: PathBuf,
    /// Id of a finding as reports print it, its beginning, or the number of a race; all that fail
    /// when none is named
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print lines of source files below this directory; may be given several times. Without it,
    /// those below the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) source_root: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    /// As for `streamsan check`
    #[arg(long)]
    pub(crate) strict_host_threads: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code:\n  \
    0  told\n  \
    3  not everything was seen, so nothing can be said\n  \
    5  the trace cannot be read or is too new")]
pub(crate) struct AdviseOptions {
    /// The trace
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
