//! The command's errors: one paragraph for the user, and an exit code.

use std::io;
use std::path::{Path, PathBuf};
use streamsan_model::ExitCode;
use streamsan_names::printable_path;

/// Why the command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "programs can be run under streamsan on Linux with glibc on x86-64 and aarch64 only, and this \
         build is for {0} on {1}; record there, and read the trace anywhere"
    )]
    Platform(&'static str, &'static str),
    #[error(
        "cannot run '{program}': no such program in PATH; check the spelling, or give a path such \
         as ./{program}"
    )]
    ProgramNotFoundInPath { program: String },
    #[error("cannot run '{program}': there is no such file; check the path")]
    ProgramNotFound { program: String },
    #[error("cannot run '{program}': {reason}")]
    NotExecutable { program: String, reason: String },
    #[error("{what}: {source}")]
    Run { what: String, source: io::Error },
    #[error("{0}")]
    RunUsage(String),
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {}: {source}", printable_path(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", printable_path(path))]
    Image { path: PathBuf, source: streamsan_kernels::image::ImageError },
    #[error(transparent)]
    Query(#[from] streamsan_model::QueryError),
    #[error(transparent)]
    Trace(#[from] streamsan_store::Error),
    #[error("{}:{}:{}: {}", printable_path(path), source.line, source.column, source.message)]
    Syntax { path: PathBuf, source: streamsan_text::SyntaxError },
    #[error(transparent)]
    Tables(#[from] streamsan_tables::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("{0}")]
    Demo(String),
}

impl Error {
    /// An error of `run` itself.
    pub(crate) fn run(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Run { what, source }
    }

    /// A file that cannot be written, by its name.
    pub(crate) fn output(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Output(io::Error::new(source.kind(), format!("{path}: {source}")))
    }

    /// A mistake that `run` finds before it starts anything.
    pub(crate) fn of_run(self) -> Self {
        match self.exit_code() {
            ExitCode::USAGE | ExitCode::UNREADABLE => Self::RunUsage(self.to_string()),
            _ => self,
        }
    }

    /// The documented exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ProgramNotFoundInPath { .. } | Self::ProgramNotFound { .. } => {
                ExitCode::NOT_FOUND
            }
            Self::NotExecutable { .. } => ExitCode::NOT_EXECUTABLE,
            Self::Platform(..) | Self::Run { .. } | Self::RunUsage(_) | Self::Demo(_) => {
                ExitCode::RUN_FAILED
            }
            Self::Usage(_) | Self::Syntax { .. } | Self::Tables(_) | Self::Output(_) => {
                ExitCode::USAGE
            }
            Self::Read { .. } | Self::Image { .. } | Self::Query(_) | Self::Trace(_) => {
                ExitCode::UNREADABLE
            }
        }
    }
}
