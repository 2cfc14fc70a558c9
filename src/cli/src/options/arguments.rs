//! The grammar of the command line.

use super::{
    AdviseOptions, Coloring, DiffOptions, ExplainOptions, ExportOptions, GateOptions, HostAccesses,
    Listed, McpOptions, Measure, Offset, ReportFile, Settle, SimPolicy, Size, Stacks,
    SuppressOptions, TorchAllocator,
};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueHint};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use streamsan_kernels::image::{ComputeCapability, Target, Variant};
use streamsan_model::{ExitCode, Threshold};

/// Finds data races between CUDA streams, the host and the GPU, and memory lifetimes, in unmodified
/// programs.
#[derive(Debug, Parser)]
#[command(
    name = "streamsan",
    version,
    max_term_width = 100,
    after_help = "To begin: `streamsan demo`, then `streamsan run -- ./your-program`."
)]
pub(crate) struct Arguments {
    /// Colours: auto, always or never; auto heeds NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        global = true
    )]
    pub(crate) color: Coloring,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program, record its driver calls and report its races.
    Run(RunOptions),
    /// Run a program again and measure the kernels that decide what its trace leaves open.
    Settle(SettleOptions),
    /// Analyse a stored trace (.db) or a text trace (.trace) again.
    Check(CheckOptions),
    /// Explain a race: what led to it, what would order it, and whether that would suffice; or a
    /// class of findings, with examples.
    Explain(ExplainOptions),
    /// Find synchronisation that orders nothing.
    Advise(AdviseOptions),
    /// Write a trace in a form for other tools.
    Export(ExportOptions),
    /// Compare the findings of two traces.
    Diff(DiffOptions),
    /// Print the suppression of a finding.
    Suppress(SuppressOptions),
    /// Watch a race being found, with or without a GPU.
    Demo(DemoOptions),
    /// Look for what would keep streamsan from working here.
    Doctor(DoctorOptions),
    /// Show the kernels of an image of GPU code, their parameters and what they access.
    Kernels(KernelsOptions),
    /// Show what a trace holds.
    Stats(StatsOptions),
    /// Look at a trace in the terminal.
    View(ViewOptions),
    /// Answer a program's questions about traces, over the Model Context Protocol.
    Mcp(McpOptions),
    /// Print the list of races that are known in libraries.
    KnownUpstream,
    /// Print the path of the library to link programs with that are compiled with -fsanitize=thread.
    TsanStub,
    /// Print what makes a shell complete this command's options.
    Completions(CompletionsOptions),
    /// Print the manual page, or write the pages of all commands into a directory.
    Man(ManOptions),
    /// The program that `demo` runs.
    #[command(name = "__demo-program", hide = true)]
    DemoProgram {
        #[arg(long)]
        clean: bool,
    },
    /// Calls the driver once; run in a process of its own.
    #[command(name = "__call-driver", hide = true)]
    CallDriver { way: String },
    /// Tells whether a driver with a device is there; run in a process of its own.
    #[command(name = "__probe-driver", hide = true)]
    ProbeDriver,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit code, the first that applies:\n  \
    66   a race reaches --fail-on, or a suppression is unused with --strict-suppressions\n  \
    N    the program's own, if it failed (128+N for signal N)\n  \
    4    no CUDA call was made, with --require-cuda\n  \
    3    no race, but something was not seen; 0 with --allow-incomplete\n  \
    0    clean\n  \
    125  streamsan failed; 126 PROGRAM is not executable; 127 it was not found")]
pub(crate) struct RunOptions {
    /// Where the trace goes; %p is the program's process id, %q{VAR} a variable of the environment
    #[arg(
        short,
        long,
        value_name = "FILE.db",
        default_value = "streamsan-%p.db",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) output: String,
    /// Run on the simulated driver, without a GPU; POLICY is eager, lazy, starve:N or random:SEED
    #[arg(
        long,
        value_name = "POLICY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "eager"
    )]
    pub(crate) sim: Option<SimPolicy>,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    /// Exit with 0 although something was not seen
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
    /// Exit with 4 when the program made no CUDA call
    #[arg(long)]
    pub(crate) require_cuda: bool,
    /// Exit as the program does, whatever is found: for launchers that end all ranks when one fails,
    /// before `streamsan check` judges the traces
    #[arg(long, conflicts_with_all = ["allow_incomplete", "require_cuda", "strict_suppressions"])]
    pub(crate) exit_as_program: bool,
    /// Let the waits of one host thread order another only where the two synchronise by pthreads
    #[arg(long)]
    pub(crate) strict_host_threads: bool,
    /// See what host code does with page-locked and managed memory while the device uses it, by
    /// page protection: fence or off
    #[arg(long, value_enum, value_name = "HOW", default_value_t, hide_possible_values = true)]
    pub(crate) host_accesses: HostAccesses,
    /// Make PyTorch take each tensor from the driver (async), so that tensors are told apart
    #[arg(long, value_name = "async")]
    pub(crate) torch_allocator: Option<TorchAllocator>,
    /// Measure the bytes that kernels touch: of kernels by name (* is any text), or of those that a
    /// trace, or the traces of a directory, left open; repeatable
    #[arg(long, value_name = "GLOB|@TRACE.db")]
    pub(crate) measure: Vec<Measure>,
    /// Run again with the kernels measured that decide what is open: possible races, pointers in
    /// memory; not after a race, unless with =all
    #[arg(
        long,
        value_enum,
        value_name = "all",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "open",
        hide_possible_values = true,
        conflicts_with_all = ["measure", "view", "exit_as_program"]
    )]
    pub(crate) settle: Option<Settle>,
    /// Frames of the calling thread to record at each call
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, hide_possible_values = true)]
    pub(crate) stacks: Stacks,
    /// Stop storing, not analysing, at this size of the trace: 500M, 2G
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_trace: Option<Size>,
    /// Also write the report into a file; repeatable, - is standard error; the formats are those of
    /// `streamsan export`
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) report: Vec<ReportFile>,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
    #[command(flatten)]
    pub(crate) listed: Listed,
    /// Print the verdict only, and what makes it INCOMPLETE
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Show the run in the terminal while it goes on; what the program prints goes to a pane, and to
    /// a file beside the trace
    #[arg(long)]
    pub(crate) view: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        value_name = "PROGRAM",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "The exit code is that of `streamsan run`, for both runs together.")]
pub(crate) struct SettleOptions {
    /// The trace of the first run
    #[arg(value_name = "TRACE.db")]
    pub(crate) trace: PathBuf,
    /// Where the trace of the second run goes; TRACE.settled.db unless given
    #[arg(short, long, value_name = "FILE.db", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    /// Exit with 0 although something was not seen
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
    /// Also write the report into a file; repeatable, - is standard error; the formats are those of
    /// `streamsan export`
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) report: Vec<ReportFile>,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
    #[command(flatten)]
    pub(crate) listed: Listed,
    /// Print the verdict only, and what makes it INCOMPLETE
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments; the recorded ones, in the recorded directory and environment,
    /// unless given
    #[arg(last = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ThresholdOption {
    /// The weakest finding that fails: certain, likely, possible, latent or lint
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "likely",
        value_parser = words(Threshold::ALL.iter().map(|level| level.description())).try_map(threshold),
        hide_possible_values = true
    )]
    pub(crate) fail_on: Threshold,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code:\n  \
    0  nothing found\n  \
    1  findings at or above --fail-on, other findings than expected, or an unused suppression\n     \
    with --strict-suppressions\n  \
    2  usage or syntax error\n  \
    3  nothing found, but not everything was seen\n  \
    5  the trace cannot be read or is too new; of several, none can be read")]
pub(crate) struct CheckOptions {
    /// The trace; several traces, or directories of them, make one report: the ranks of a job, the
    /// tests of a run
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Compare the findings of text traces with their `#~` expectations
    #[arg(long, conflicts_with_all = ["json", "fail_on"])]
    pub(crate) expect: bool,
    #[command(flatten)]
    pub(crate) threshold: ThresholdOption,
    /// Let the waits of one host thread order another only where the two synchronise by pthreads; a
    /// trace that was recorded so is always judged so
    #[arg(long)]
    pub(crate) strict_host_threads: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the report into a file; repeatable, - is standard output; the formats are those
    /// of `streamsan export`
    #[arg(long, value_name = "FORMAT=FILE", conflicts_with = "expect")]
    pub(crate) report: Vec<ReportFile>,
    /// Analyse the trace once more for each finding, to see whether the proposed edge removes it
    #[arg(long, conflicts_with = "expect")]
    pub(crate) verify: bool,
    /// Traces that are analysed at the same time; all processors that may be used, unless given
    #[arg(long, value_name = "N", conflicts_with = "expect")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 66, since the race is found; 0 with --clean.")]
pub(crate) struct DemoOptions {
    /// Run the variant without the mistake
    #[arg(long)]
    pub(crate) clean: bool,
    /// Where the trace goes
    #[arg(short, long, value_name = "FILE.db", default_value = "streamsan-demo.db")]
    pub(crate) output: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Nothing of PROGRAM is run.\n\nExit code:\n  \
    0    streamsan works here, and can record PROGRAM\n  \
    1    it does not, or cannot\n  \
    126  PROGRAM is not executable; 127 it was not found")]
pub(crate) struct DoctorOptions {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// A program to look at
    #[arg(value_name = "PROGRAM", value_hint = ValueHint::CommandName)]
    pub(crate) program: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// The trace, stored (.db) or text (.trace)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "One row a stream; ? shows the keys. --color=never leaves the colours out.\n\nExit code:\n  \
    0  left by q\n  \
    2  no terminal\n  \
    5  the trace cannot be read or is too new"
)]
pub(crate) struct ViewOptions {
    /// The trace, stored (.db) or text (.trace); several, or a directory of them, are shown in one
    /// view, aligned by their clocks
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Begin with the race of this id
    #[arg(long, value_name = "ID")]
    pub(crate) race: Option<String>,
    /// Move the host times of a trace, by its number on the command line: 2=+1.5ms; may be given
    /// several times
    #[arg(long = "offset", value_name = "N=TIME", allow_hyphen_values = true)]
    pub(crate) offsets: Vec<Offset>,
    /// Draw with ASCII characters only, as in locales other than UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "What a kernel accesses is concluded from its PTX, else from its machine code, which \
    nvdisasm reads. STREAMSAN_NVDISASM names the file of nvdisasm.\n\nExit code:\n  \
    0  every piece of code was read\n  \
    2  usage error, or no code for --device\n  \
    5  the image, or a piece of code in it, cannot be read"
)]
pub(crate) struct KernelsOptions {
    /// PTX, a cubin, a fat binary, or a program or library that contains them
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
    /// Only the code that the driver would choose for a device of this kind
    #[arg(long, value_name = "sm_NN", value_parser = device)]
    pub(crate) device: Option<ComputeCapability>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "For bash: streamsan completions bash > \
    ~/.local/share/bash-completion/completions/streamsan\n\
    For zsh, into a directory of $fpath: streamsan completions zsh > _streamsan\n\
    For fish: streamsan completions fish > ~/.config/fish/completions/streamsan.fish")]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "The page of `streamsan run` is streamsan-run.1. To read one at once: \
    streamsan man | man -l -")]
pub(crate) struct ManOptions {
    /// Write all pages into this directory, which is made where it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// The whole grammar, for what is made from it.
pub(crate) fn grammar() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

/// A device has no letter behind its number: the letters are of code.
fn device(text: &str) -> Result<ComputeCapability, String> {
    let target: Option<Target> = text.parse().ok();
    target
        .filter(|target| target.variant == Variant::Portable && text.starts_with("sm_"))
        .map(|target| target.capability)
        .ok_or_else(|| "expected the number of a GPU architecture, such as sm_90".to_owned())
}

fn threshold(text: String) -> Result<Threshold, String> {
    text.parse().map_err(|()| format!("{text} is no level"))
}

/// One of these words, which shells then complete and mistakes are compared with.
pub(super) fn words(words: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

/// Reads the command line. Prints help and usage errors itself; the error is the exit code.
///
/// # Errors
///
/// The exit code where no command is to run: help or the version was printed, or the mistake.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, ExitCode> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    Arguments::try_parse_from(&arguments).map_err(|error| {
        let printed = error.print();
        if !error.use_stderr() {
            match printed {
                // A reader that has seen enough (`| head`) is no error.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    crate::commands::warn(&crate::error::Error::Output(error));
                    ExitCode::USAGE
                }
                _ => ExitCode::SUCCESS,
            }
        } else if arguments.get(1).is_some_and(|command| command == "run" || command == "settle") {
            // A wrapper's own failures must not look like the program's.
            ExitCode::RUN_FAILED
        } else {
            ExitCode::USAGE
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(line: &str) -> Result<Arguments, ExitCode> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn grammar_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_behind_the_program_are_its_own() {
        for line in ["streamsan run a --sim", "streamsan run -- a --sim"] {
            let Ok(Arguments { command: Command::Run(run), .. }) = parsed(line) else {
                panic!("{line} is refused")
            };
            assert_eq!(run.program, ["a", "--sim"]);
            assert_eq!(run.sim, None);
        }
    }

    #[test]
    fn simulator_policy_is_optional() {
        for (line, policy) in [
            ("streamsan run --sim -- a", SimPolicy::Eager),
            ("streamsan run --sim=lazy a", SimPolicy::Lazy),
        ] {
            let Ok(Arguments { command: Command::Run(run), .. }) = parsed(line) else {
                panic!("{line} is refused")
            };
            assert_eq!(run.sim, Some(policy));
        }
    }

    #[test]
    fn usage_errors_have_documented_codes() {
        for (line, code) in [
            ("streamsan run --fail-on never -- a", ExitCode::RUN_FAILED),
            ("streamsan run", ExitCode::RUN_FAILED),
            ("streamsan run --settle --measure x -- a", ExitCode::RUN_FAILED),
            ("streamsan settle", ExitCode::RUN_FAILED),
            ("streamsan check", ExitCode::USAGE),
            ("streamsan check --expect --json a.trace", ExitCode::USAGE),
            ("streamsan kernels", ExitCode::USAGE),
            ("streamsan kernels --device sm_90a x", ExitCode::USAGE),
            ("streamsan kernels --device 90 x", ExitCode::USAGE),
            ("streamsan --help", ExitCode::SUCCESS),
        ] {
            assert_eq!(parsed(line).map(|_| ()), Err(code), "{line}");
        }
    }
}
