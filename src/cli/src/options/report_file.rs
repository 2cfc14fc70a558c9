//! `--report FORMAT=FILE` and `--format FORMAT`.

use std::path::PathBuf;
use std::str::FromStr;

/// A form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For code scanning.
    Sarif,
    /// For test reports.
    Junit,
    /// One page for a browser.
    Html,
    /// Annotations of GitHub Actions.
    Github,
    /// The summary of a step of GitHub Actions.
    GithubSummary,
    /// The code quality of GitLab.
    CodeQuality,
    /// The whole trace, for ui.perfetto.dev.
    Perfetto,
    /// The operations around the races, for Graphviz.
    Dot,
}

impl ReportFormat {
    /// All forms.
    pub(crate) const ALL: [Self; 10] = [
        Self::Text,
        Self::Json,
        Self::Sarif,
        Self::Junit,
        Self::Html,
        Self::Github,
        Self::GithubSummary,
        Self::CodeQuality,
        Self::Perfetto,
        Self::Dot,
    ];

    /// The word on the command line.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
            Self::Html => "html",
            Self::Github => "github",
            Self::GithubSummary => "github-summary",
            Self::CodeQuality => "codequality",
            Self::Perfetto => "perfetto",
            Self::Dot => "dot",
        }
    }

    /// Whether it shows more of a trace than its findings, and so one trace only.
    pub(crate) const fn shows_the_whole_trace(self) -> bool {
        matches!(self, Self::Html | Self::Perfetto | Self::Dot)
    }

    /// Whether it is added to what a file holds: other commands of a step have their part of it.
    pub(crate) const fn is_appended(self) -> bool {
        matches!(self, Self::GithubSummary)
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.description() == text).ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|format| format.description()).collect();
            format!("a format is one of {}", words.join(", "))
        })
    }
}

/// A report to write into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportFile {
    /// Its form.
    pub(crate) format: ReportFormat,
    /// Where it goes; `-` is the stream on which the command itself speaks.
    pub(crate) path: PathBuf,
}

impl ReportFile {
    /// Whether it goes to the terminal or wherever that is redirected.
    pub(crate) fn is_stream(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .ok_or_else(|| "a report is FORMAT=FILE, json=report.json for example".to_owned())?;
        let format = format.parse()?;
        if path.is_empty() {
            return Err("the name of the file is missing after '='".to_owned());
        }
        Ok(Self { format, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::{ReportFile, ReportFormat};

    #[test]
    fn the_first_equals_sign_ends_the_format() {
        let report: ReportFile = "json=a=b".parse().expect("a report");
        assert_eq!(report, ReportFile { format: ReportFormat::Json, path: "a=b".into() });
    }

    #[test]
    fn every_format_reads_back() {
        for format in ReportFormat::ALL {
            assert_eq!(format.description().parse(), Ok(format));
        }
    }

    #[test]
    fn unknown_formats_and_missing_files_are_refused() {
        for text in ["yaml=x", "text", "text="] {
            assert!(text.parse::<ReportFile>().is_err(), "{text}");
        }
    }
}
