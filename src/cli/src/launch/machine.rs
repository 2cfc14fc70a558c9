//! The machines whose programs this build can record.

use object::elf;

/// Whether programs can be recorded where this build runs.
pub(crate) const fn records_here() -> bool {
    cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))
}

/// The processor whose code the runtime in this build is, as ELF files name it.
#[cfg(target_arch = "aarch64")]
pub(super) const PROCESSOR: elf::Machine = elf::EM_AARCH64;
#[cfg(not(target_arch = "aarch64"))]
pub(super) const PROCESSOR: elf::Machine = elf::EM_X86_64;
