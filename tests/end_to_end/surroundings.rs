//! The surroundings of the program: who started the command and with which signals ignored, process
//! id namespaces, a cleaned environment, processes that outlive the program, a collector that dies.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::chaos::child_of;
use crate::command::{Running, Scratch, arguments, streamsan, until};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("surroundings::cleaned_environment", cleaned_environment));
    trials.push(trial("surroundings::other_pid_namespace", other_pid_namespace));
    trials.push(trial("surroundings::interrupt_for_the_command_alone", interrupted_alone));
    trials.push(trial("surroundings::ignored_hangup_stays_ignored", nohup));
    trials.push(trial("surroundings::ignored_sigchld", ignored_sigchld));
    trials.push(trial("surroundings::not_waiting_any_longer", not_waiting));
    trials.push(trial("surroundings::killed_collector", killed_collector));
    trials.push(trial("surroundings::short_processes_in_a_row", short_processes));
    trials.push(trial("surroundings::stopped_collector", stopped_collector));
    trials.push(trial("surroundings::allocator_of_torch", allocator_of_torch));
}

/// `streamsan run` on a C program, started by way of a shell script that gets the whole command
/// line as `"$@"`; inside, `within` comes before the program.
fn by_way_of(scratch: &Scratch, script: &str, within: &[&str], name: &str) -> Command {
    let program = programs::c(name, scratch.path());
    let mut arguments: Vec<OsString> = ["-c", script, "sh"].map(OsString::from).into();
    arguments.extend([streamsan().into(), "run".into(), "--sim".into()]);
    arguments.extend(scratch.run_options());
    arguments.push("--".into());
    arguments.extend(within.iter().map(OsString::from));
    arguments.push(program.into());
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let mut command = scratch.command(Path::new("sh"), &arguments);
    command.process_group(0).stdin(Stdio::piped());
    command
}

fn plainly(scratch: &Scratch, within: &[&str], name: &str) -> Command {
    by_way_of(scratch, "exec \"$@\"", within, name)
}

fn pid(running: &Running) -> Pid {
    Pid::from_child(&running.child)
}

/// Writes the file that `ignores_sigint` waits for.
fn go_on(running: &mut Running) {
    let mut input = running.child.stdin.take().expect("its input is a pipe");
    input.write_all(b"go on\n").expect("it still reads");
}

/// The program finds both of PyTorch's variables, and is told where that made no difference; one
/// that asks for another allocator is a mistake.
fn allocator_of_torch() {
    let scratch = Scratch::new();
    let run = |set: Option<&str>| {
        let script = "echo $PYTORCH_CUDA_ALLOC_CONF; echo $PYTORCH_ALLOC_CONF";
        let options = scratch.run_options();
        let mut arguments = ["run", "--sim", "--torch-allocator=async"].map(OsStr::new).to_vec();
        arguments.extend(options.iter().map(OsString::as_os_str));
        arguments.extend(["--", "sh", "-c", script].map(OsStr::new));
        let mut command = scratch.streamsan(&arguments);
        command.env_remove("PYTORCH_CUDA_ALLOC_CONF").env_remove("PYTORCH_ALLOC_CONF");
        command.envs(set.map(|value| ("PYTORCH_CUDA_ALLOC_CONF", value)));
        scratch.finish(&mut command)
    };
    let (alone, split) = ("backend:cudaMallocAsync", "max_split_size_mb:64");
    for (set, expected) in [(None, alone.to_owned()), (Some(split), format!("{split},{alone}"))] {
        let ended = run(set);
        ended.expect_code(0);
        let stdout = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(stdout, format!("{expected}\n{expected}\n"));
        // The shell is no PyTorch.
        assert!(ended.stderr.contains("--torch-allocator changed nothing"), "{}", ended.stderr);
    }
    let program = programs::rust("pool_reuse");
    let options = scratch.run_options();
    let first = ["run", "--sim", "--torch-allocator=async"];
    let pooled = [OsStr::new("--"), program.as_os_str(), OsStr::new("clean")];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &pooled)));
    ended.expect_code(0);
    assert!(!ended.stderr.contains("changed nothing"), "{}", ended.stderr);
    let ended = run(Some("backend:native"));
    ended.expect_code(125);
    ended.expect_one_paragraph(&["PYTORCH_CUDA_ALLOC_CONF", "--torch-allocator"]);
}

/// The shell is recorded, the program that it starts is not: that must not pass for a clean run.
fn cleaned_environment() {
    let scratch = Scratch::new();
    let shell = ["sh", "-c", "env -i LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\" \"$0\"; exit"];
    let mut running = scratch.start(&mut plainly(&scratch, &shell, "ignores_sigint"));
    running.wait_for_message("is not recorded");
    go_on(&mut running);
    running.wait().expect_code(3);
    assert_eq!(scratch.report()["reasons"][0]["kind"], "not-attached", "{:#}", scratch.report());
}

/// The process id that the program knows of itself is another process's here.
fn other_pid_namespace() {
    let scratch = Scratch::new();
    let unshare = ["unshare", "--map-root-user", "--pid", "--fork"];
    let mut running = scratch.start(&mut plainly(&scratch, &unshare, "ignores_sigint"));
    running.wait_for_line("ignores_sigint: ready");
    // Longer than the collector goes without looking who still lives. What is expected does not
    // depend on it: a collector that has not looked yet has nothing to get wrong.
    thread::sleep(Duration::from_millis(200));
    go_on(&mut running);
    running.wait().expect_code(66);
    assert_eq!(scratch.report()["findings"][0]["count"], 1, "{:#}", scratch.report());
}

fn interrupted_alone() {
    for (signal, code) in [(Signal::INT, 130), (Signal::QUIT, 131)] {
        let scratch = Scratch::new();
        let mut running = scratch.start(&mut plainly(&scratch, &[], "killed_halfway"));
        running.wait_for_line("killed_halfway: ready");
        kill_process(pid(&running), signal).expect("it can be signalled");
        running.wait().expect_code(code);
    }
}

fn nohup() {
    let scratch = Scratch::new();
    let script = "trap '' HUP; exec \"$@\"";
    let mut running = scratch.start(&mut by_way_of(&scratch, script, &[], "ignores_sigint"));
    running.wait_for_line("ignores_sigint: ready");
    kill_process(pid(&running), Signal::HUP).expect("it can be signalled");
    go_on(&mut running);
    running.wait().expect_code(66);
    let ignored = ["sh", "-c", "kill -HUP $$; exec \"$0\""];
    let mut running = scratch.start(&mut by_way_of(&scratch, script, &ignored, "exits_7"));
    drop(running.child.stdin.take());
    running.wait().expect_code(7);
}

/// Whoever ignores SIGCHLD leaves that to the programs it starts.
fn ignored_sigchld() {
    let scratch = Scratch::new();
    let script = "trap '' CHLD; exec \"$@\"";
    let running = scratch.start(&mut by_way_of(&scratch, script, &[], "exits_7"));
    running.wait().expect_code(7);
}

/// Ctrl-C ends the waiting for a process that never stops; what it did until then is there, and
/// the verdict says that the rest is not.
fn not_waiting() {
    let scratch = Scratch::new();
    let mut running = scratch.start(&mut plainly(&scratch, &[], "calls_without_end"));
    running.wait_for_message("waiting for processes");
    let printed = running.printed();
    kill_process(pid(&running), Signal::INT).expect("it can be signalled");
    let ended = running.wait();
    let stays = printed.trim().strip_prefix("calls_without_end: ").expect("it says who stays");
    let stays = Pid::from_raw(stays.parse().expect("a process id")).expect("not zero");
    kill_process(stays, Signal::KILL).expect("it still runs");
    ended.expect_code(3);
    let report = scratch.report();
    let reasons = report["reasons"].as_array().expect("a list");
    assert!(reasons.iter().any(|reason| reason["kind"] == "truncated-trace"), "{report:#}");
}

/// Each of ten short programs in a row says hello and is believed, however soon it has ended.
fn short_processes() {
    let scratch = Scratch::new();
    let row = "for n in 1 2 3 4 5 6 7 8 9 10; do \"$0\"; [ $? = 7 ] || exit 1; done";
    scratch.finish(&mut plainly(&scratch, &["sh", "-c", row], "exits_7")).expect_code(0);
    assert_eq!(scratch.report()["verdict"], "CLEAN");
    let trace = Connection::open_with_flags(scratch.trace(), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let recorded: i64 = trace
        .and_then(|trace| {
            trace.query_row("SELECT count(DISTINCT process) FROM op", (), |r| r.get(0))
        })
        .expect("the trace opens");
    assert_eq!(recorded, 10);
}

/// Waits until a program has waited for room in its ring for more than a second. It sleeps then, and
/// takes no further index from the control file. A program that only gets no processor does not sleep.
fn wait_until_it_waited(program: Pid) {
    // The program counts no more than this of a longer step.
    const LONGEST_STEP: Duration = Duration::from_millis(100);
    let of_program = format!("/proc/{}", program.as_raw_nonzero());
    let environment = fs::read(format!("{of_program}/environ")).expect("it is our own program");
    let directory = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"STREAMSAN_RUN_DIR="))
        .map(|path| Path::new(OsStr::from_bytes(path)).join("control"))
        .expect("the program is told");
    let (seen, asleep) = (RefCell::new(Vec::new()), Cell::new(Duration::ZERO));
    let looked = Cell::new(Instant::now());
    until("a program that waits", || {
        let stat = fs::read_to_string(format!("{of_program}/stat")).expect("it still runs");
        let sleeps = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        let now = fs::read(&directory).expect("the run goes on");
        let step = looked.replace(Instant::now()).elapsed().min(LONGEST_STEP);
        if seen.replace(now.clone()) != now {
            asleep.set(Duration::ZERO);
        } else if sleeps {
            asleep.set(asleep.get() + step);
        }
        asleep.get() > Duration::from_millis(1500)
    });
}

/// The command is stopped for a while, as a machine that is busy does to it. The program waits.
fn stopped_collector() {
    let scratch = Scratch::new();
    let mut running = scratch.start(&mut plainly(&scratch, &[], "waits_for_input"));
    running.wait_for_line("waits_for_input: ready");
    let program = child_of(pid(&running)).expect("it runs");
    kill_process(pid(&running), Signal::STOP).expect("it can be stopped");
    go_on(&mut running);
    wait_until_it_waited(program);
    kill_process(pid(&running), Signal::CONT).expect("it can go on");
    let ended = running.wait();
    assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
    assert!(ended.stderr.contains("s for the recording, its threads together"), "{}", ended.stderr);
    ended.expect_code(0);
    let trace = scratch.trace();
    let stats = ["stats", "--json"].map(OsStr::new);
    let stats = [stats[0], stats[1], trace.as_os_str()];
    let stats = scratch.finish(&mut scratch.streamsan(&stats));
    let stats: Value = serde_json::from_slice(&stats.stdout).expect("the facts are JSON");
    assert_eq!(stats["dropped"], 0);
    assert!(stats["waited_ms"].as_u64() >= Some(1000), "{}", stats["waited_ms"]);
}

/// The program goes on unharmed, and what was stored before opens.
fn killed_collector() {
    let (scratch, reader) = (Scratch::new(), Scratch::new());
    let mut running = scratch.start(&mut plainly(&scratch, &[], "ignores_sigint"));
    running.wait_for_line("ignores_sigint: ready");
    let trace = scratch.trace();
    let check = [OsStr::new("check"), trace.as_os_str()];
    let check = || reader.finish(&mut reader.streamsan(&check));
    // The program may be quicker than the beginning of its trace; a live trace is incomplete.
    until("the beginning of the trace", || check().status.code() == Some(3));
    kill_process(pid(&running), Signal::KILL).expect("it can be killed");
    go_on(&mut running);
    running.wait_for_last_line("ignores_sigint: done");
    check().expect_code(3);
}
