//! The command from outside, with ordinary programs that make no CUDA call: what it passes on,
//! what it says, how it ends. Programs that use the driver are tested in the end-to-end package.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use streamsan_testing::signals;

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        signals::do_not_inherit_ignored();
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("NO_COLOR", "1")
            .env_remove("LD_PRELOAD");
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Output {
        finish(&mut self.command(arguments), code)
    }

    fn files(&self, extension: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("readable");
        let names = entries.map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| Path::new(name).extension() == Some(OsStr::new(extension)));
        names
    }
}

#[track_caller]
fn finish(command: &mut Command, code: i32) -> Output {
    let output = command.output().expect("started");
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn exit_codes_of_the_program_are_passed_on() {
    let bench = Bench::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -2 $$", 130)] {
        bench.run(&["run", "--", "sh", "-c", script], code);
    }
}

#[test]
fn exit_codes_of_the_launcher_are_those_of_env() {
    let bench = Bench::new();
    fs::write(bench.path().join("plain"), "text").expect("written");
    for (arguments, code) in [
        (&["run", "no-such-program"][..], 127),
        (&["run", "./no-such-program"], 127),
        (&["run", "./plain"], 126),
        (&["run", "."], 126),
        (&["run", "./"], 126),
        (&["run", "--sim=sideways", "true"], 125),
        (&["run", "-o", "plain/trace.db", "true"], 125),
        (&["run", "-o", "", "true"], 125),
        (&["run", "-o", "/dev/full", "true"], 125),
        (&["run", "-o", "%q{STREAMSAN_UNSET}.db", "true"], 125),
        (&["run", "--report", "xml=x", "true"], 125),
        (&["run"], 125),
    ] {
        let output = bench.run(arguments, code);
        assert!(!stderr(&output).is_empty(), "{arguments:?}");
        assert!(stdout(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn standard_output_is_the_programs_own() {
    let bench = Bench::new();
    let output = bench.run(&["run", "--", "printf", "a\\0b\\n"], 0);
    assert_eq!(output.stdout, b"a\0b\n");
    assert!(stderr(&output).contains("verdict: NO CUDA"), "{}", stderr(&output));
}

#[test]
fn trace_is_named_after_the_program() {
    let bench = Bench::new();
    let output = bench.run(&["run", "--", "sh", "-c", "echo $$"], 0);
    assert_eq!(bench.files("db"), [format!("streamsan-{}.db", stdout(&output).trim())]);
}

#[test]
fn names_take_the_environment() {
    let bench = Bench::new();
    let arguments = ["run", "-o", "%q{JOB}.db", "--report", "json=%q{JOB}.json", "--", "true"];
    finish(bench.command(&arguments).env("JOB", "nightly"), 0);
    assert_eq!(
        (bench.files("db"), bench.files("json")),
        (vec!["nightly.db".to_owned()], vec!["nightly.json".to_owned()],)
    );
}

#[test]
fn existing_preloads_stay_behind_the_runtime() {
    let bench = Bench::new();
    let fenced = ["libstreamsan_runtime.so", "libstreamsan_host_accesses.so", "libpthread.so.0"];
    let not_fenced = ["libstreamsan_runtime.so", "libpthread.so.0"];
    let runs = [("fence", &fenced[..]), ("off", &not_fenced[..])];
    for (how, expected) in runs {
        let how = format!("--host-accesses={how}");
        let arguments = ["run", &how, "--", "sh", "-c", "echo $LD_PRELOAD"];
        // A library that is there everywhere and does no harm.
        let output = finish(bench.command(&arguments).env("LD_PRELOAD", "libpthread.so.0"), 0);
        let list = stdout(&output);
        let names = list.trim().split(':').map(|path| path.rsplit('/').next().unwrap_or(path));
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn simulated_driver_is_found_under_both_names() {
    let bench = Bench::new();
    let script =
        "cd ${LD_LIBRARY_PATH%%:*} && ls libcuda.so libcuda.so.1 && echo $STREAMSAN_SIM_POLICY";
    let output = bench.run(&["run", "--sim=random:5", "--", "sh", "-c", script], 0);
    assert_eq!(stdout(&output), "libcuda.so\nlibcuda.so.1\nrandom:5\n");
}

#[test]
fn program_without_any_cuda_call_can_be_refused() {
    let bench = Bench::new();
    bench.run(&["run", "true"], 0);
    bench.run(&["run", "--require-cuda", "true"], 4);
}

/// Nothing seen is not clean, whoever is asked.
#[test]
fn program_without_any_cuda_call_is_not_clean() {
    const WORDS: &str = "no driver call was seen, so there was nothing to check";
    let bench = Bench::new();
    let output = bench.run(&["run", "-o", "a.db", "--", "true"], 0);
    let last = format!("verdict: NO CUDA - {WORDS}\n");
    assert!(stderr(&output).ends_with(&last), "{}", stderr(&output));
    assert!(stdout(&bench.run(&["check", "a.db"], 0)).ends_with(&last));
    let report: serde_json::Value =
        serde_json::from_slice(&bench.run(&["check", "--json", "a.db"], 0).stdout).expect("JSON");
    assert_eq!(report["verdict"], "NO CUDA");
    fs::copy(bench.path().join("a.db"), bench.path().join("b.db")).expect("copied");
    let both = stdout(&bench.run(&["check", "a.db", "b.db"], 0));
    assert!(both.contains("traces: 2 traces, 2 without a driver call\n"), "{both}");
    assert!(both.ends_with(&last), "{both}");
    assert!(stdout(&bench.run(&["stats", "a.db"], 0)).contains(&format!("no CUDA     {WORDS}\n")));
    let stats: serde_json::Value =
        serde_json::from_slice(&bench.run(&["stats", "--json", "a.db"], 0).stdout).expect("JSON");
    assert_eq!(stats["no_cuda"], true);
    fs::write(bench.path().join("empty.trace"), "# nothing\n").expect("written");
    assert!(stdout(&bench.run(&["check", "empty.trace"], 0)).ends_with(&last));
    fs::write(bench.path().join("one.trace"), "launch s1 work w:A\n").expect("written");
    let text = stdout(&bench.run(&["check", "one.trace"], 0));
    assert!(text.contains("verdict: CLEAN"), "{text}");
    let text = stdout(&bench.run(&["diff", "one.trace", "a.db"], 0));
    assert!(text.starts_with(&format!("no CUDA in a.db: {WORDS}\n")), "{text}");
}

#[test]
fn background_jobs_without_cuda_are_not_waited_for() {
    let bench = Bench::new();
    // The job waits for a writer that never comes. The shell ends when the job has begun, and so has
    // said hello.
    let script = "mkfifo held; sh -c ': > begun; read line < held' >/dev/null 2>&1 & \
                  until [ -e begun ]; do :; done; echo $!";
    let output = bench.run(&["run", "--", "sh", "-c", script], 0);
    let job: i32 = stdout(&output).trim().parse().expect("a process id");
    let told = format!("process {job} (");
    assert_eq!(stderr(&output).matches("runs on").count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    let job = rustix::process::Pid::from_raw(job).expect("not zero");
    rustix::process::kill_process(job, rustix::process::Signal::KILL).expect("it still runs");
}

#[test]
fn quiet_leaves_the_verdict() {
    let bench = Bench::new();
    let output = bench.run(&["run", "-q", "--", "true"], 0);
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("verdict: NO CUDA"), "{}", stderr(&output));
}

#[test]
fn traces_are_replaced_and_other_files_are_not() {
    let bench = Bench::new();
    for _ in 0..2 {
        bench.run(&["run", "-o", "a.db", "true"], 0);
    }
    fs::write(bench.path().join("letter.db"), "Dear reader, this is no trace.").expect("written");
    bench.run(&["run", "-o", "letter.db", "true"], 125);
    let letter = fs::read_to_string(bench.path().join("letter.db")).expect("still there");
    assert!(letter.starts_with("Dear reader"));
}

#[test]
fn stored_trace_is_checked_and_counted() {
    let bench = Bench::new();
    bench.run(&["run", "-o", "a.db", "true"], 0);
    let output = bench.run(&["check", "a.db"], 0);
    assert!(stdout(&output).contains("verdict: NO CUDA"), "{}", stdout(&output));
    let output = bench.run(&["stats", "--json", "a.db"], 0);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&stats["processes"], &stats["operations"]), (&1.into(), &0.into()));
    assert_eq!(stats["command"], serde_json::json!(["true"]));
}

#[test]
fn viewer_needs_a_terminal_and_says_what_else_there_is() {
    let bench = Bench::new();
    bench.run(&["run", "-o", "a.db", "true"], 0);
    let output = bench.run(&["view", "a.db"], 2);
    assert!(stdout(&output).is_empty());
    for words in ["terminal", "streamsan check a.db", "streamsan stats a.db"] {
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn text_trace_is_known_by_its_content() {
    let bench = Bench::new();
    let racy = "stream s1 nonblocking\nstream s2 nonblocking\nalloc A 64\n\
                launch s1 w w:A\nlaunch s2 r r:A #~ race RAW 4\n";
    for name in ["racy.trace", "racy"] {
        fs::write(bench.path().join(name), racy).expect("written");
        let output = bench.run(&["check", name], 1);
        assert!(stdout(&output).contains("missing-wait"), "{}", stdout(&output));
        bench.run(&["check", "--expect", name], 0);
    }
    fs::write(bench.path().join("wrong.trace"), racy.replace("#~ race RAW 4", ""))
        .expect("written");
    let output = bench.run(&["check", "--expect", "wrong.trace"], 1);
    assert!(stdout(&output).contains("wrong.trace: line 5"), "{}", stdout(&output));
}

#[test]
fn text_trace_comes_through_a_pipe() {
    let bench = Bench::new();
    let racy = "stream s1 nonblocking\nstream s2 nonblocking\nalloc A 64\n\
                launch s1 w w:A\nlaunch s2 r r:A\n";
    let mut command = bench.command(&["check", "/dev/stdin"]);
    let mut started =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut input = started.stdin.take().expect("a pipe");
    input.write_all(racy.as_bytes()).expect("it reads");
    drop(input);
    assert_eq!(started.wait().expect("it ends").code(), Some(1));
}

#[test]
fn unusable_traces_have_documented_codes() {
    let bench = Bench::new();
    fs::write(bench.path().join("wrong.trace"), "launch s1 fill q:A\n").expect("written");
    fs::write(bench.path().join("noise.db"), [7u8; 5000]).expect("written");
    fs::write(bench.path().join("empty.trace"), "").expect("written");
    fs::write(bench.path().join("noise"), [0xffu8; 5000]).expect("written");
    for (arguments, code) in [
        (&["check", "wrong.trace"][..], 2),
        (&["check", "--expect", "wrong.trace"], 2),
        (&["check", "wrong.trace", "gone.db"], 5),
        (&["check", "gone.db", "noise.db"], 5),
        (&["check", "gone.db"], 5),
        (&["check", "gone.trace"], 5),
        (&["check", "noise.db"], 5),
        (&["check", "noise"], 5),
        (&["check", "empty.trace"], 5),
        (&["check", "--expect", "empty.trace"], 5),
        (&["stats", "noise.db"], 5),
        (&["view", "noise.db"], 5),
        (&["view", "gone.db"], 5),
        (&["view", "wrong.trace"], 2),
        (&["stats", "wrong.trace"], 2),
        (&["stats", "noise"], 5),
        (&["view", "noise"], 5),
        (&["explain", "gone.db"], 5),
        (&["explain", "missing-wiat"], 2),
        (&["explain", "missing-wait", "1"], 2),
    ] {
        let output = bench.run(arguments, code);
        let message = stderr(&output);
        // A line for each trace.
        let lines = if arguments.contains(&"gone.db") { arguments.len() - 1 } else { 1 };
        assert_eq!(message.trim().lines().count(), lines, "{message}");
        assert!(stdout(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn doctor_finds_the_essentials_working() {
    let bench = Bench::new();
    let output = bench.run(&["doctor"], 0);
    let report = stdout(&output);
    assert!(!report.contains("BAD"), "{report}");
    assert!(report.contains("the simulated driver works"), "{report}");
}

/// The program alone speaks, and nothing is recorded, when a test runner asks for its tests.
#[test]
fn listing_of_tests_passes_through_in_silence() {
    let bench = Bench::new();
    let script =
        "echo \"first: test\"; echo \"$LD_PRELOAD$STREAMSAN_RUN_DIR\"; echo own >&2; exit 7";
    let run = ["run", "-o", "traces/%q{UNSET_BY_THE_RUNNER}.db", "--", "sh", "-c", script, "sh"];
    for listing in [&["--list", "--format", "terse"][..], &["--gtest_list_tests"]] {
        let output = bench.run(&[&run[..], listing].concat(), 7);
        assert_eq!(stdout(&output), "first: test\n\n");
        assert_eq!(stderr(&output), "own\n");
        assert!(!bench.path().join("traces").exists());
    }
    // The same without the request is a run like any other, and has mistakes to be told.
    bench.run(&run, 125);
}

/// Nobody makes directories for the processes of a test runner.
#[test]
fn directories_of_outputs_are_made() {
    let bench = Bench::new();
    let (trace, report) = ("traces/unit/a.db", "json=reports/a.json");
    bench.run(&["run", "-o", trace, "--report", report, "--", "true"], 0);
    assert!(bench.path().join(trace).is_file());
    assert!(bench.path().join("reports/a.json").is_file());
    bench.run(&["run", "-o", "traces-%p/a.db", "--", "true"], 125);
    fs::write(bench.path().join("file"), "").expect("written");
    bench.run(&["run", "-o", "file/a.db", "--", "true"], 125);
}

/// Each way to the driver is tried, not supposed; a preloaded library that stands before is told.
#[test]
fn doctor_tells_programs_what_it_finds() {
    let bench = Bench::new();
    let output = bench.run(&["doctor", "--json", "sh"], 0);
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&document["schema"], &document["healthy"]), (&1.into(), &true.into()));
    let checks = document["checks"].as_array().expect("a list");
    let status = |id: &str| {
        let of: Vec<_> = checks.iter().filter(|check| check["check"] == id).collect();
        assert_eq!(of.len(), 1, "{id}: {document:#}");
        of[0]["status"].as_str().expect("a word").to_owned()
    };
    for id in [
        "platform",
        "glibc",
        "injection",
        "simulator",
        "interposition-link",
        "interposition-dlsym",
        "interposition-cuGetProcAddress",
        "program",
    ] {
        assert_eq!(status(id), "ok", "{id}: {document:#}");
    }
    status("driver");
    status("nvdisasm");
    status("sanitizer");
    status("shared-memory");
    bench.run(&["doctor", "no-such-program"], 127);
}

#[test]
fn classes_are_explained_where_no_file_has_their_name() {
    let bench = Bench::new();
    for class in ["missing-wait", "use-after-free", "memop-only-order", "lint-event-rerecorded"] {
        let page = stdout(&bench.run(&["explain", class], 0));
        let name = class.trim_start_matches("lint-");
        assert!(page.starts_with(&format!("{name}\n\n  ")), "{page}");
        for heading in ["\nCUDA C++\n", "\nHow to accept it\n", "\nThe rule of CUDA\n"] {
            assert!(page.contains(heading), "{page}");
        }
        assert!(page.contains("\n      void step("), "the code is indented: {page}");
        for sign in ["```", "## ", "](", "\u{1b}"] {
            assert!(!page.contains(sign), "{sign:?} in {page}");
        }
    }
    let refused = stderr(&bench.run(&["explain", "missing-wiat"], 2));
    for class in streamsan_model::RaceClass::ALL {
        assert!(refused.contains(class.description()), "{refused}");
    }
    let racy = "launch s1 produce w:A\nlaunch s2 consume r:A\n";
    fs::write(bench.path().join("missing-wait"), racy).expect("written");
    let told = stdout(&bench.run(&["explain", "missing-wait"], 0));
    assert!(told.contains("consume") && !told.contains("CUDA C++"), "{told}");
    bench.run(&["explain", "missing-wait", "1"], 0);
}

/// A text trace is counted like a stored one, and streams that only exist are left out.
#[test]
fn text_trace_is_counted_without_its_idle_streams() {
    let bench = Bench::new();
    let text = "stream used\nstream idle\nstream asked\nlaunch used produce w:A\n\
                sync_stream asked\nlaunch_multi used k w:A & s2 k w:B\n";
    fs::write(bench.path().join("in.trace"), text).expect("written");
    fs::create_dir(bench.path().join("tmp")).expect("made");
    let mut command = bench.command(&["stats", "in.trace"]);
    let told = stdout(&finish(command.env("TMPDIR", bench.path().join("tmp")), 0));
    assert!(told.starts_with("text trace  in.trace\nholds "), "{told}");
    let streams = "\noperations by stream\n           3  stream \"used\" (blocking)\n           \
                   1  stream \"s2\" (non-blocking)\n              2 idle streams left out\n";
    assert!(told.contains(streams), "{told}");
    let left = fs::read_dir(bench.path().join("tmp")).expect("readable").count();
    assert_eq!(left, 0, "nothing stays among temporary files");
    let output = bench.run(&["stats", "in.trace", "--json"], 0);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&stats["idle_streams"], &stats["streams"]), (&2.into(), &4.into()));
    assert_eq!(stats["findings"], 0);
}

/// A text trace that cannot be stored for the viewer or the counts is told in a line.
#[test]
fn text_trace_needs_room_among_temporary_files() {
    let bench = Bench::new();
    fs::write(bench.path().join("in.trace"), "launch s1 produce w:A\n").expect("written");
    let command = bench.command(&["stats", "in.trace"]);
    // A limit on the size of files is like a full disk.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args()).current_dir(bench.path());
    let output = finish(&mut limited, 2);
    assert!(stderr(&output).contains("is a text trace"), "{}", stderr(&output));
    assert!(stdout(&output).is_empty());
}

/// Every command that prints colours asks the same rule.
#[test]
fn colours_are_the_users_choice() {
    let bench = Bench::new();
    let racy = "launch s1 produce w:A\nlaunch s2 consume r:A\n";
    fs::write(bench.path().join("in.trace"), racy).expect("written");
    for arguments in
        [&["check", "in.trace"][..], &["explain", "in.trace"], &["explain", "stale-wait"]]
    {
        let is_colored = |option: Option<&str>, environment: &[(&str, &str)]| {
            let mut command = bench.command(arguments);
            command.args(option).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
            let output = command.envs(environment.iter().copied()).output().expect("started");
            assert!(!output.stdout.is_empty(), "{arguments:?}");
            stdout(&output).contains("\u{1b}[1")
        };
        let force = ("CLICOLOR_FORCE", "1");
        assert!(!is_colored(None, &[]), "{arguments:?}: a pipe");
        assert!(is_colored(Some("--color=always"), &[("NO_COLOR", "1")]), "{arguments:?}");
        assert!(is_colored(None, &[force]), "{arguments:?}");
        assert!(!is_colored(None, &[force, ("NO_COLOR", "1")]), "{arguments:?}");
        assert!(!is_colored(Some("--color=never"), &[force]), "{arguments:?}");
    }
    // The report of a run goes to standard error. An option of the program is the program's.
    let run = ["--color=always", "run", "-o", "a.db", "--fail-on", "lint", "echo", "--color=never"];
    let output = bench.run(&run, 0);
    assert_eq!(stdout(&output), "--color=never\n");
    assert!(stderr(&output).contains("\u{1b}[1"), "{}", stderr(&output));
    bench.run(&["check", "in.trace", "--color=sometimes"], 2);
}
