//! Options of `streamsan mcp`.

use clap::Args;
use clap::builder::ValueHint;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "The tools are list_findings, explain_finding, source_context, verify_edge and \
    compare_traces. Nothing is written, and no program is run.\n\nExit code:\n  \
    0  the client has ended\n  \
    2  usage error, or standard output cannot be written\n  \
    5  a root cannot be read"
)]
pub(crate) struct McpOptions {
    /// Answer about traces and sources below this directory only; may be given several times. Without
    /// it, those below the current directory. Relative paths begin at the first
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Vec<PathBuf>,
}
