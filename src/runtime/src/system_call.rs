//! System calls that touch neither `errno` nor what other libraries put before the C library's
//! functions. May be made by a signal handler.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::raw;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::raw;
