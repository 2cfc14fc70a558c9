//! Signals that the tests' own surroundings ignore must not be ignored in the programs under test.
//!
//! `nohup` ignores SIGHUP, a shell ignores SIGINT and SIGQUIT for its background jobs, and ignored
//! signals are inherited by all children (POSIX, `execve`). Caught ones are not: in a child they have
//! their default action again.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// Signals that end a program unless it says otherwise. The standard library sees to SIGPIPE.
const ENDING: [i32; 7] = [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Catches what is ignored, once in a process, and does nothing about it: as ignored as before here,
/// but not in the programs that are started.
///
/// # Panics
/// When the kernel does not tell which signals are ignored, or refuses a handler.
pub fn do_not_inherit_ignored() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = line.expect("Linux tells").trim();
        let ignored = u64::from_str_radix(ignored, 16).expect("a mask in hexadecimal digits");
        for signal in ENDING.into_iter().filter(|signal| ignored & (1 << (signal - 1)) != 0) {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, flag).expect("a handler can be installed");
        }
    });
}
