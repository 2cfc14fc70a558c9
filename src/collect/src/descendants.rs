//! The program's descendants as the kernel knows them.
//!
//! Who never says hello would otherwise not be missed: a program that is started with a clean
//! environment, or a forked child that has made no call yet. A process that has the driver in
//! memory uses CUDA; one that has the run directory's control file in memory as well is recorded,
//! or will be at its first call (forked children keep that file).
//!
//! A process that has the driver and the runtime in memory and not that file yet is being loaded:
//! the loader maps every library first, relocates them, and then calls the constructors, among them
//! the runtime's, which says hello (System V ABI, "Initialization and Termination Functions").
//! Between the two lie tens of milliseconds where a program is linked with large libraries, such as
//! NVRTC's. Whether such a process is recorded is known when it says hello, or never does.
//!
//! A process that lives for less than a few milliseconds may be missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use streamsan_wire::ProcessInfo;

const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A look may take one part in so many of the time.
const SHARE: u32 = 50;
/// Bounds a look at a program that forks without end.
const MOST_PROCESSES: usize = 4096;
/// Bounds one look at descendants that start others without end.
const MOST_LISTS: usize = 64;
/// After this time the user is told of a process that has not said hello. The verdict does not
/// depend on it.
const LONG_LOADING: Duration = Duration::from_secs(2);
/// The file name of the runtime, as it stands in the maps of a process.
const RUNTIME: &str = "/libstreamsan_runtime.so";

/// A process that uses CUDA and is not recorded: process id and program.
pub(crate) type Unattached = (u32, String);

/// Looks at the descendants of this process from time to time.
#[derive(Debug)]
pub(crate) struct Descendants {
    /// The end of the mapped control file's path.
    control: String,
    pause: Duration,
    next: Instant,
    unattached: BTreeSet<u32>,
    /// By process id.
    loading: BTreeMap<u32, Loading>,
}

/// A process that was seen with the runtime in memory and without the control file.
#[derive(Debug)]
struct Loading {
    program: String,
    /// How many processes had said hello by then. A process id may have had another program.
    hellos: usize,
    since: Instant,
    /// Whether the user has been told of it.
    told: bool,
}

impl Loading {
    /// Whether this is the process that said hello, and it did so after it was seen. Other mount
    /// namespaces have other paths for the same file.
    fn is(&self, pid: u32, info: &ProcessInfo) -> bool {
        let name = |path: &str| Path::new(path).file_name().map(std::ffi::OsStr::to_owned);
        let own = info.pid == pid && info.key.0 as usize >= self.hellos;
        own && (info.exe.is_empty() || name(&info.exe) == name(&self.program))
    }
}

impl Descendants {
    /// For a run with this directory.
    pub(crate) fn new(run_directory: &Path) -> Self {
        let name = run_directory.file_name().unwrap_or_default().to_string_lossy();
        Self {
            control: format!("/{name}/control"),
            pause: FIRST_PAUSE,
            next: Instant::now(),
            unattached: BTreeSet::new(),
            loading: BTreeMap::new(),
        }
    }

    /// Looks, if it is time. `recorded` are the processes that have said hello so far. Answers the
    /// processes that use CUDA unseen, each once.
    pub(crate) fn look(&mut self, recorded: &[ProcessInfo]) -> Vec<Unattached> {
        let start = Instant::now();
        if start < self.next {
            return Vec::new();
        }
        self.welcome(recorded);
        let mut found = Vec::new();
        for pid in descendants(std::process::id()) {
            if self.unattached.contains(&pid) {
                continue;
            }
            let program = || {
                let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                link.to_string_lossy().into_owned()
            };
            match self.use_of_cuda(pid) {
                Use::Unseen => {
                    self.unattached.insert(pid);
                    found.push((pid, program()));
                }
                Use::Loading => {
                    let hellos = recorded.len();
                    let new = || Loading { program: program(), hellos, since: start, told: false };
                    self.loading.entry(pid).or_insert_with(new);
                }
                Use::None | Use::Recorded => {}
            }
        }
        for (&pid, loading) in &mut self.loading {
            let late = start.duration_since(loading.since) >= LONG_LOADING;
            if late && !std::mem::replace(&mut loading.told, true) {
                found.push((pid, loading.program.clone()));
            }
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next = Instant::now() + self.pause.max(start.elapsed() * SHARE);
        found
    }

    /// No process says hello any more: those that were being loaded and never did are not recorded.
    pub(crate) fn finish(&mut self, recorded: &[ProcessInfo]) -> Vec<Unattached> {
        self.welcome(recorded);
        let left = std::mem::take(&mut self.loading);
        self.unattached.extend(left.keys());
        let untold = left.into_iter().filter(|(_, loading)| !loading.told);
        untold.map(|(pid, loading)| (pid, loading.program)).collect()
    }

    /// Forgets the processes that have said hello since they were seen.
    fn welcome(&mut self, recorded: &[ProcessInfo]) {
        self.loading.retain(|&pid, loading| {
            let since = recorded.get(loading.hellos..).unwrap_or_default();
            !since.iter().any(|info| loading.is(pid, info))
        });
    }

    /// Whether a process was found that uses CUDA and is not recorded.
    pub(crate) fn has_unattached(&self) -> bool {
        !self.unattached.is_empty()
    }

    /// Whether a descendant that is or will be recorded has the driver in memory, looked up now.
    ///
    /// A process that ends while the list is made gives its children to this one, whose list was read
    /// by then: they are in the next list. So nobody is there only when two lists are the same.
    pub(crate) fn any_recorded(&self) -> bool {
        let mut before = None;
        for _ in 0..MOST_LISTS {
            let now: BTreeSet<u32> = descendants(std::process::id()).into_iter().collect();
            if now.iter().any(|pid| self.use_of_cuda(*pid) == Use::Recorded) {
                return true;
            }
            if before.as_ref() == Some(&now) {
                break;
            }
            before = Some(now);
        }
        false
    }

    fn use_of_cuda(&self, pid: u32) -> Use {
        let look = || {
            fs::read_to_string(format!("/proc/{pid}/maps"))
                .map_or(Use::None, |maps| use_in(&maps, &self.control))
        };
        // The kernel hands out the list in pieces, which end where the process ends meanwhile: the
        // control file and the runtime may be missing from what was the list of a recorded process.
        match look() {
            Use::Unseen | Use::Loading => look(),
            other => other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    None,
    Recorded,
    /// The runtime is in memory and has not been called yet.
    Loading,
    Unseen,
}

fn use_in(maps: &str, control: &str) -> Use {
    match (maps.contains("/libcuda.so"), maps.contains(control), maps.contains(RUNTIME)) {
        (false, _, _) => Use::None,
        (true, true, _) => Use::Recorded,
        (true, false, true) => Use::Loading,
        (true, false, false) => Use::Unseen,
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
    use streamsan_wire::ProcessKey;

    #[test]
    fn driver_and_control_file_tell_who_is_recorded() {
        let driver = "7f00-7f01 r-xp 0 08:01 9 /usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06\n";
        let control = "7f02-7f03 rw-s 0 00:19 7 /dev/shm/streamsan-7-0/control\n";
        let other = "7f02-7f03 rw-s 0 00:19 7 /dev/shm/streamsan-7-1/control\n";
        let runtime =
            "7f04-7f05 r-xp 0 08:01 5 /home/u/.cache/streamsan/1/libstreamsan_runtime.so\n";
        let ours = "/streamsan-7-0/control";
        for (maps, expected) in [
            ("", Use::None),
            (control, Use::None),
            (driver, Use::Unseen),
            (&format!("{driver}{other}"), Use::Unseen),
            (&format!("{driver}{control}"), Use::Recorded),
            (runtime, Use::None),
            (&format!("{driver}{runtime}"), Use::Loading),
            (&format!("{driver}{runtime}{control}"), Use::Recorded),
        ] {
            assert_eq!(use_in(maps, ours), expected, "{maps}");
        }
    }

    #[test]
    fn only_a_hello_after_the_look_is_that_of_the_process() {
        let (program, since) = ("/bin/a".to_owned(), Instant::now());
        let loading = Loading { program, hellos: 1, since, told: false };
        let said = |key: u32, pid: u32, exe: &str| ProcessInfo {
            key: ProcessKey(key),
            pid,
            parent: 1,
            exe: exe.to_owned(),
            args: Vec::new(),
            start_time: 0,
            alive: true,
            dropped: 0,
            waited: std::time::Duration::ZERO,
            fences: streamsan_wire::FenceCounts::default(),
            corrupted: 0,
        };
        for (info, expected) in [
            (said(1, 7, "/bin/a"), true),
            (said(2, 7, "/elsewhere/bin/a"), true),
            (said(2, 7, ""), true),
            (said(0, 7, "/bin/a"), false),
            (said(1, 8, "/bin/a"), false),
            // The program before `exec`.
            (said(1, 7, "/bin/sh"), false),
        ] {
            assert_eq!(loading.is(7, &info), expected, "{info:?}");
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
        // The children of each thread are told with the thread, and the list of threads may end early
        // where one of another test ends meanwhile.
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let found = descendants(std::process::id());
            if found.contains(&shell.id()) && found.contains(&sleeping) {
                break;
            }
            assert!(Instant::now() < end, "{found:?}");
        }
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
    }
}
