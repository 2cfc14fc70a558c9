//! How a program under test starts and ends: its one argument, its one line of output, its exit
//! code.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use cudarc::driver::result::DriverError;

/// Which of its two forms a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The order that the program needs is missing in one place.
    Racy,
    /// Every conflicting pair of accesses is ordered.
    Clean,
}

impl Variant {
    /// True for the form with the missing order.
    pub fn is_racy(self) -> bool {
        self == Self::Racy
    }

    fn from_argument(argument: &str) -> Option<Self> {
        match argument {
            "racy" => Some(Self::Racy),
            "clean" => Some(Self::Clean),
            _ => None,
        }
    }
}

/// Why a program could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// A driver call answered something other than `CUDA_SUCCESS`.
    Driver(DriverError),
    /// Ordered data did not hold what the program had put there.
    WrongData { what: &'static str, expected: u64, found: u64 },
    /// A host thread of the program ended early.
    Thread(&'static str),
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => write!(f, "driver call failed: {:?}", error.0),
            Self::WrongData { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            Self::Thread(what) => write!(f, "host thread ended early: {what}"),
        }
    }
}

/// Checks data that the program has ordered. Never call it on data that a racy variant may tear:
/// the exit code must not depend on how a race ends.
///
/// # Errors
/// [`Failure::WrongData`] when the two differ.
pub fn check(what: &'static str, found: u64, expected: u64) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(Failure::WrongData { what, expected, found }) }
}

/// Runs `program` in the variant that its arguments name. Prints one line, the same in both
/// variants. Exit code 0 when done, 1 when a call failed or ordered data was wrong, 2 on bad usage.
pub fn run(
    name: &str,
    arguments: &[OsString],
    program: fn(Variant) -> Result<(), Failure>,
) -> ExitCode {
    let variant = match arguments {
        [one] => one.to_str().and_then(Variant::from_argument),
        _ => None,
    };
    let Some(variant) = variant else {
        eprintln!("usage: {name} racy|clean");
        return ExitCode::from(2);
    };
    match program(variant) {
        Ok(()) => {
            println!("{name}: done");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::FAILURE
        }
    }
}
