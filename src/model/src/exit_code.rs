//! Exit codes of the command: the only table of them.

use crate::Verdict;

/// An exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitCode(pub u8);

impl ExitCode {
    /// No complaint.
    pub const SUCCESS: Self = Self(0);
    /// `check`, `diff`: findings at or above the threshold, or expectations not met.
    pub const FINDINGS: Self = Self(1);
    /// Usage or syntax error.
    pub const USAGE: Self = Self(2);
    /// No finding, but the run was not seen completely.
    pub const INCOMPLETE: Self = Self(3);
    /// `--require-cuda` and no CUDA call was made.
    pub const NO_CUDA: Self = Self(4);
    /// The trace cannot be read, or is of a newer schema.
    pub const UNREADABLE: Self = Self(5);
    /// `run`: a race was found.
    pub const RACY: Self = Self(66);
    /// `run` itself failed.
    pub const RUN_FAILED: Self = Self(125);
    /// The program is not executable.
    pub const NOT_EXECUTABLE: Self = Self(126);
    /// The program was not found.
    pub const NOT_FOUND: Self = Self(127);
}

/// The end of the program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// Exit code 0.
    Succeeded,
    /// Another exit code.
    Failed(u8),
    /// Died by this signal.
    Signalled(u8),
}

impl ProgramOutcome {
    /// The exit code that a shell would see.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Succeeded => ExitCode::SUCCESS,
            Self::Failed(code) => ExitCode(code),
            Self::Signalled(signal) => ExitCode(128u8.saturating_add(signal)),
        }
    }
}

/// Exit code of `run`: a race wins, then the program's own failure, then an incomplete recording.
pub fn run_exit_code(
    verdict: &Verdict,
    program: ProgramOutcome,
    allow_incomplete: bool,
    missing_required_cuda: bool,
) -> ExitCode {
    if *verdict == Verdict::Racy {
        return ExitCode::RACY;
    }
    if program != ProgramOutcome::Succeeded {
        return program.exit_code();
    }
    if missing_required_cuda {
        return ExitCode::NO_CUDA;
    }
    match verdict {
        Verdict::Incomplete(_) if !allow_incomplete => ExitCode::INCOMPLETE,
        _ => ExitCode::SUCCESS,
    }
}

/// Exit code of `check` for a readable trace.
pub fn check_exit_code(verdict: &Verdict) -> ExitCode {
    match verdict {
        Verdict::Racy => ExitCode::FINDINGS,
        Verdict::Incomplete(_) => ExitCode::INCOMPLETE,
        Verdict::NoCuda | Verdict::Clean => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IncompleteReason;
    use ProgramOutcome::{Failed, Signalled, Succeeded};

    #[test]
    fn run_table() {
        let incomplete = Verdict::Incomplete(vec![IncompleteReason::NotAttached]);
        let table = [
            (Verdict::Racy, Succeeded, false, false, 66),
            (Verdict::Racy, Failed(7), false, false, 66),
            (Verdict::Racy, Signalled(9), true, true, 66),
            (incomplete.clone(), Succeeded, false, false, 3),
            (incomplete.clone(), Succeeded, true, false, 0),
            (incomplete.clone(), Succeeded, true, true, 4),
            (incomplete.clone(), Failed(7), false, false, 7),
            (incomplete, Signalled(9), false, false, 137),
            (Verdict::Clean, Succeeded, false, false, 0),
            (Verdict::NoCuda, Succeeded, false, false, 0),
            (Verdict::NoCuda, Succeeded, false, true, 4),
            (Verdict::NoCuda, Failed(7), false, true, 7),
            (Verdict::Clean, Failed(7), false, true, 7),
            (Verdict::Clean, Signalled(15), false, false, 143),
        ];
        for (verdict, program, allow, no_cuda, expected) in table {
            let got = run_exit_code(&verdict, program, allow, no_cuda);
            assert_eq!(got, ExitCode(expected), "{verdict:?} {program:?} {allow} {no_cuda}");
        }
    }

    #[test]
    fn check_table() {
        assert_eq!(check_exit_code(&Verdict::Racy), ExitCode(1));
        assert_eq!(check_exit_code(&Verdict::Incomplete(vec![])), ExitCode(3));
        assert_eq!(check_exit_code(&Verdict::Clean), ExitCode(0));
        assert_eq!(check_exit_code(&Verdict::NoCuda), ExitCode(0));
    }
}
