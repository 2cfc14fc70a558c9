//! Faults of lowering or running a kernel.

use std::fmt;

/// Why a module cannot be lowered. A driver answers `CUDA_ERROR_INVALID_PTX` at module load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerError {
    /// Line in the PTX text, counted from 1.
    pub line: u32,
    /// The instruction as written, or the name of the declaration.
    pub subject: String,
    pub message: String,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {}: `{}`: {}", self.line, self.subject, self.message)
    }
}

impl std::error::Error for LowerError {}

/// A memory access that [`crate::Memory`] refused: some byte is not device-visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The first address of the access, or a better one if the memory knows it.
    pub address: u64,
}

/// The reason that stopped a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// `CUDA_ERROR_ILLEGAL_ADDRESS`.
    IllegalAddress { address: u64, size: u32 },
    /// `CUDA_ERROR_MISALIGNED_ADDRESS`.
    MisalignedAddress { address: u64, size: u32 },
    /// `trap`, `brkpt` and failed stack limits: `CUDA_ERROR_LAUNCH_FAILED`.
    Trap,
    /// A call or branch to something that is no code: `CUDA_ERROR_INVALID_PC`.
    InvalidProgramCounter,
    /// The budget ran out or its poll said stop: `CUDA_ERROR_LAUNCH_TIMEOUT`.
    Timeout,
    /// No thread can ever run again (a barrier that some threads never reach). A real device
    /// hangs here until its watchdog, if it has one, ends it: `CUDA_ERROR_LAUNCH_TIMEOUT`.
    Deadlock,
    /// Device-side `assert`: `CUDA_ERROR_ASSERT`. The message holds file, line and expression.
    Assert(String),
    /// An instruction of the PTX ISA that this interpreter does not implement:
    /// `CUDA_ERROR_NOT_SUPPORTED`. Found at launch, before anything has run; in functions that
    /// only a pointer leads to, when it is reached.
    Unsupported(String),
}

/// The reason that stopped a kernel, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFault {
    pub kind: FaultKind,
    pub kernel: String,
    /// Line in the PTX text, counted from 1; 0 where none applies.
    pub line: u32,
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::IllegalAddress { address, size } => {
                write!(f, "access of {size} bytes at {address:#x} is outside every allocation")
            }
            FaultKind::MisalignedAddress { address, size } => {
                write!(f, "access of {size} bytes at {address:#x} is not aligned to its size")
            }
            FaultKind::Trap => f.write_str("trap instruction"),
            FaultKind::InvalidProgramCounter => {
                f.write_str("call or branch to an address that is no code")
            }
            FaultKind::Timeout => f.write_str("ran longer than its limit"),
            FaultKind::Deadlock => {
                f.write_str("every remaining thread waits at a barrier that can never complete")
            }
            FaultKind::Assert(message) => write!(f, "device assertion failed: {message}"),
            FaultKind::Unsupported(what) => {
                write!(f, "`{what}` is not implemented by the simulated driver")
            }
        }
    }
}

impl fmt::Display for LaunchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, "kernel {}, PTX line {}: {}", self.kernel, self.line, self.kind)?;
        if !matches!(self.kind, FaultKind::Unsupported(_)) {
            write!(f, " (block {bx},{by},{bz} thread {tx},{ty},{tz})")?;
        }
        Ok(())
    }
}

impl std::error::Error for LaunchFault {}
