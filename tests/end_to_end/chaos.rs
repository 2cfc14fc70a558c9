//! A run to which something happens at a random moment: a process is killed, the disk is full,
//! descriptors, memory or threads run out, a file is renamed, removed or cut short.
//!
//! The invariant, whatever happens and whenever: the verdict of `run` is never better than what
//! happened allows, the verdict of `check` on what is left is never better than that of `run`, and
//! a program that races to its end is never CLEAN. Nothing is concluded from how long a run takes.
//!
//! The moments come from a seed, but what a moment hits depends on the machine: a failure names the
//! seed and what happened, and `STREAMSAN_CHAOS_ROUNDS` asks for more rounds than the few of a
//! usual test.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use crate::command::{Ended, Running, Scratch, arguments};
use crate::random_traces::Random;
use crate::{programs, trial};

/// Rounds of each trial where the environment does not say otherwise.
const ROUNDS: u64 = 3;
/// The last moment at which something happens: about as long as the program takes.
const LAST_MOMENT_MS: u64 = 600;

/// The harm that comes to a run.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// The collector is killed.
    CollectorKilled,
    /// The program is killed.
    ProgramKilled,
    /// No file of the collector may grow any more.
    DiskFull,
    /// The collector opens nothing more.
    NoDescriptors,
    /// The collector gets no more memory.
    NoMemory,
    /// The trace has another name.
    TraceRenamed,
    /// The trace has no name.
    TraceRemoved,
    /// The trace ends in its middle.
    TraceCutShort,
    /// A page of the trace stands where another one stood.
    TracePageReplaced,
}

impl Harm {
    const ALL: [(&'static str, Self); 9] = [
        ("chaos::collector_killed", Self::CollectorKilled),
        ("chaos::program_killed", Self::ProgramKilled),
        ("chaos::disk_full", Self::DiskFull),
        ("chaos::no_descriptors", Self::NoDescriptors),
        ("chaos::no_memory", Self::NoMemory),
        ("chaos::trace_renamed", Self::TraceRenamed),
        ("chaos::trace_removed", Self::TraceRemoved),
        ("chaos::trace_cut_short", Self::TraceCutShort),
        ("chaos::trace_page_replaced", Self::TracePageReplaced),
    ];

    /// Lets it happen. What is gone already cannot be harmed any more.
    fn happen(self, collector: Pid, program: Option<Pid>, trace: &Path, random: &mut Random) {
        match self {
            Self::CollectorKilled => {
                let _ = kill_process(collector, Signal::KILL);
            }
            Self::ProgramKilled => {
                if let Some(program) = program {
                    let _ = kill_process(program, Signal::KILL);
                }
            }
            Self::DiskFull => {
                let size = fs::metadata(trace).map_or(0, |file| file.len());
                limit(collector, Resource::Fsize, size + random.below(1 << 16));
            }
            Self::NoDescriptors => limit(collector, Resource::Nofile, 0),
            Self::NoMemory => limit(collector, Resource::As, random.below(64) << 20),
            Self::TraceRenamed => drop(fs::rename(trace, renamed(trace))),
            Self::TraceRemoved => drop(fs::remove_file(trace)),
            Self::TraceCutShort => {
                if let Ok(file) = OpenOptions::new().write(true).open(trace) {
                    let size = file.metadata().map_or(0, |file| file.len());
                    drop(file.set_len(random.below(size + 1)));
                }
            }
            Self::TracePageReplaced => drop(replace_page(trace, random)),
        }
    }
}

fn limit(process: Pid, resource: Resource, most: u64) {
    // A process that has ended cannot be limited.
    let _ = prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) });
}

fn renamed(trace: &Path) -> PathBuf {
    trace.with_extension("renamed")
}

/// Copies one page of the file over another one, as a disk does that wrote to the wrong place.
fn replace_page(trace: &Path, random: &mut Random) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    const PAGE: u64 = 4096;
    let file = OpenOptions::new().read(true).write(true).open(trace)?;
    let pages = file.metadata()?.len() / PAGE;
    if pages < 2 {
        return Ok(());
    }
    let mut page = vec![0; PAGE as usize];
    file.read_exact_at(&mut page, random.below(pages) * PAGE)?;
    file.write_all_at(&page, random.below(pages) * PAGE)
}

/// The verdicts of a run or a check, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Clean,
    /// INCOMPLETE, or that nothing can be said, or nothing.
    Nothing,
    Racy,
}

/// The verdict of a run, whose program may have ended as it liked.
fn said_by_run(ended: &Ended) -> Said {
    let verdict = ended.stderr.lines().rev().find_map(|line| line.strip_prefix("verdict: "));
    match verdict.and_then(|verdict| verdict.split(' ').next()) {
        Some("CLEAN") => Said::Clean,
        Some("RACY") => Said::Racy,
        _ => Said::Nothing,
    }
}

fn said_by_check(scratch: &Scratch, trace: &Path) -> (Said, String) {
    let check = [OsStr::new("check"), trace.as_os_str()];
    let ended = scratch.finish(&mut scratch.streamsan(&check));
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let said = match ended.status.code() {
        Some(0) => Said::Clean,
        Some(1) => Said::Racy,
        Some(3 | 5) => Said::Nothing,
        other => panic!("check ends with {other:?}: {}", ended.stderr),
    };
    (said, ended.stderr)
}

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (name, harm) in Harm::ALL {
        trials.push(trial(name, move || rounds(harm)));
    }
}

fn rounds(harm: Harm) {
    let asked = std::env::var("STREAMSAN_CHAOS_ROUNDS").ok();
    let rounds = asked.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let built = Scratch::new();
    for (name, races) in [("races_now_and_then", true), ("many_operations", false)] {
        let program = programs::c(name, built.path());
        (0..rounds).for_each(|seed| round(harm, seed, &program, races));
    }
}

fn round(harm: Harm, seed: u64, program_path: &Path, races: bool) {
    let scratch = Scratch::new();
    let mut random = Random::of_seed(seed);
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program_path.as_os_str()];
    let running =
        scratch.start(&mut scratch.streamsan(&arguments(&["run", "--sim"], &options, &run)));
    let collector = Pid::from_child(&running.child);
    thread::sleep(Duration::from_millis(random.below(LAST_MOMENT_MS)));
    let program = child_of(collector);
    harm.happen(collector, program, &scratch.trace(), &mut random);
    let ended = finish(running, program);

    let what = || {
        let program = program_path.display();
        format!("{harm:?}, seed {seed}, {program}: {}\n{}", ended.status, ended.stderr)
    };
    // Rust's library ends a process in which a new thread finds no memory for its signal stack. Such
    // a run says nothing, which is all that the rest asks of it.
    let no_thread = matches!(harm, Harm::NoMemory)
        && ended.stderr.contains("failed to allocate an alternative stack");
    assert!(no_thread || !ended.stderr.contains("panicked"), "{}", what());
    let by_run = said_by_run(&ended);
    let killed = matches!(harm, Harm::ProgramKilled) && ended.status.code() == Some(128 + 9);
    // A program that was killed before its first race had none.
    assert!(!races || killed || by_run != Said::Clean, "{}", what());
    for trace in [scratch.trace(), renamed(&scratch.trace())] {
        if !trace.exists() {
            continue;
        }
        let (by_check, stderr) = said_by_check(&scratch, &trace);
        assert!(!races || killed || by_check != Said::Clean, "{}\ncheck: {stderr}", what());
        assert!(by_check >= by_run || by_run == Said::Racy, "{}\ncheck: {stderr}", what());
        // A collector that is killed behind its last word to the trace cannot say the same aloud.
        let silenced = ended.status.signal() == Some(9) || no_thread;
        let agreed = by_check != Said::Clean || by_run == Said::Clean || silenced;
        assert!(agreed, "{}\ncheck: {stderr}", what());
    }
}

/// Waits for the command, and for the program if the command left it behind.
fn finish(running: Running, program: Option<Pid>) -> Ended {
    let ended = running.wait();
    if ended.status.signal().is_some()
        && let Some(program) = program
    {
        // It is the test's to end: nobody else waits for it.
        let _ = kill_process(program, Signal::KILL);
    }
    ended
}

/// The program that the command runs, if it has started one.
pub(crate) fn child_of(command: Pid) -> Option<Pid> {
    let command = command.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{command}/task/{command}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
}
