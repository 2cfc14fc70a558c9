//! `run --view` in a real terminal: tmux presses keys and reads the screen, while a program goes on
//! until it is told to end.

use std::fs;
use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use streamsan_store::Reader;
use streamsan_testing::terminal::Terminal;

use crate::chaos::child_of;
use crate::command::{PATIENCE, Scratch, streamsan};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("live::seen_to_its_end", seen_to_its_end));
    trials.push(trial("live::left_early", left_early));
    trials.push(trial("live::interrupted", interrupted));
    trials.push(trial("live::terminated", terminated));
    trials.push(trial("live::loses_its_terminal", loses_its_terminal));
    trials.push(trial("live::no_terminal", no_terminal));
    trials.push(trial("live::panics", panics));
}

/// A program that goes on, run in a shell in a terminal of its own, which ends with the test.
struct Viewed {
    terminal: Terminal,
    scratch: Scratch,
}

impl Deref for Viewed {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

impl Viewed {
    fn start(name: &str, environment: &str, code: &str) -> Self {
        let scratch = Scratch::new();
        let program = programs::c("goes_on", scratch.path());
        let script = format!(
            // A shell ends when what it waits for is interrupted.
            "trap : INT; LC_ALL=C.UTF-8 {environment} '{}' run --sim --view -o trace.db -- '{}' {code}; \
             echo left with $?; cat",
            streamsan().display(),
            program.display()
        );
        // The environment is the one of every command here.
        let tmux = scratch.command("tmux".as_ref(), &[]);
        Self { terminal: Terminal::start(name, (100, 30), tmux, &script), scratch }
    }

    /// The program is seen to run, and what it prints has come to the file beside the trace.
    #[track_caller]
    fn has_begun(&self) {
        self.shows("running, following (F)");
        self.operations();
        self.until("two lines of the program", |_| {
            let output = fs::read(self.scratch.file("trace.db.out")).unwrap_or_default();
            output.starts_with(b"step 1\nstep 2\n")
        });
    }

    /// The process of the command.
    #[track_caller]
    fn command(&self) -> rustix::process::Pid {
        let process = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = String::from_utf8_lossy(&process.stdout).trim().to_owned();
        let shell = shell.parse().ok().and_then(rustix::process::Pid::from_raw);
        child_of(shell.expect("a process id")).expect("one child")
    }

    /// Tells the program something.
    fn tell(&self, what: &str) {
        fs::write(self.scratch.file(what), "").expect("there is room");
    }

    /// Operations that the first line counts.
    #[track_caller]
    fn operations(&self) -> u64 {
        let count = |screen: &str| -> Option<u64> {
            let (before, _) = screen.lines().next()?.split_once(" operations")?;
            before.rsplit(' ').next()?.replace(',', "").parse().ok()
        };
        count(&self.until("a number", |screen| count(screen).is_some())).expect("it was there")
    }

    /// The trace is one whole file, and the program's output lies beside it.
    #[track_caller]
    fn check_files(&self) -> Reader {
        let output = fs::read_to_string(self.scratch.file("trace.db.out")).expect("it is text");
        assert!(output.starts_with("step 1\nstep 2\n"), "{output}");
        let trace = self.scratch.trace();
        for suffix in ["db-wal", "db-shm"] {
            assert!(!trace.with_extension(suffix).exists(), "{suffix} is left");
        }
        Reader::open(&trace).expect("the trace can be read")
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        // The run must not outlive a test that failed, even where a lost terminal ends nothing.
        self.tell("end");
        let begin = Instant::now();
        while !self.screen().contains("left with") && begin.elapsed() < Duration::from_secs(10) {
            if !self.tmux(&["send-keys", "q"]).status.success() {
                // Its server is gone.
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Its timeline grows, what it prints is there, a race shows up as it happens, and the end is told.
fn seen_to_its_end() {
    let terminal = Viewed::start("end", "", "0");
    terminal.shows("running, following (F)");
    let first = terminal.operations();
    terminal.until("more operations", |_| terminal.operations() > first + 20);
    // A program's lines are held back in a pipe; to a terminal they come one by one.
    terminal.keys(&["7"]);
    terminal.shows_all(&["step 1", "0 races"]);
    terminal.tell("race");
    // The program goes on.
    terminal.shows_all(&["1 race", "running"]);
    terminal.keys(&["r"]);
    terminal.keys(&["5"]);
    terminal.shows("error[missing-wait]");
    terminal.shows("race 1/1");
    let before = terminal.operations();
    terminal.until("more operations", |_| terminal.operations() > before);
    // The selection stays.
    terminal.shows("race 1/1");
    terminal.tell("end");
    // The viewer stays.
    terminal.shows_all(&["the program has ended: RACY, exit code 66", "7 output"]);
    terminal.keys(&["7"]);
    terminal.shows("told to end");
    terminal.keys(&["q"]);
    let screen = terminal.shows("left with 66");
    assert!(screen.contains("verdict: RACY"), "{screen}");
    let reader = terminal.check_files();
    assert_eq!(reader.findings().expect("they can be read").len(), 1);
}

/// The run goes on as without the viewer, and ends as without it.
fn left_early() {
    let terminal = Viewed::start("early", "", "7");
    terminal.has_begun();
    terminal.keys(&["q"]);
    let screen = terminal.shows("the viewer was left; the program runs on");
    assert!(!screen.contains("left with"), "{screen}");
    // Its output is on the terminal again.
    terminal.shows("step ");
    terminal.tell("end");
    let screen = terminal.shows("left with 7");
    assert!(screen.contains("told to end") && screen.contains("verdict: CLEAN"), "{screen}");
    terminal.check_files();
}

/// Ctrl-C is the program's, as in any terminal.
fn interrupted() {
    let terminal = Viewed::start("interrupt", "", "0");
    terminal.has_begun();
    terminal.keys(&["C-c"]);
    terminal.shows("the program has ended: CLEAN, exit code 130");
    // Nothing runs any more: now it leaves.
    terminal.keys(&["C-c"]);
    let screen = terminal.shows("left with 130");
    assert!(screen.contains("verdict: CLEAN"), "{screen}");
    terminal.check_files();
}

/// Who ends the command ends the program, and is not kept waiting by the viewer.
fn terminated() {
    let terminal = Viewed::start("terminate", "", "0");
    terminal.has_begun();
    rustix::process::kill_process(terminal.command(), rustix::process::Signal::TERM)
        .expect("it runs");
    terminal.shows("left with 143");
    terminal.check_files();
}

/// Whose terminal goes is told so by a signal, as everybody in it: nothing is left running, and the
/// trace is whole.
fn loses_its_terminal() {
    let terminal = Viewed::start("hangup", "", "0");
    terminal.has_begun();
    let command = terminal.command();
    terminal.tmux(&["kill-server"]);
    let begin = Instant::now();
    // Who adopts it may never ask for its exit status.
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", command.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        assert!(begin.elapsed() < PATIENCE, "the command runs on");
        thread::sleep(Duration::from_millis(50));
    }
    terminal.check_files();
}

/// The run outlives a failure of its viewer, which gives the terminal back.
fn panics() {
    let terminal = Viewed::start("panics", "STREAMSAN_VIEWER_PANIC=3", "7");
    terminal.shows_all(&["the viewer failed; the program runs on", "a panic was asked for"]);
    terminal.is_a_shells();
    terminal.tell("end");
    terminal.shows("left with 7");
    terminal.check_files();
}

fn no_terminal() {
    let scratch = Scratch::new();
    let arguments = ["run", "--sim", "--view", "--", "true"].map(AsRef::as_ref);
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));
    ended.expect_code(125);
    assert!(ended.stderr.contains("--view draws on a terminal"), "{}", ended.stderr);
}
