//! The budget of one kernel's analysis: its limits, and the time and memory used so far.
//!
//! Stage: all stages that work on one kernel, up to its summary. Time is counted in visits of
//! expressions and registers, memory in bytes. The limits are some fifty times the use of the
//! largest kernels of cuBLAS, cuDNN, NCCL and PyTorch; beyond them an analysis is of no use to a
//! program that has ended.
//!
//! Invariant: both units follow from the code alone, so that a conclusion depends neither on the
//! machine nor on its load.
//!
//! Deliberately absent: the cost of disassembling and parsing, which is in proportion to the size
//! of the code.

use std::cell::Cell;

use serde::{Deserialize, Serialize};

/// Looks at expressions and registers; 15 to 20 millions take a second.
const MOST_WORK: u64 = 100_000_000;
/// Bytes.
const MOST_MEMORY: u64 = 512 << 20;

/// Why the analysis of a kernel was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum TooLarge {
    /// The analysis takes too long.
    #[error("its code is too large: reading it was given up after {} million steps", .0 / 1_000_000)]
    Work(u64),
    /// The analysis takes too much memory.
    #[error("its code is too large: reading it was given up at {} MiB of memory", .0 >> 20)]
    Memory(u64),
}

/// The time and memory that one analysis has used.
#[derive(Debug)]
pub(in crate::access) struct Budget {
    work: Cell<u64>,
    memory: Cell<u64>,
    most: (u64, u64),
}

impl Default for Budget {
    fn default() -> Self {
        Self { work: Cell::new(0), memory: Cell::new(0), most: (MOST_WORK, MOST_MEMORY) }
    }
}

impl Budget {
    /// Counts looks at expressions or registers.
    pub(in crate::access) fn work(&self, looks: usize) {
        self.work.set(self.work.get().saturating_add(looks as u64));
    }

    /// Counts bytes that are kept to the end.
    pub(in crate::access) fn memory(&self, bytes: usize) {
        self.memory.set(self.memory.get().saturating_add(bytes as u64));
    }

    /// Checks that no more was taken than may be.
    ///
    /// # Errors
    /// When more was taken.
    pub(in crate::access) fn check(&self) -> Result<(), TooLarge> {
        let (work, memory) = self.most;
        if self.work.get() > work {
            return Err(TooLarge::Work(work));
        }
        if self.memory.get() > memory {
            return Err(TooLarge::Memory(memory));
        }
        Ok(())
    }
}
