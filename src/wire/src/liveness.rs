//! Whether a process or thread still lives, told by its start time so that reused ids do not lie.

/// The fields of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// State letter.
    pub state: u8,
    /// Parent's process id.
    pub parent: u32,
    /// Threads that have not ended.
    pub threads: u32,
    /// Start in clock ticks since boot.
    pub start_time: u64,
}

impl ProcessStat {
    /// Parses the line; the command name may hold spaces and parentheses.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let after = line.iter().rposition(|byte| *byte == b')')? + 2;
        let mut fields = line.get(after..)?.split(|byte| *byte == b' ');
        let state = *fields.next()?.first()?;
        let mut number = |skip: usize| -> Option<u64> {
            core::str::from_utf8(fields.nth(skip)?).ok()?.trim_end().parse().ok()
        };
        // proc(5): state is field 3, ppid 4, num_threads 20, starttime 22.
        let parent = number(0)?;
        let threads = number(15)?;
        let start_time = number(1)?;
        Some(Self { state, parent: parent as u32, threads: threads as u32, start_time })
    }
}

/// Whether the process that started at `start_time` (0: at any time) still runs code.
pub(crate) fn process_alive(pid: u32, start_time: u64) -> bool {
    let Ok(line) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    let Some(stat) = ProcessStat::parse(&line) else { return false };
    // A leader that called pthread_exit is a zombie while its other threads go on.
    let ended = matches!(stat.state, b'Z' | b'X' | b'x') && stat.threads <= 1;
    !ended && (start_time == 0 || stat.start_time == start_time)
}

/// Number of the calling process's PID namespace, 0 where it is not known.
pub fn pid_namespace() -> u64 {
    // SAFETY: a NUL-terminated path; a zeroed `stat` is a valid one to write over.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        match libc::stat(c"/proc/self/ns/pid".as_ptr(), &mut stat) {
            0 => stat.st_ino,
            _ => 0,
        }
    }
}

/// The id here of the process that has id `pid` in a PID namespace below this one and started at
/// `start_time`; `None` if it has ended.
pub(crate) fn pid_seen_from_here(pid: u32, start_time: u64) -> Option<u32> {
    std::fs::read_dir("/proc").ok()?.find_map(|entry| {
        let here = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = ProcessStat::parse(&std::fs::read(format!("/proc/{here}/stat")).ok()?)?;
        if stat.start_time != start_time {
            return None;
        }
        let status = std::fs::read_to_string(format!("/proc/{here}/status")).ok()?;
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        (ids.split_ascii_whitespace().last()?.parse() == Ok(pid)).then_some(here)
    })
}

/// Whether thread `tid` of process `pid` exists.
pub(crate) fn thread_alive(pid: u32, tid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse_the_fields() {
        let line = b"42 (a) b) (c) S 7 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 100 5\n";
        let stat = ProcessStat::parse(line).expect("parses");
        assert_eq!(stat, ProcessStat { state: b'S', parent: 7, threads: 3, start_time: 99 });
    }

    #[test]
    fn this_process_lives_and_an_earlier_holder_of_its_id_does_not() {
        let pid = std::process::id();
        let line = std::fs::read("/proc/self/stat").expect("own stat");
        let start = ProcessStat::parse(&line).expect("parses").start_time;
        assert!(process_alive(pid, start));
        assert!(!process_alive(pid, start + 1));
        assert!(thread_alive(pid, pid));
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("true starts");
        let pid = child.id();
        while process_alive(pid, 0) {
            std::thread::yield_now();
        }
        assert!(child.wait().expect("reaped").success());
    }
}
