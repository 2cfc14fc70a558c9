//! The program's descendants as the kernel knows them.
//!
//! Who never says hello would otherwise not be missed: a program that is started with a clean
//! environment, or a forked child that has made no call yet. A process that has the driver in
//! memory uses CUDA; one that has the run directory's control file in memory as well is recorded,
//! or will be at its first call (forked children keep that file).
//!
//! What lives for less than a few milliseconds may be missed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A look may take one part in so many of the time.
const SHARE: u32 = 50;
/// Bounds a look at a program that forks without end.
const MOST_PROCESSES: usize = 4096;

/// Looks at the descendants of this process from time to time.
#[derive(Debug)]
pub(crate) struct Descendants {
    /// What the mapped control file's path ends in.
    control: String,
    pause: Duration,
    next: Instant,
    unattached: BTreeMap<u32, String>,
}

impl Descendants {
    /// For a run with this directory.
    pub(crate) fn new(run_directory: &Path) -> Self {
        let name = run_directory.file_name().unwrap_or_default().to_string_lossy();
        Self {
            control: format!("/{name}/control"),
            pause: FIRST_PAUSE,
            next: Instant::now(),
            unattached: BTreeMap::new(),
        }
    }

    /// Looks, if it is time. Answers a process that uses CUDA unseen, once each.
    pub(crate) fn look(&mut self) -> Vec<(u32, String)> {
        let start = Instant::now();
        if start < self.next {
            return Vec::new();
        }
        let mut found = Vec::new();
        for pid in descendants(std::process::id()) {
            if !self.unattached.contains_key(&pid) && self.use_of_cuda(pid) == Use::Unseen {
                let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                let program = link.to_string_lossy().into_owned();
                self.unattached.insert(pid, program.clone());
                found.push((pid, program));
            }
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next = Instant::now() + self.pause.max(start.elapsed() * SHARE);
        found
    }

    /// Whether a process was found that uses CUDA and is not recorded.
    pub(crate) fn has_unattached(&self) -> bool {
        !self.unattached.is_empty()
    }

    /// Whether a descendant that is or will be recorded has the driver in memory, looked up now.
    pub(crate) fn any_recorded(&self) -> bool {
        descendants(std::process::id()).iter().any(|pid| self.use_of_cuda(*pid) == Use::Recorded)
    }

    fn use_of_cuda(&self, pid: u32) -> Use {
        let look = || {
            fs::read_to_string(format!("/proc/{pid}/maps"))
                .map_or(Use::None, |maps| use_in(&maps, &self.control))
        };
        // The kernel hands out the list in pieces, which end where the process ends meanwhile: the
        // control file may be missing from what was the list of a recorded process.
        match look() {
            Use::Unseen => look(),
            other => other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    None,
    Recorded,
    Unseen,
}

fn use_in(maps: &str, control: &str) -> Use {
    match (maps.contains("/libcuda.so"), maps.contains(control)) {
        (false, _) => Use::None,
        (true, true) => Use::Recorded,
        (true, false) => Use::Unseen,
    }
}

/// All descendants of a process. Empty where the kernel does not list children.
fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        let children = children(parent);
        open.extend(&children);
        found.extend(children);
        if found.len() > MOST_PROCESSES {
            break;
        }
    }
    found
}

fn children(of: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists = tasks.flatten().map(|task| fs::read_to_string(task.path().join("children")));
    lists.flatten().flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn driver_and_control_file_tell_who_is_recorded() {
        let driver = "7f00-7f01 r-xp 0 08:01 9 /usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06\n";
        let control = "7f02-7f03 rw-s 0 00:19 7 /dev/shm/streamsan-7-0/control\n";
        let other = "7f02-7f03 rw-s 0 00:19 7 /dev/shm/streamsan-7-1/control\n";
        let ours = "/streamsan-7-0/control";
        for (maps, expected) in [
            ("", Use::None),
            (control, Use::None),
            (driver, Use::Unseen),
            (&format!("{driver}{other}"), Use::Unseen),
            (&format!("{driver}{control}"), Use::Recorded),
        ] {
            assert_eq!(use_in(maps, ours), expected, "{maps}");
        }
    }

    #[test]
    fn grandchildren_are_found() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; read line; kill $!"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(shell.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        let sleeping: u32 = line.trim().parse().expect("a process id");
        let found = descendants(std::process::id());
        assert!(found.contains(&shell.id()) && found.contains(&sleeping), "{found:?}");
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
    }
}
