//! What differs between the processors that programs run on: the counter of ticks, the pages of
//! memory.
//!
//! One file a processor, each with the same functions. Another processor does not compile.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as this;
#[cfg(target_arch = "x86_64")]
use x86_64 as this;

pub(crate) use this::CLOCK_SOURCE;
pub use this::{page_bytes, ticks};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_the_system_says() {
        // SAFETY: asks for a number.
        let stated = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(page_bytes(), stated as u64);
        assert!(page_bytes().is_power_of_two());
    }
}
