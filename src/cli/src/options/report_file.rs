//! `--report FORMAT=FILE`.

use std::path::PathBuf;
use std::str::FromStr;

/// A form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A report to write into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportFile {
    /// Its form.
    pub(crate) format: ReportFormat,
    /// Where it goes.
    pub(crate) path: PathBuf,
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = match text.split_once('=') {
            Some(("text", path)) => (ReportFormat::Text, path),
            Some(("json", path)) => (ReportFormat::Json, path),
            _ => return Err("a report is text=FILE or json=FILE".to_owned()),
        };
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
    fn unknown_formats_and_missing_files_are_refused() {
        for text in ["sarif=x", "text", "text="] {
            assert!(text.parse::<ReportFile>().is_err(), "{text}");
        }
    }
}
