//! Programs that are killed or interrupted: nothing that was published is lost, and the exit code
//! is the one that a shell would give.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::command::{Running, Scratch, arguments};
use crate::expected::Findings;
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("signal::killed_halfway", killed_halfway));
    trials.push(trial("signal::interrupted_at_the_terminal", interrupted));
    trials.push(trial("signal::terminated_through_the_command", terminated));
    trials.push(trial("signal::ignores_sigint", ignores_sigint));
}

/// Starts `killed_halfway` and waits until it has issued all of its work.
fn start_killed_halfway(scratch: &Scratch) -> Running {
    let mut running = scratch.start(&mut wrapped(scratch, "killed_halfway"));
    running.wait_for_line("killed_halfway: ready");
    running
}

/// `streamsan run` on a C program, in a process group of its own as a shell would start it.
fn wrapped(scratch: &Scratch, name: &str) -> Command {
    let program = programs::c(name, scratch.path());
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let mut command = scratch.streamsan(&arguments(&["run", "--sim"], &options, &run));
    command.process_group(0).stdin(Stdio::piped());
    command
}

fn pid(running: &Running) -> Pid {
    Pid::from_child(&running.child)
}

/// The one child process of the command: the program.
fn program_of(command: Pid) -> Pid {
    let parent = command.as_raw_nonzero().to_string();
    let children: Vec<Pid> = fs::read_dir("/proc")
        .expect("there is a /proc")
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let process = entry.file_name().to_str()?.parse::<i32>().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // pid (name) state ppid ...; the name may hold anything, a parenthesis included.
            let (_, rest) = stat.rsplit_once(") ")?;
            (rest.split(' ').nth(1)? == parent).then(|| Pid::from_raw(process))?
        })
        .collect();
    let [program] = children.as_slice() else { panic!("not one child: {children:?}") };
    *program
}

/// The trace opens, is analysed again, and holds each of the 1000 memsets.
#[track_caller]
fn expect_all_memsets(scratch: &Scratch) {
    expect_memsets(&scratch.trace(), 1000);
    let check = [OsStr::new("check"), scratch.trace().as_os_str()].map(OsStr::to_owned);
    let check: Vec<&OsStr> = check.iter().map(|argument| argument.as_os_str()).collect();
    scratch.finish(&mut scratch.streamsan(&check)).expect_code(0);
}

#[track_caller]
fn expect_memsets(trace: &Path, expected: i64) {
    let trace = Connection::open_with_flags(trace, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("the trace opens");
    let memsets: i64 = trace
        .query_row(
            "select count(*) from op join string on string.id = op.api \
             where string.value = 'cuMemsetD8Async'",
            (),
            |row| row.get(0),
        )
        .expect("operations name their entry point");
    assert_eq!(memsets, expected);
}

fn killed_halfway() {
    let scratch = Scratch::new();
    let running = start_killed_halfway(&scratch);
    kill_process(program_of(pid(&running)), Signal::KILL).expect("it can be killed");
    running.wait().expect_code(128 + 9);
    expect_all_memsets(&scratch);
}

/// Ctrl-C goes to the whole foreground group: the program ends of it, the command finishes.
fn interrupted() {
    let scratch = Scratch::new();
    let running = start_killed_halfway(&scratch);
    kill_process_group(pid(&running), Signal::INT).expect("it can be interrupted");
    running.wait().expect_code(128 + 2);
    expect_all_memsets(&scratch);
}

/// A supervisor knows only the command's own process id.
fn terminated() {
    let scratch = Scratch::new();
    let running = start_killed_halfway(&scratch);
    kill_process(pid(&running), Signal::TERM).expect("it can be terminated");
    running.wait().expect_code(128 + 15);
    expect_all_memsets(&scratch);
}

fn ignores_sigint() {
    let scratch = Scratch::new();
    let mut running = scratch.start(&mut wrapped(&scratch, "ignores_sigint"));
    running.wait_for_line("ignores_sigint: ready");
    kill_process_group(pid(&running), Signal::INT).expect("it can be interrupted");
    let mut input = running.child.stdin.take().expect("its input is a pipe");
    input.write_all(b"go on\n").expect("it still reads");
    drop(input);
    let ended = running.wait();
    ended.expect_code(66);
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(stdout, "ignores_sigint: ready\nignores_sigint: done\n");
    let found = Findings::from_report(&scratch.report()).to_string();
    assert_eq!(found, "race missing-wait WAW certain 1");
}
