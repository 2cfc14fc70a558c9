//! The command under test: where it is, how it is run, what a run leaves behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A program that hangs must not hang the tests. Nothing is concluded from how long a run takes, so
/// it is far longer than any run takes on a machine that is slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The `streamsan` command. Cargo names only the binaries of a test's own package, so the command
/// is asked of cargo: built already by a build of the whole workspace, and brought up to date here
/// when only this package is tested. `STREAMSAN` names another one.
pub(crate) fn streamsan() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| match std::env::var_os("STREAMSAN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

/// The profile that the tests are built with. target/debug or target/release holds this package's
/// binaries; anything else is a profile's own name.
pub(crate) fn profile() -> &'static str {
    let folder = Path::new(env!("CARGO_BIN_EXE_programs")).parent().expect("it is in a folder");
    match folder.file_name().and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(name) => name,
    }
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    // --workspace and --test, so that dependencies are built with the features that they have
    // already after a build of the tests of the whole workspace: nothing is built twice there.
    let built = Command::new(cargo)
        .args(["build", "--workspace", "--bin", "streamsan", "--test", "end_to_end"])
        .args(["--profile", profile()])
        .args(["--message-format", "json-render-diagnostics", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(built.status.success(), "the command does not build");
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "streamsan")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the command that it built")
}

/// A folder of its own for a test: traces, reports, outputs.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("there is room for a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The trace that [`Self::run_options`] asks for.
    pub(crate) fn trace(&self) -> PathBuf {
        self.file("trace.db")
    }

    /// Options of `run` that leave trace and report in this folder.
    pub(crate) fn run_options(&self) -> Vec<OsString> {
        let mut report = OsString::from("json=");
        report.push(self.file("report.json"));
        vec!["-o".into(), self.trace().into(), "--report".into(), report]
    }

    /// The report of the last run with [`Self::run_options`].
    pub(crate) fn report(&self) -> Value {
        let text = fs::read_to_string(self.file("report.json")).expect("the run leaves a report");
        serde_json::from_str(&text).expect("the report is JSON")
    }

    /// `streamsan` with `arguments`, to be started with [`Self::start`].
    pub(crate) fn streamsan(&self, arguments: &[&OsStr]) -> Command {
        self.command(streamsan(), arguments)
    }

    /// Any command, in the environment that all of them have here.
    pub(crate) fn command(&self, program: &Path, arguments: &[&OsStr]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            // The libraries that the command unpacks stay out of the user's own cache.
            .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
            .env_remove("LD_PRELOAD")
            .env_remove("STREAMSAN_SIM_POLICY")
            .env_remove("STREAMSAN_RUN_DIR");
        command
    }

    /// Starts a command with its output going to files of this folder.
    pub(crate) fn start(&self, command: &mut Command) -> Running {
        let (stdout, stderr) = (self.file("stdout"), self.file("stderr"));
        let open = |path: &Path| File::create(path).expect("there is room for its output");
        let child = command.stdout(open(&stdout)).stderr(open(&stderr)).spawn();
        Running { child: child.expect("the command starts"), stdout, stderr }
    }

    /// Runs a command to its end, without input.
    pub(crate) fn finish(&self, command: &mut Command) -> Ended {
        self.start(command.stdin(Stdio::null())).wait()
    }
}

/// A started command.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Waits until the command has printed `line`.
    pub(crate) fn wait_for_line(&mut self, line: &str) {
        let stdout = self.stdout.clone();
        self.wait_for(&stdout, line);
    }

    /// Waits until the command has said `words` on standard error.
    pub(crate) fn wait_for_message(&mut self, words: &str) {
        let stderr = self.stderr.clone();
        self.wait_for(&stderr, words);
    }

    /// The command's output so far.
    pub(crate) fn printed(&self) -> String {
        so_far(&self.stdout)
    }

    /// Waits until `line` has been printed by a program that outlives the command.
    pub(crate) fn wait_for_last_line(self, line: &str) {
        let patience = Instant::now() + PATIENCE;
        while !self.printed().contains(line) {
            assert!(Instant::now() < patience, "never printed {line:?}: {}", self.read_stderr());
            thread::sleep(Duration::from_millis(5));
        }
        self.wait();
    }

    fn wait_for(&mut self, output: &Path, line: &str) {
        let patience = Instant::now() + PATIENCE;
        loop {
            // Asked before the look: its last words may lie between the two.
            let ended = self.child.try_wait().expect("its state is known");
            if so_far(output).contains(line) {
                break;
            }
            if let Some(status) = ended {
                panic!("ended ({status}) before it printed {line:?}: {}", self.read_stderr());
            }
            assert!(Instant::now() < patience, "never printed {line:?}: {}", self.read_stderr());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Ended {
        let patience = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state is known") {
                break status;
            }
            if Instant::now() >= patience {
                self.child.kill().expect("it can be killed");
                panic!("still running, so killed: {}", self.read_stderr());
            }
            thread::sleep(Duration::from_millis(5));
        };
        let stdout = fs::read(&self.stdout).expect("its output is readable");
        Ended { status, stdout, stderr: self.read_stderr() }
    }

    fn read_stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).expect("its output is readable")).into()
    }
}

/// The content of a file that is being written: its last character may be there in part.
fn so_far(output: &Path) -> String {
    String::from_utf8_lossy(&fs::read(output).expect("its output is readable")).into_owned()
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < patience, "{what} never came");
        thread::sleep(Duration::from_millis(5));
    }
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts the exit code, and that nothing panicked on the way.
    #[track_caller]
    pub(crate) fn expect_code(&self, expected: i32) -> &Self {
        assert_eq!(
            self.status.code(),
            Some(expected),
            "{}; it says:\n{}",
            self.status,
            self.stderr
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Asserts that the message is one paragraph that mentions each of `words`, and that standard
    /// output is left alone.
    #[track_caller]
    pub(crate) fn expect_one_paragraph(&self, words: &[&str]) -> &Self {
        let message = self.stderr.trim();
        assert!(!message.is_empty(), "no message");
        assert!(!message.contains("\n\n"), "more than one paragraph:\n{message}");
        for word in words {
            assert!(message.contains(word), "{word:?} is not mentioned:\n{message}");
        }
        let stdout = String::from_utf8_lossy(&self.stdout);
        assert_eq!(stdout, "", "standard output is not empty");
        self
    }
}

/// The folder of the simulated driver, as the command itself gives it to a program. With it a
/// program runs on that driver without streamsan.
pub(crate) fn simulated_driver(scratch: &Scratch) -> OsString {
    let options = ["run", "--sim", "-o"].map(OsStr::new);
    let trace = scratch.file("driver.db");
    let program = ["--", "printenv", "LD_LIBRARY_PATH"].map(OsStr::new);
    let arguments: Vec<&OsStr> =
        options.into_iter().chain([trace.as_os_str()]).chain(program).collect();
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));
    ended.expect_code(0);
    let path = String::from_utf8(ended.stdout).expect("the path is text");
    OsString::from(path.trim_end())
}

/// `arguments` with a prefix, as the standard library wants them.
pub(crate) fn arguments<'a>(
    first: &'a [&'a str],
    options: &'a [OsString],
    program: &'a [&'a OsStr],
) -> Vec<&'a OsStr> {
    let first = first.iter().map(OsStr::new);
    first.chain(options.iter().map(OsString::as_os_str)).chain(program.iter().copied()).collect()
}
